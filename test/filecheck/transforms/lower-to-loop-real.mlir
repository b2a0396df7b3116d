// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p lower-to-loop --split-input-file | filecheck %s
// RUN: qcomp-opt %s -p 'lower-to-loop{target="x86-64-avx512vnni"}' --split-input-file | filecheck %s --check-prefix=VNNI

// exp is a fixed sequence of float32 operations: clamp, whole multiple of ln 2, polynomial, power of two.
// CHECK-LABEL: func.func private @exp_0(%x0: memref<5xf32>, %y: memref<5xf32>)
// CHECK:         loop.clamp %{{[^ ]+}} {min = -1.040000e+02 : f32, max = 8.900000e+01 : f32} : f32 -> f32
// CHECK:         math.roundeven
// CHECK-COUNT-5: arith.addf
// CHECK:         loop.scale %{{[^ ]+}}, %{{[^ ]+}} : f32
// VNNI-LABEL:  func.func private @exp_0
// VNNI:          loop.scale %{{[^ ]+}}, %{{[^ ]+}} : vector<16xf32>
// VNNI-NEXT:     loop.store {{.*}} over (0) valid 5
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %y = nn.exp %x : tensor<5xf32> -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// -----

// Between 8-bit codes any function is a table, and one that only cuts codes off two comparisons, 64 bytes at a time.
!a = tensor<3x43x!quant.uniform<u8:f32, 0.02:114>>
!b = tensor<3x43x!quant.uniform<i8:f32, 0.007:-3>>
// CHECK-LABEL: func.func private @sigmoid_0(%x: memref<129xi8>, %table: memref<256xi8>, %y: memref<129xi8>)
// CHECK:         loop.lookup %table[%{{[^ ]+}}] : memref<256xi8>, i8 -> i8
// CHECK-LABEL: func.func private @relu_0(%x: memref<129xi8>, %y: memref<129xi8>)
// CHECK:         arith.constant 114 : i8
// CHECK-NEXT:    arith.maxui
// VNNI-LABEL:  func.func private @sigmoid_0
// VNNI:          loop.lookup {{.*}} : memref<256xi8>, vector<64xi8> -> vector<64xi8>
// VNNI:          loop.load {{.*}} valid 1 : memref<129xi8>, vector<16xi8>
// VNNI-LABEL:  func.func private @relu_0
// VNNI:          arith.maxui {{.*}} : vector<64xi8>
func.func @main(%x: !a) -> (!b, !a) {
  %s = nn.sigmoid %x : !a -> !b
  %r = nn.relu %x : !a -> !a
  func.return %s, %r : !b, !a
}

// -----

// The sum of a softmax has 16 partial sums on every target; what lies beyond the end counts as -inf and as 0.
// CHECK-LABEL: func.func private @softmax_0(%x: memref<3x19xf32>, %y: memref<3x19xf32>)
// CHECK:         loop.for %{{[^ ]+}} = [0] to [3] parallel {
// CHECK:           loop.fill {{.*}} {first = 3 : i64, value = 0xff800000 : f32} : vector<16xf32>
// CHECK:           loop.reduce "max", %{{[^ ]+}} : vector<16xf32> -> f32
// CHECK:           loop.scale {{.*}} : f32
// CHECK:           loop.fill {{.*}} {first = 3 : i64, value = 0.000000e+00 : f32} : vector<16xf32>
// CHECK:           loop.reduce "add", %{{[^ ]+}} : vector<16xf32> -> f32
// CHECK:           arith.divf
// VNNI-LABEL:  func.func private @softmax_0
// VNNI:          loop.reduce "max"
// VNNI:          loop.scale {{.*}} : vector<16xf32>
// VNNI:          loop.reduce "add"
func.func @main(%x: tensor<3x19xf32>) -> tensor<3x19xf32> {
  %y = nn.softmax %x {dim = -1 : i64} : tensor<3x19xf32> -> tensor<3x19xf32>
  func.return %y : tensor<3x19xf32>
}

// -----

// A mean over the last dimension has its partial sums in lanes; over another one lanes hold kept elements.
// CHECK-LABEL: func.func private @mean_0(%x: memref<4x18xf32>, %y: memref<4xf32>)
// CHECK:         loop.reduce "add", %{{[^ ]+}} : vector<16xf32> -> f32
// CHECK:         arith.constant 1.800000e+01 : f32
// CHECK-NEXT:    arith.divf
// CHECK-LABEL: func.func private @mean_1(%x: memref<4x18xf32>, %y: memref<18xf32>)
// CHECK-NOT:     loop.reduce
// VNNI-LABEL:  func.func private @mean_1
// VNNI-COUNT-4:  loop.load {{.*}} over (1) : memref<4x18xf32>, vector<16xf32>
func.func @main(%x: tensor<4x18xf32>) -> (tensor<4xf32>, tensor<18xf32>) {
  %y = nn.mean %x {dim = array<i64: 1>, keepdim = false} : tensor<4x18xf32> -> tensor<4xf32>
  %z = nn.mean %x {dim = array<i64: 0>, keepdim = false} : tensor<4x18xf32> -> tensor<18xf32>
  func.return %y, %z : tensor<4xf32>, tensor<18xf32>
}

// -----

// Indices are kept inside the table.
// CHECK-LABEL: func.func private @embedding_0(%weight: memref<7x3xf32>, %indices: memref<2xi64>, %y: memref<2x3xf32>)
// CHECK:         arith.constant 0 : i64
// CHECK:         arith.constant 6 : i64
// CHECK:         arith.maxsi
// CHECK-NEXT:    arith.minsi
// CHECK-NEXT:    arith.index_cast %{{[^ ]+}} : i64 to index
func.func @main(%w: tensor<7x3xf32>, %i: tensor<1x2xi64>) -> tensor<1x2x3xf32> {
  %y = nn.embedding %w, %i : (tensor<7x3xf32>, tensor<1x2xi64>) -> tensor<1x2x3xf32>
  func.return %y : tensor<1x2x3xf32>
}

// -----

// Register tiles where columns fill registers, strips of rows for the rest.
// VNNI-LABEL:  func.func private @matmul_0(%x: memref<2x9x5xf32>, %weight: memref<2x5x35xf32>, %y: memref<2x9x35xf32>)
// VNNI:          loop.contract {{.*}} : vector<9x1xf32>, vector<2x16x1xf32> -> vector<9x2x16xf32>
// VNNI:          loop.load %weight{{.*}} over (2) valid 3 : memref<2x5x35xf32>, vector<16xf32>
// VNNI:          loop.multiply_add
func.func @main(%a: tensor<2x9x5xf32>, %b: tensor<2x5x35xf32>) -> tensor<2x9x35xf32> {
  %y = nn.matmul %a, %b : (tensor<2x9x5xf32>, tensor<2x5x35xf32>) -> tensor<2x9x35xf32>
  func.return %y : tensor<2x9x35xf32>
}

// -----

// A pool lies channels last; what a linear reads is row-major, and the permute between them moves nothing.
// CHECK:       // -----
// CHECK:       func.func @main
// CHECK:         func.call @max_pool2d_0
// CHECK-NOT:     @permute
// CHECK:         func.call @layer_norm_0
func.func @main(%x: tensor<1x5x4x6xf32>) -> tensor<1x2x3x5xf32> {
  %p = nn.max_pool2d %x {kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, ceil_mode = false} : tensor<1x5x4x6xf32> -> tensor<1x5x2x3xf32>
  %r = nn.permute %p {dims = array<i64: 0, 2, 3, 1>} : tensor<1x5x2x3xf32> -> tensor<1x2x3x5xf32>
  %n = nn.layer_norm %r {normalized_shape = array<i64: 5>, eps = 1.0e-05 : f64} : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  func.return %n : tensor<1x2x3x5xf32>
}
