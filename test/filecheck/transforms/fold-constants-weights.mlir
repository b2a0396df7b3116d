// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p 'fold-constants{dequantize=true keep-weights=true}' --split-input-file --verify-rewrites | filecheck %s

// A weight stays codes where its readers dequantize as they read: linear and embedding, moved or not.
!w = tensor<3x2x!quant.uniform<i8:f32:0, {0.5, 0.25, 2.0:3}>>
// CHECK-LABEL: func.func @main
// CHECK:         %w = nn.constant dense<{{.*}}> : tensor<3x2x!quant.uniform
// CHECK-NEXT:    %d = quant.dequantize %w
// CHECK-NEXT:    nn.linear %x, %d
// CHECK-NEXT:    nn.embedding %d, %i
// CHECK-NEXT:    %t = nn.permute %d
// CHECK-NEXT:    nn.matmul %x, %t
func.func @main(%x: tensor<4x2xf32>, %i: tensor<5xi64>) -> (tensor<4x3xf32>, tensor<5x2xf32>, tensor<4x3xf32>) {
  %w = nn.constant dense<[[5, 8], [-4, 2], [7, -9]]> : !w
  %d = quant.dequantize %w : !w -> tensor<3x2xf32>
  %y = nn.linear %x, %d : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x3xf32>
  %e = nn.embedding %d, %i : (tensor<3x2xf32>, tensor<5xi64>) -> tensor<5x2xf32>
  %t = nn.permute %d {dims = array<i64: 1, 0>} : tensor<3x2xf32> -> tensor<2x3xf32>
  %m = nn.matmul %x, %t : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return %y, %e, %m : tensor<4x3xf32>, tensor<5x2xf32>, tensor<4x3xf32>
}

// -----

// So do codes whose zero points are fractions.
// CHECK-LABEL: func.func @main
// CHECK:         %d = quant.dequantize_dynamic
// CHECK-NEXT:    nn.embedding %d, %i
func.func @main(%i: tensor<5xi32>) -> tensor<5x2xf32> {
  %c = nn.constant dense<[[5, 8], [0, 2], [7, 9]]> : tensor<3x2xui8>
  %s = nn.constant dense<[[0.5], [0.25], [2.0]]> : tensor<3x1xf32>
  %z = nn.constant dense<[[0.75], [3.5], [-1.25]]> : tensor<3x1xf32>
  %d = quant.dequantize_dynamic %c, %s, %z : (tensor<3x2xui8>, tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %e = nn.embedding %d, %i : (tensor<3x2xf32>, tensor<5xi32>) -> tensor<5x2xf32>
  func.return %e : tensor<5x2xf32>
}

// -----

// And bytes that are cast, as those of an int8 weight whose scale is applied to the result.
// CHECK-LABEL: func.func @main
// CHECK:         %d = nn.cast %c
// CHECK-NEXT:    nn.matmul %x, %d
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %c = nn.constant dense<[[5, -8], [0, 2], [7, 9]]> : tensor<3x2xi8>
  %d = nn.cast %c : tensor<3x2xi8> -> tensor<3x2xf32>
  %y = nn.matmul %x, %d : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}

// -----

// What is read as anything but a weight is folded: here by an addition too.
!w = tensor<3x2x!quant.uniform<i8:f32:0, {0.5, 0.25, 2.0:3}>>
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %d = nn.constant dense<{{.*}}> : tensor<3x2xf32>
// CHECK-NEXT:    nn.linear %x, %d
// CHECK-NEXT:    nn.add %d, %a
func.func @main(%x: tensor<4x2xf32>, %a: tensor<3x2xf32>) -> (tensor<4x3xf32>, tensor<3x2xf32>) {
  %w = nn.constant dense<[[5, 8], [-4, 2], [7, -9]]> : !w
  %d = quant.dequantize %w : !w -> tensor<3x2xf32>
  %y = nn.linear %x, %d : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x3xf32>
  %z = nn.add %d, %a : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  func.return %y, %z : tensor<4x3xf32>, tensor<3x2xf32>
}

// -----

// So is an input, which is read where it lies, and a bias, wider codes.
!b = tensor<3x!quant.uniform<i32:f32, 0.125>>
!x = tensor<4x2x!quant.uniform<i8:f32, 0.5:3>>
// CHECK-LABEL: func.func @main
// CHECK-NOT:     quant.dequantize
func.func @main(%w: tensor<3x2xf32>) -> tensor<4x3xf32> {
  %c = nn.constant dense<[[5, 8], [-4, 2], [7, -9], [1, 6]]> : !x
  %x = quant.dequantize %c : !x -> tensor<4x2xf32>
  %e = nn.constant dense<[700, -9, 44]> : !b
  %b = quant.dequantize %e : !b -> tensor<3xf32>
  %y = nn.linear %x, %w bias(%b) : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}
