// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p lower-to-loop --split-input-file | filecheck %s
// RUN: qcomp-opt %s -p 'lower-to-loop{target="x86-64-avx512vnni"}' --split-input-file | filecheck %s --check-prefix=VNNI

// Bytes with a scale per channel: the sum is scaled, which starts at 0.
// CHECK-LABEL: func.func private @linear_0(%x: memref<1x1x6xf32>, %weight: memref<3x1x2x1x1x1xi8>, %weight_scale: memref<3x1x1x1x1x1xf32>, %start: memref<3x1x1xf32>,
// CHECK:         loop.load %weight{{.*}} : memref<3x1x2x1x1x1xi8>, vector<1x1x1xi8>
// CHECK-NEXT:    loop.extend
// CHECK-NEXT:    loop.to_float
// CHECK-NEXT:    loop.load %x
// CHECK-NEXT:    loop.contract
// CHECK:         loop.load %weight_scale
// CHECK:         loop.multiply_add
// CHECK:       func.func @main
// CHECK:         loop.constant {{.*}} : memref<3x1x2x1x1x1xi8>
// CHECK-NOT:     dequantize
// VNNI-LABEL: func.func private @linear_0
// VNNI:          loop.load %weight{{.*}} : memref<1x1x2x1x16x1xi8>, vector<1x16x1xi8>
!w = tensor<3x2x!quant.uniform<i8:f32:0, {0.5, 0.25, 2.0}>>
func.func @main(%x: tensor<3x2xf32>) -> tensor<3x3xf32> {
  %w = nn.constant dense<[[50, 8], [-4, 2], [7, -9]]> : !w
  %d = quant.dequantize %w : !w -> tensor<3x2xf32>
  %y = nn.linear %x, %d : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x3xf32>
  func.return %y : tensor<3x3xf32>
}

// -----

// Groups of nibbles, two in a byte; zero points that differ are read. A register holds the table of their reals.
// CHECK-LABEL: func.func private @linear_0
// CHECK-SAME:    %weight: memref<1x1x4x1x1x1xi8>, %weight_scale: memref<1x1x2x1x1x1xf32>, %weight_zero: memref<1x1x2x1x1x1xi8>
// CHECK:         loop.for %{{[^ ]+}} = [0] to [2]
// CHECK:           loop.for %{{[^ ]+}} = [0] to [2]
// CHECK:             loop.extend {{.*}} {unsigned}
// CHECK:             arith.andi
// CHECK:             arith.shrsi
// CHECK:             arith.subi
// CHECK-NEXT:        loop.to_float
// VNNI-LABEL: func.func private @linear_0
// VNNI-SAME:    %weight_table: memref<16xf32>
// VNNI:         loop.lookup %weight_table[{{.*}}] : memref<16xf32>, vector<1x16x1xi32> -> vector<1x16x1xf32>
// VNNI-NEXT:    arith.subf
// VNNI-NEXT:    arith.mulf
!w = tensor<1x8x!quant.uniform<i8<-8:7>:f32:{0:1, 1:4}, {{0.5:1, 0.25:-2}}>>
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x1xf32> {
  %w = nn.constant dense<[[5, -8, 3, 7, -1, 2, -3, 4]]> : !w
  %d = quant.dequantize %w : !w -> tensor<1x8xf32>
  %y = nn.linear %x, %d : (tensor<2x8xf32>, tensor<1x8xf32>) -> tensor<2x1xf32>
  func.return %y : tensor<2x1xf32>
}

// -----

// A table of rows: what is picked is made real.
// CHECK-LABEL: func.func private @embedding_0(%weight: memref<3x2xi8>, %weight_scale: memref<3x1xf32>, %indices: memref<5xi64>, %y: memref<5x4xf32>)
// CHECK:         loop.load %indices
// CHECK:         loop.load %weight_scale
// CHECK:         loop.load %weight
// CHECK:         arith.mulf
// CHECK:         loop.store
!w = tensor<3x4x!quant.uniform<i8:f32:0, {0.5, 0.25, 2.0}>>
func.func @main(%i: tensor<5xi64>) -> tensor<5x4xf32> {
  %w = nn.constant dense<[[5, 7, -8, 0], [-4, 2, 3, -6], [7, -7, 4, 1]]> : !w
  %d = quant.dequantize %w : !w -> tensor<3x4xf32>
  %y = nn.embedding %d, %i : (tensor<3x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
  func.return %y : tensor<5x4xf32>
}
