// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fuse-linear,fold-constants,fold-affine,dce --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @with_bias
func.func @with_bias(%x: tensor<2x5x3xf32>) -> tensor<2x5x2xf32> {
  // CHECK-DAG: [[W:%[^ ]+]] = nn.constant dense<{{\[\[1.0, 3.0, 5.0\], \[2.0, 4.0, 6.0\]\]}}> : tensor<2x3xf32>
  // CHECK-DAG: [[B:%[^ ]+]] = nn.constant dense<[0.5, -1.0]>
  // CHECK: nn.linear %x, [[W]] bias([[B]])
  // CHECK-NEXT: func.return
  %w = nn.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %b = nn.constant dense<[0.5, -1.0]> : tensor<2xf32>
  %m = nn.matmul %x, %w : (tensor<2x5x3xf32>, tensor<3x2xf32>) -> tensor<2x5x2xf32>
  %a = nn.add %b, %m : (tensor<2xf32>, tensor<2x5x2xf32>) -> tensor<2x5x2xf32>
  func.return %a : tensor<2x5x2xf32>
}

// CHECK-LABEL: func.func @quantized
func.func @quantized(%x: tensor<5x3xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  // CHECK: quant.dequantize {{.*}} : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  // CHECK-NEXT: nn.linear
  // CHECK: quant.dequantize {{.*}} : tensor<2x3x!quant.uniform<i8:f32, 0.5:1>>
  // CHECK-NEXT: nn.linear
  %w = nn.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  %d = quant.dequantize %w : tensor<3x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>> -> tensor<3x2xf32>
  %m = nn.matmul %x, %d : (tensor<5x3xf32>, tensor<3x2xf32>) -> tensor<5x2xf32>
  %v = nn.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2x!quant.uniform<i8:f32, 0.5:1>>
  %e = quant.dequantize %v : tensor<3x2x!quant.uniform<i8:f32, 0.5:1>> -> tensor<3x2xf32>
  %n = nn.matmul %x, %e : (tensor<5x3xf32>, tensor<3x2xf32>) -> tensor<5x2xf32>
  func.return %m, %n : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// Must not: the right side is no constant, or of rank 3; quantized along its rows; the left one is the constant (a square,
// where sizes do not tell); a bias along the rows.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<2x2x2xf32>, %y: tensor<2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  // CHECK-COUNT-4: nn.matmul
  // CHECK: nn.linear
  // CHECK: nn.add
  %w = nn.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %t = nn.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>
  %q = nn.constant dense<[[1, 2], [3, 4]]> : tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %d = quant.dequantize %q : tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x2xf32>
  %b = nn.constant dense<[[1.0], [3.0]]> : tensor<2x1xf32>
  %m = nn.matmul %x, %y : (tensor<2x2x2xf32>, tensor<2x2xf32>) -> tensor<2x2x2xf32>
  // expected-remark@+1 {{the constant has another rank than 2}}
  %n = nn.matmul %x, %t : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  // expected-remark@+1 {{the constant is quantized along another dimension than its last}}
  %o = nn.matmul %x, %d : (tensor<2x2x2xf32>, tensor<2x2xf32>) -> tensor<2x2x2xf32>
  %p = nn.matmul %w, %y : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %r = nn.matmul %y, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  // expected-remark@+1 {{the constant varies along other dimensions than the output channels}}
  %a = nn.add %r, %b : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  func.return %m, %n, %o, %p, %a : tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

func.func @codes(%x: tensor<2x2x!quant.uniform<i8:f32, 0.1:1>>) -> tensor<2x2xf32> {
  %q = nn.constant dense<[[1, 2], [3, 4]]> : tensor<2x2x!quant.uniform<i8:f32, 0.25>>
  // expected-remark@+1 {{computes on codes}}
  %m = nn.matmul %x, %q : (tensor<2x2x!quant.uniform<i8:f32, 0.1:1>>, tensor<2x2x!quant.uniform<i8:f32, 0.25>>) -> tensor<2x2xf32>
  func.return %m : tensor<2x2xf32>
}

// -----

// Must not: no kernel of linear takes integers, that of matmul does.
// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<2x3xi16>) -> tensor<2x2xi16> {
  // CHECK: nn.matmul
  %w = nn.constant dense<[[1, 2], [3, 4], [5, 7]]> : tensor<3x2xi16>
  // expected-remark@+1 {{nn.linear of i16 is not lowered to loops}}
  %y = nn.matmul %x, %w : (tensor<2x3xi16>, tensor<3x2xi16>) -> tensor<2x2xi16>
  func.return %y : tensor<2x2xi16>
}

// -----

func.func @error(%x: tensor<5x3xf32>) -> tensor<5x2xf32> {
  %w = nn.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  // expected-error@+1 {{inner dimensions differ}}
  %m = nn.matmul %x, %w : (tensor<5x3xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  func.return %m : tensor<5x2xf32>
}
