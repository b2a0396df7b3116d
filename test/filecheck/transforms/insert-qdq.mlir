// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p insert-qdq --verify-rewrites --split-input-file --verify-diagnostics | filecheck %s

// One quantize and one dequantize, whoever uses the observed value; the recipe stays with the quantize.
// CHECK-LABEL: func.func @shared
func.func @shared(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu
  // CHECK-NEXT: [[Q:%[^ ]+]] = quant.quantize [[R]] {recipe = f32} : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8:f32, 0.02:3>>
  // CHECK-NEXT: [[D:%[^ ]+]] = quant.dequantize [[Q]] : tensor<2x3x!quant.uniform<i8:f32, 0.02:3>> -> tensor<2x3xf32>
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add [[D]], [[D]]
  // CHECK-NEXT: func.return [[D]], [[A]]
  %r = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %o = quant.observe %r {recipe = f32} : tensor<2x3xf32> as !quant.uniform<i8:f32, 0.02:3>
  %a = nn.add %o, %o : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %o, %a : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Per channel stays per channel, also with one channel only; range and zero points are kept.
// CHECK-LABEL: func.func @per_channel
func.func @per_channel() -> (tensor<1x3xf32>, tensor<2x3xf32>) {
  // CHECK: quant.quantize {{.*}} -> tensor<1x3x!quant.uniform<i8<-127:127>:f32:0, {0.5}>>
  // CHECK: quant.quantize {{.*}} -> tensor<2x3x!quant.uniform<u8:f32:0, {0.5:7, 0.25:9}>>
  // CHECK-NOT: quant.observe
  %w = nn.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
  %v = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %o = quant.observe %w : tensor<1x3xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.5}>
  %p = quant.observe %v : tensor<2x3xf32> as !quant.uniform<u8:f32:0, {0.5:7, 0.25:9}>
  func.return %o, %p : tensor<1x3xf32>, tensor<2x3xf32>
}

// -----

// Two observers of one value are two pairs, each with its own parameters.
// CHECK-LABEL: func.func @two
func.func @two(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: quant.quantize %x : tensor<4xf32> -> tensor<4x!quant.uniform<i8:f32, 0.1:-1>>
  // CHECK: quant.quantize %x : tensor<4xf32> -> tensor<4x!quant.uniform<u8:f32, 0.2:100>>
  %a = quant.observe %x : tensor<4xf32> as !quant.uniform<i8:f32, 0.1:-1>
  %b = quant.observe %x : tensor<4xf32> as !quant.uniform<u8:f32, 0.2:100>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// Nothing to do without observers.
// CHECK-LABEL: func.func @none
func.func @none(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: func.return
  %r = nn.relu %x : tensor<4xf32> -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// -----

func.func @error(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{quantization axis 1 is outside rank 1}}
  %o = quant.observe %x : tensor<4xf32> as !quant.uniform<i8:f32:1, {0.1, 0.2}>
  func.return %o : tensor<4xf32>
}

// -----

// By the range at run time: with 0 in it, or around 0 (unsigned: around 128).
// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-NEXT: [[H:%[^ ]+]] = nn.amax %x
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.neg %x
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.amax [[N]]
  // CHECK-NEXT: [[L:%[^ ]+]] = nn.neg [[M]]
  // CHECK-NEXT: [[S:%[^ ]+]] = quant.choose_scale [[L]], [[H]] {divisor = 2.550000e+02 : f32, floor = 2.500000e-04 : f32} : tensor<f32>
  // CHECK-NEXT: [[Z:%[^ ]+]] = quant.choose_zero_point [[L]], [[H]], [[S]] {qmin = -128 : i64, qmax = 127 : i64}
  // CHECK-NEXT: [[Q:%[^ ]+]] = quant.quantize_dynamic %x, [[S]], [[Z]] {qmin = -128 : i64, qmax = 127 : i64}
  // CHECK-NEXT: [[D:%[^ ]+]] = quant.dequantize_dynamic [[Q]], [[S]], [[Z]]
  // CHECK: [[T:%[^ ]+]] = quant.choose_scale {{.*}} {divisor = 1.275000e+02 : f32, floor = 2.500000e-04 : f32, symmetric}
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.constant dense<128> : tensor<i32>
  // CHECK-NEXT: quant.quantize_dynamic [[D]], [[T]], [[C]] {{.*}} -> tensor<2x3xui8>
  %o = quant.observe_dynamic %x {qmin = -128, qmax = 127, floor = 2.5e-04 : f32} : tensor<2x3xf32> as i8
  %p = quant.observe_dynamic %o {qmin = 0, qmax = 255, floor = 2.5e-04 : f32, symmetric} : tensor<2x3xf32> as ui8
  func.return %o, %p : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// An observer of a narrower float rounds to it.
// CHECK-LABEL: func.func @half
func.func @half(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: [[H:%[^ ]+]] = nn.cast %x : tensor<2x3xf32> -> tensor<2x3xf16>
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.cast [[H]] : tensor<2x3xf16> -> tensor<2x3xf32>
  // CHECK-NEXT: func.return [[R]]
  %o = quant.observe %x : tensor<2x3xf32> as f16
  func.return %o : tensor<2x3xf32>
}
