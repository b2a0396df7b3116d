// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p compose-permutes --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// Not involutions, so that p[q[i]] and q[p[i]] differ.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<2x3x5x7xf32>) -> tensor<2x7x5x3xf32> {
  // CHECK-NEXT: [[P:%[^ ]+]] = nn.permute %x {dims = array<i64: 0, 3, 2, 1>}
  // CHECK-NEXT: func.return [[P]]
  %a = nn.permute %x {dims = array<i64: 0, 2, 3, 1>} : tensor<2x3x5x7xf32> -> tensor<2x5x7x3xf32>
  %b = nn.permute %a {dims = array<i64: 0, 2, 1, 3>} : tensor<2x5x7x3xf32> -> tensor<2x7x5x3xf32>
  func.return %b : tensor<2x7x5x3xf32>
}

// Inverses cancel, also those that are not their own inverse; two times the same one does not.
// CHECK-LABEL: func.func @inverse
func.func @inverse(%x: tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>) {
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.neg %x
  // CHECK-NEXT: [[P:%[^ ]+]] = nn.permute [[N]] {dims = array<i64: 2, 0, 1>}
  // CHECK-NEXT: func.return [[N]], [[P]]
  %n = nn.neg %x : tensor<4x4x4xf32> -> tensor<4x4x4xf32>
  %a = nn.permute %n {dims = array<i64: 1, 2, 0>} : tensor<4x4x4xf32> -> tensor<4x4x4xf32>
  %b = nn.permute %a {dims = array<i64: 2, 0, 1>} : tensor<4x4x4xf32> -> tensor<4x4x4xf32>
  %c = nn.permute %a {dims = array<i64: 1, 2, 0>} : tensor<4x4x4xf32> -> tensor<4x4x4xf32>
  func.return %b, %c : tensor<4x4x4xf32>, tensor<4x4x4xf32>
}

// Only unit dimensions move: a reshape. A trailing permute that moves others stays.
// CHECK-LABEL: func.func @unit
func.func @unit(%x: tensor<2x3x1x5xf32>, %y: tensor<2x1x3xf32>, %u: tensor<?x1x3xf32>) -> (tensor<1x2x3x5xf32>, tensor<3x1x2xf32>, tensor<1x?x3xf32>) {
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.reshape %x : tensor<2x3x1x5xf32> -> tensor<1x2x3x5xf32>
  // CHECK-NEXT: [[P:%[^ ]+]] = nn.permute %y {dims = array<i64: 2, 1, 0>}
  // CHECK-NEXT: [[U:%[^ ]+]] = nn.reshape %u : tensor<?x1x3xf32> -> tensor<1x?x3xf32>
  // CHECK-NEXT: func.return [[R]], [[P]], [[U]]
  %a = nn.permute %x {dims = array<i64: 2, 0, 1, 3>} : tensor<2x3x1x5xf32> -> tensor<1x2x3x5xf32>
  %b = nn.permute %y {dims = array<i64: 2, 1, 0>} : tensor<2x1x3xf32> -> tensor<3x1x2xf32>
  %c = nn.permute %u {dims = array<i64: 1, 0, 2>} : tensor<?x1x3xf32> -> tensor<1x?x3xf32>
  func.return %a, %b, %c : tensor<1x2x3x5xf32>, tensor<3x1x2xf32>, tensor<1x?x3xf32>
}

// The quantization axis follows.
// CHECK-LABEL: func.func @per_channel
func.func @per_channel(%x: tensor<2x3x5x!quant.uniform<i8:f32:0, {0.5, 0.25}>>, %y: tensor<2x1x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> (tensor<3x2x5x!quant.uniform<i8:f32:1, {0.5, 0.25}>>, tensor<1x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  // CHECK-NEXT: nn.permute %x {dims = array<i64: 1, 0, 2>} : {{.*}}i8:f32:0, {{.*}} -> {{.*}}i8:f32:1,
  // CHECK-NEXT: nn.permute %y
  %a = nn.permute %x {dims = array<i64: 1, 2, 0>} : tensor<2x3x5x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<3x5x2x!quant.uniform<i8:f32:2, {0.5, 0.25}>>
  %b = nn.permute %a {dims = array<i64: 0, 2, 1>} : tensor<3x5x2x!quant.uniform<i8:f32:2, {0.5, 0.25}>> -> tensor<3x2x5x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  // expected-remark@+1 {{PermuteOfUnitDims refused 'nn.permute': the tensor is quantized per channel}}
  %c = nn.permute %y {dims = array<i64: 1, 0>} : tensor<2x1x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<1x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  func.return %b, %c : tensor<3x2x5x!quant.uniform<i8:f32:1, {0.5, 0.25}>>, tensor<1x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
}

// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: tensor<?x1x?xf32>) -> tensor<1x?x?xf32> {
  // CHECK-NEXT: nn.permute
  // expected-remark@+1 {{more than one dimension is unknown}}
  %c = nn.permute %x {dims = array<i64: 1, 0, 2>} : tensor<?x1x?xf32> -> tensor<1x?x?xf32>
  func.return %c : tensor<1x?x?xf32>
}

// -----

func.func @error(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{result has shape [2, 3], inferred is [3, 2]}}
  %a = nn.permute %x {dims = array<i64: 1, 0>} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return %a : tensor<2x3xf32>
}
