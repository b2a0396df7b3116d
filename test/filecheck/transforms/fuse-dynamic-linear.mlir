// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fuse-dynamic-linear --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// One scale for all, as the decomposed program has it: the dequantizes go.
// CHECK-LABEL: func.func @fires
func.func @fires(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<i32>) -> tensor<5x2xf32> {
  // CHECK: [[W:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[Y:%[^ ]+]] = nn.dynamic_linear %q, %s, %z, [[W]] : (tensor<5x3xi8>, tensor<f32>, tensor<i32>, tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> tensor<5x2xf32>
  // CHECK-NEXT: func.return [[Y]]
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// One scale per row; a single zero point is repeated; bias and activation come along.
// CHECK-LABEL: func.func @per_row
func.func @per_row(%q: tensor<5x3xi8>, %s: tensor<5x1xf32>, %z: tensor<i32>) -> tensor<5x2xf32> {
  // CHECK: [[Z:%[^ ]+]] = nn.expand
  // CHECK: nn.dynamic_linear %q, %s, [[Z]], {{.*}} bias({{.*}}) {activation = #nn.relu}
  // CHECK-NOT: dequantize
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<5x1xf32>, tensor<i32>) -> tensor<5x3xf32>
  %b = nn.constant dense<[0.5, -1.0]> : tensor<2xf32>
  %y = nn.linear %d, %v bias(%b) {activation = #nn.relu} : (tensor<5x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Reshapes in between move the codes; scales per row follow.
// CHECK-LABEL: func.func @reshaped
func.func @reshaped(%q: tensor<5x1x3xi8>, %s: tensor<5x1x1xf32>, %z: tensor<5x1x1xi32>) -> tensor<5x2xf32> {
  // CHECK: [[Q:%[^ ]+]] = nn.reshape %q : tensor<5x1x3xi8> -> tensor<5x3xi8>
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.reshape %s : tensor<5x1x1xf32> -> tensor<5x1xf32>
  // CHECK-NEXT: [[Z:%[^ ]+]] = nn.reshape %z : tensor<5x1x1xi32> -> tensor<5x1xi32>
  // CHECK-NEXT: nn.dynamic_linear [[Q]], [[S]], [[Z]]
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %e = quant.dequantize_dynamic %q, %s, %z : (tensor<5x1x3xi8>, tensor<5x1x1xf32>, tensor<5x1x1xi32>) -> tensor<5x1x3xf32>
  %d = nn.reshape %e : tensor<5x1x3xf32> -> tensor<5x3xf32>
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: scales along the columns.
// CHECK-LABEL: func.func @columns
func.func @columns(%q: tensor<5x3xi8>, %s: tensor<3xf32>, %z: tensor<3xi32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<3xf32>, tensor<3xi32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{scale or zero point is neither one number nor one per row}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: one scale per row of the codes, but the linear sees other rows.
// CHECK-LABEL: func.func @rows_moved
func.func @rows_moved(%q: tensor<3x5xi8>, %s: tensor<3x1xf32>, %z: tensor<3x1xi32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %e = quant.dequantize_dynamic %q, %s, %z : (tensor<3x5xi8>, tensor<3x1xf32>, tensor<3x1xi32>) -> tensor<3x5xf32>
  %d = nn.reshape %e : tensor<3x5xf32> -> tensor<5x3xf32>
  // expected-remark@+1 {{scale or zero point is neither one number nor one per row}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: codes of 16 bits.
// CHECK-LABEL: func.func @wide
func.func @wide(%q: tensor<5x3xi16>, %s: tensor<f32>, %z: tensor<i32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi16>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{input is not quantized to 8 bits}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: a zero point that may be a fraction.
// CHECK-LABEL: func.func @fractional
func.func @fractional(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<f32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<f32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{zero point is not i32}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: a weight in float.
// CHECK-LABEL: func.func @float_weight
func.func @float_weight(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<i32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %v = nn.constant dense<[[1.0, -2.0, 3.0], [4.0, 5.0, -127.0]]> : tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{weight is not dequantized}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: a weight that is no constant.
// CHECK-LABEL: func.func @weight_input
func.func @weight_input(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{weight is not a quantized constant}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: a weight quantized along its columns.
// CHECK-LABEL: func.func @weight_columns
func.func @weight_columns(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<i32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25, 1.0}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25, 1.0}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{weight is not quantized in signed 8 bits, per tensor or along axis 0}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: a weight with a zero point.
// CHECK-LABEL: func.func @weight_zero_point
func.func @weight_zero_point(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<i32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32, 0.5:3>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{weight has a zero point that is not 0, or does not express f32}}
  %y = nn.linear %d, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: a bias that is no constant.
// CHECK-LABEL: func.func @bias_input
func.func @bias_input(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %b: tensor<2xf32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{bias is not a constant in f32}}
  %y = nn.linear %d, %v bias(%b) : (tensor<5x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// -----

// Must not: a residual.
// CHECK-LABEL: func.func @residual
func.func @residual(%q: tensor<5x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %r: tensor<5x2xf32>) -> tensor<5x2xf32> {
  // CHECK: nn.linear
  %w = nn.constant dense<[[1, -2, 3], [4, 5, -127]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %v = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x3xf32>
  %d = quant.dequantize_dynamic %q, %s, %z : (tensor<5x3xi8>, tensor<f32>, tensor<i32>) -> tensor<5x3xf32>
  // expected-remark@+1 {{linear has a residual}}
  %y = nn.linear %d, %v residual(%r) : (tensor<5x3xf32>, tensor<2x3xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}
