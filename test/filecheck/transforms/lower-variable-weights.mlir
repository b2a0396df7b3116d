// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p lower-variable-weights --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<2x3x5xf32>, %w: tensor<7x5xf32>, %b: tensor<7xf32>, %r: tensor<2x3x7xf32>) -> (tensor<2x3x7xf32>, tensor<2x3x7xf32>) {
  // CHECK-NEXT: [[V:%[^ ]+]] = nn.permute %w {dims = array<i64: 1, 0>} : tensor<7x5xf32> -> tensor<5x7xf32>
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.matmul %x, [[V]]
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add [[M]], %b : (tensor<2x3x7xf32>, tensor<7xf32>) -> tensor<2x3x7xf32>
  // CHECK-NEXT: [[Y:%[^ ]+]] = nn.add [[A]], %r {activation = #nn.relu}
  // CHECK-NEXT: nn.permute %w
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.matmul %x
  // CHECK-NEXT: nn.clamp [[N]] {min = 0.000000e+00 : f32, max = 6.000000e+00 : f32}
  %y = nn.linear %x, %w bias(%b) residual(%r) {activation = #nn.relu} : (tensor<2x3x5xf32>, tensor<7x5xf32>, tensor<7xf32>, tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %z = nn.linear %x, %w {activation = #nn.clamp<0.0 : f32, 6.0 : f32>} : (tensor<2x3x5xf32>, tensor<7x5xf32>) -> tensor<2x3x7xf32>
  func.return %y, %z : tensor<2x3x7xf32>, tensor<2x3x7xf32>
}

// -----

// Rank 1.
// CHECK-LABEL: func.func @vector
func.func @vector(%x: tensor<5xf32>, %w: tensor<7x5xf32>) -> tensor<7xf32> {
  // CHECK: nn.reshape %x {{.*}} -> tensor<1x5xf32>
  // CHECK: nn.matmul
  // CHECK: nn.reshape {{.*}} -> tensor<7xf32>
  %y = nn.linear %x, %w : (tensor<5xf32>, tensor<7x5xf32>) -> tensor<7xf32>
  func.return %y : tensor<7xf32>
}

// -----

// Groups, stride, dilation and uneven padding.
// CHECK-LABEL: func.func @conv2d
func.func @conv2d(%x: tensor<2x4x7x9xf32>, %w: tensor<6x2x3x2xf32>, %b: tensor<6xf32>) -> tensor<2x6x4x4xf32> {
  // CHECK-NEXT: [[P:%[^ ]+]] = nn.pad %x {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 2, 0>
  // CHECK-NEXT: [[H:%[^ ]+]] = nn.take [[P]] {dim = 2 : i64, indices = array<i64: 0, 2, 4, 6, 1, 3, 5, 7, 2, 4, 6, 8>}
  // CHECK-NEXT: [[W:%[^ ]+]] = nn.take [[H]] {dim = 3 : i64, indices = array<i64: 0, 2, 4, 6, 2, 4, 6, 8>}
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.reshape [[W]] : tensor<2x4x12x8xf32> -> tensor<2x2x2x3x4x2x4xf32>
  // CHECK-NEXT: [[O:%[^ ]+]] = nn.permute [[S]] {dims = array<i64: 0, 1, 2, 3, 5, 4, 6>}
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.reshape [[O]] {{.*}} -> tensor<2x2x12x16xf32>
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.reshape %w {{.*}} -> tensor<1x2x3x12xf32>
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.matmul [[R]], [[C]]
  // CHECK-NEXT: [[Y:%[^ ]+]] = nn.reshape [[M]] {{.*}} -> tensor<2x6x4x4xf32>
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.reshape %b {{.*}} -> tensor<6x1x1xf32>
  // CHECK-NEXT: nn.add [[Y]], [[B]]
  %y = nn.conv2d %x, %w bias(%b) {stride = array<i64: 2, 2>, padding = array<i64: 1, 0, 2, 0>, dilation = array<i64: 1, 2>, groups = 2 : i64} : (tensor<2x4x7x9xf32>, tensor<6x2x3x2xf32>, tensor<6xf32>) -> tensor<2x6x4x4xf32>
  func.return %y : tensor<2x6x4x4xf32>
}

// -----

// Constant weights, also in codes, are for the kernels.
// CHECK-LABEL: func.func @constant
func.func @constant(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  // CHECK: nn.linear
  // CHECK: nn.linear
  %w = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]> : tensor<2x3xf32>
  %c = nn.constant dense<[[1, 2, 3], [4, 5, 7]]> : tensor<2x3x!quant.uniform<i8:f32, 0.1>>
  %v = quant.dequantize %c : tensor<2x3x!quant.uniform<i8:f32, 0.1>> -> tensor<2x3xf32>
  %y = nn.linear %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  %z = nn.linear %x, %v : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  func.return %y, %z : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// CHECK-LABEL: func.func @codes
func.func @codes(%x: tensor<2x3x!quant.uniform<i8:f32, 0.1>>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.2>>) -> tensor<2x4xf32> {
  // CHECK: nn.linear
  // expected-remark@+1 {{computes on codes}}
  %y = nn.linear %x, %w : (tensor<2x3x!quant.uniform<i8:f32, 0.1>>, tensor<4x3x!quant.uniform<i8:f32, 0.2>>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// Constant, but integers, which only matmul has kernels for. Truth values have none at all.
// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<2x3xi8>, %t: tensor<2x3xi1>) -> (tensor<2x2xi8>, tensor<2x2xi1>) {
  // CHECK-DAG: [[W:%[^ ]+]] = nn.permute %w
  // CHECK-DAG: [[M:%[^ ]+]] = nn.matmul %x, [[W]]
  // CHECK: nn.add [[M]], %b {activation = #nn.relu}
  %w = nn.constant dense<[[1, 2, 3], [4, 5, 7]]> : tensor<2x3xi8>
  %b = nn.constant dense<[100, -100]> : tensor<2xi8>
  %u = nn.constant dense<[[true, false, true], [false, true, true]]> : tensor<2x3xi1>
  %y = nn.linear %x, %w bias(%b) {activation = #nn.relu} : (tensor<2x3xi8>, tensor<2x3xi8>, tensor<2xi8>) -> tensor<2x2xi8>
  // expected-remark@+1 {{nn.matmul of i1 is not lowered to loops}}
  %z = nn.linear %t, %u : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x2xi1>
  func.return %y, %z : tensor<2x2xi8>, tensor<2x2xi1>
}

// -----

func.func @error(%x: tensor<2x3xf32>, %w: tensor<4x5xf32>) -> tensor<2x4xf32> {
  // expected-error-re@+1 {{{{.+}}}}
  %y = nn.linear %x, %w : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
