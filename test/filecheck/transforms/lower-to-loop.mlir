// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p lower-to-loop --split-input-file --verify-diagnostics | filecheck %s
// RUN: qcomp-opt %s -p 'lower-to-loop{target="x86-64-avx512vnni"}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=VNNI

// Rank 2: equal layouts are one loop over all elements; the result may overwrite an operand.
// CHECK-LABEL: func.func private @add_0(%x0: memref<15xf32>, %x1: memref<15xf32>, %y: memref<15xf32>)
// CHECK:         loop.for %{{[^ ]+}} = [0] to [15] {
// CHECK:           arith.addf
// CHECK:           loop.clamp
// VNNI-LABEL: func.func private @add_0
// VNNI:         loop.load %x0[{{.*}}] over (0) valid 15 : memref<15xf32>, vector<16xf32>
// VNNI:         loop.store {{.*}} over (0) valid 15 : memref<15xf32>, vector<16xf32>
// CHECK:       func.func @main(%a: memref<3x5xf32>, %b: memref<3x5xf32>, %y: memref<3x5xf32> {nn.name = "sum", qcomp.output})
// CHECK:         func.call @add_0({{.*}}) {qcomp.may_alias = array<i64: 2, 0, 2, 1>}
func.func @main(%a: tensor<3x5xf32>, %b: tensor<3x5xf32>) -> (tensor<3x5xf32> {nn.name = "sum"}) {
  %y = nn.add %a, %b {activation = #nn.relu} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}

// -----

// A padded convolution reads a border of real zero: code 7. Channels lie last; bytes meet in a dot product.
!x = tensor<1x2x4x5x!quant.uniform<u8:f32, 0.02:7>>
!y = tensor<1x3x4x5x!quant.uniform<u8:f32, 0.3:11>>
!w = tensor<3x2x1x3x!quant.uniform<i8<-127:127>:f32:0, {0.1, 0.2, 0.3}>>
// CHECK-LABEL: func.func private @fill_border_0(%y: memref<1x4x7x2xi8>)
// CHECK:         arith.constant 7 : i8
// CHECK-LABEL: func.func private @conv2d_0
// CHECK:         loop.contract {{.*}} {lhs_unsigned} : vector<1x1x1xi8>, vector<1x1x1xi8> -> vector<1x1x1x1xi32>
// CHECK:         loop.to_float
// CHECK-NEXT:    loop.broadcast
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    loop.broadcast
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    loop.broadcast
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    loop.round
// CHECK:         loop.narrow {{.*}} {min = 11 : i64, max = 255 : i64}
// VNNI-LABEL: func.func private @conv2d_0
// VNNI:         loop.contract {{.*}} {lhs_unsigned} : vector<{{[0-9]+}}x{{[0-9]+}}x4xi8>, vector<1x16x4xi8>
// VNNI:         loop.store {{.*}} valid 3
// CHECK:       func.func @main
// CHECK:         memref.alloc() : memref<1x4x7x2xi8>
// CHECK:         func.call @fill_border_0
// CHECK:         func.call @conv2d_0
func.func @main(%x: tensor<1x2x4x5xf32>) -> tensor<1x3x4x5xf32> {
  %q = quant.quantize %x : tensor<1x2x4x5xf32> -> !x
  %w = nn.constant dense<[[[[1, 2, 3]], [[4, 5, 6]]], [[[-1, -2, -3]], [[7, 8, 9]]], [[[1, 0, 3]], [[2, 5, -6]]]]> : !w
  %b = nn.constant dense<[0.5, -0.25, 1.0]> : tensor<3xf32>
  %y = nn.conv2d %q, %w bias(%b) {stride = array<i64: 1, 1>, padding = array<i64: 0, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, activation = #nn.relu} : (!x, !w, tensor<3xf32>) -> !y
  %z = quant.dequantize %y : !y -> tensor<1x3x4x5xf32>
  func.return %z : tensor<1x3x4x5xf32>
}

// -----

// A reshape that moves nothing is a view.
// CHECK:       // -----
// CHECK:       func.func @main
// CHECK:         loop.view {{.*}} {offset = 0 : i64} : memref<1x1x1x6xi8> to memref<1x6xi8>
// CHECK-NOT:     copy
func.func @main(%x: tensor<1x6x2x3x!quant.uniform<u8:f32, 0.1:3>>) -> tensor<1x6xf32> {
  %a = nn.adaptive_avg_pool2d %x {output_size = array<i64: 1, 1>} : tensor<1x6x2x3x!quant.uniform<u8:f32, 0.1:3>> -> tensor<1x6x1x1x!quant.uniform<u8:f32, 0.05:3>>
  %r = nn.reshape %a : tensor<1x6x1x1x!quant.uniform<u8:f32, 0.05:3>> -> tensor<1x6x!quant.uniform<u8:f32, 0.05:3>>
  %d = quant.dequantize %r : tensor<1x6x!quant.uniform<u8:f32, 0.05:3>> -> tensor<1x6xf32>
  func.return %d : tensor<1x6xf32>
}

// -----

// expected-error@+1 {{only modules with the one function main are lowered to loops}}
func.func @other(%x: tensor<3xf32>) -> tensor<3xf32> {
  func.return %x : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{weight must be a constant}}
  %y = nn.linear %x, %w : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// expected-error@+1 {{dynamic shape ?x3 is not lowered to loops}}
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = nn.relu %x : tensor<?x3xf32> -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}
