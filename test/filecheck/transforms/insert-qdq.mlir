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
