// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fold-constants{max-growth=8} --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// Pure ops between a weight and its quantize fold along; the dequantize stays; the float weight goes.
// CHECK-LABEL: func.func @weight
func.func @weight(%x: tensor<5x3xf32>) -> tensor<5x2xf32> {
  // CHECK-NEXT: [[W:%[^ ]+]] = nn.constant dense<[[2, 6, 10], [8, 16, 24]]> : tensor<2x3x!quant.uniform<i8<-127:127>:f32:0, {0.5, 0.25}>>
  // CHECK-NEXT: [[D:%[^ ]+]] = quant.dequantize [[W]]
  // CHECK-NEXT: nn.linear %x, [[D]]
  %w = nn.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %t = nn.permute %w {dims = array<i64: 1, 0>} : tensor<3x2xf32> -> tensor<2x3xf32>
  %q = quant.quantize %t : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8<-127:127>:f32:0, {0.5, 0.25}>>
  %d = quant.dequantize %q : tensor<2x3x!quant.uniform<i8<-127:127>:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %y = nn.linear %x, %d : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// torch's arithmetic: the reciprocal, not a division (which gives -123, -118, -110, -84), ties to even, NaN to 0.
// CHECK-LABEL: func.func @rounding
func.func @rounding() -> (tensor<4x!quant.uniform<i8:f32, 0.02>>, tensor<6x!quant.uniform<i8:f32, 1.0:3>>) {
  // CHECK-NEXT: nn.constant dense<[-122, -117, -110, -84]>
  // CHECK-NEXT: nn.constant dense<[3, 5, 5, 3, 1, 0]>
  %x = nn.constant dense<[-2.450000047683716, -2.3499999046325684, -2.2100000381469727, -1.690000057220459]> : tensor<4xf32>
  %q = quant.quantize %x : tensor<4xf32> -> tensor<4x!quant.uniform<i8:f32, 0.02>>
  %y = nn.constant dense<[0.5, 1.5, 2.5, -0.5, -1.5, 0x7FC00000]> : tensor<6xf32>
  %p = quant.quantize %y : tensor<6xf32> -> tensor<6x!quant.uniform<i8:f32, 1.0:3>>
  func.return %q, %p : tensor<4x!quant.uniform<i8:f32, 0.02>>, tensor<6x!quant.uniform<i8:f32, 1.0:3>>
}

// -----

// Two names, one content: one constant. One content, two encodings: two.
// CHECK-LABEL: func.func @unify
func.func @unify() -> (tensor<2xf32>, tensor<2xf32>, tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<2x!quant.uniform<i8:f32, 0.25>>) {
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.constant dense<[1.0, 2.0]>
  // CHECK-NEXT: [[Q:%[^ ]+]] = nn.constant dense<[2, 4]> : tensor<2x!quant.uniform<i8:f32, 0.5>>
  // CHECK-NEXT: [[P:%[^ ]+]] = nn.constant dense<[2, 4]> : tensor<2x!quant.uniform<i8:f32, 0.25>>
  // CHECK-NEXT: func.return [[A]], [[A]], [[Q]], [[P]]
  %a = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %h = nn.constant dense<[0.5, 1.0]> : tensor<2xf32>
  %q = quant.quantize %a : tensor<2xf32> -> tensor<2x!quant.uniform<i8:f32, 0.5>>
  %p = quant.quantize %h : tensor<2xf32> -> tensor<2x!quant.uniform<i8:f32, 0.25>>
  func.return %a, %b, %q, %p : tensor<2xf32>, tensor<2xf32>, tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<2x!quant.uniform<i8:f32, 0.25>>
}

// -----

// Must not fold: an operand is not constant; an observer; a call.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CHECK: nn.add
  // CHECK: quant.observe
  // CHECK: func.call
  %c = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %a = nn.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %o = quant.observe %c : tensor<2xf32> as !quant.uniform<i8:f32, 0.5>
  %b = func.call @effect(%c) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %a, %o, %b : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
func.func private @effect(tensor<2xf32>) -> tensor<2xf32>

// -----

// Must not fold: the result would be larger by more than the limit.
// CHECK-LABEL: func.func @growth
func.func @growth() -> (tensor<2x3xf32>, tensor<1x2xf32>) {
  // CHECK: nn.expand
  // CHECK: nn.constant {{.*}} : tensor<1x2xf32>
  %c = nn.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  // expected-remark@+1 {{FoldConstant refused 'nn.expand': 8 bytes of constants would become 24}}
  %e = nn.expand %c : tensor<2x1xf32> -> tensor<2x3xf32>
  %r = nn.reshape %c : tensor<2x1xf32> -> tensor<1x2xf32>
  func.return %e, %r : tensor<2x3xf32>, tensor<1x2xf32>
}

// -----

// Must not fold: the reference refuses.
// CHECK-LABEL: func.func @refused
func.func @refused() -> tensor<1x2xf32> {
  // CHECK: nn.embedding
  %t = nn.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %i = nn.constant dense<[7]> : tensor<1xi64>
  // expected-remark-re@+1 {{FoldConstant refused 'nn.embedding': {{.*}}}}
  %e = nn.embedding %t, %i : (tensor<1x2xf32>, tensor<1xi64>) -> tensor<1x2xf32>
  func.return %e : tensor<1x2xf32>
}

// -----

func.func @error() -> tensor<2x!quant.uniform<i8<-127:127>:f32, 0.5>> {
  // expected-error@+1 {{codes outside the storage range <-127:127>}}
  %c = nn.constant dense<[-128, 4]> : tensor<2x!quant.uniform<i8<-127:127>:f32, 0.5>>
  func.return %c : tensor<2x!quant.uniform<i8<-127:127>:f32, 0.5>>
}
