// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s --split-input-file -p "lower-to-loop{target=generic},plan-memory" | filecheck %s
// RUN: qcomp-opt %s --split-input-file -p "lower-to-loop{target=x86-64-avx512vnni},plan-memory" | filecheck %s --check-prefix VECTOR

// A symbolic batch is an outer loop; all else is static. Kernels list the symbols they take.
// CHECK-LABEL: func.func private @conv2d_0
// CHECK-SAME:  memref<?x4x12xf32, #nn.dims<[b, 4, 12]>>
// CHECK-SAME:  attributes {nn.symbols = [#nn.symbol<b, 0>]}
// CHECK:       %[[B:.*]] = loop.size {value = #nn.dim<b>} : index
// CHECK:       loop.for %{{.*}} = [0] to [%[[B]]] parallel
// The arena is what it is for a batch of 1, times the batch.
// CHECK:       func.func @main(%x: memref<?x3x4x4xf32, #nn.dims<[b, 3, 4, 4]>>
// CHECK-SAME:  %arena: memref<?xi8, #nn.dims<[320 * b + 64]>>
// CHECK-SAME:  nn.symbols = [#nn.symbol<b, 0, 9>]
// CHECK:       loop.view %arena {offset = #nn.dim<192 * b>} : memref<?xi8, #nn.dims<[320 * b + 64]>> to memref<?x2x3x5xf32, #nn.dims<[b, 2, 3, 5]>>
func.func @main(%x: tensor<?x3x4x4xf32, #nn.dims<[b, 3, 4, 4]>>) -> tensor<?x5x2x3xf32, #nn.dims<[b, 5, 2, 3]>> attributes {nn.symbols = [#nn.symbol<b, 0, 9>]} {
  %w = nn.constant dense<0.5> : tensor<5x3x3x2xf32>
  %c = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x3x4x4xf32, #nn.dims<[b, 3, 4, 4]>>, tensor<5x3x3x2xf32>) -> tensor<?x5x2x3xf32, #nn.dims<[b, 5, 2, 3]>>
  func.return %c : tensor<?x5x2x3xf32, #nn.dims<[b, 5, 2, 3]>>
}

// -----

// Whole registers, then what is left over: none when the size is a multiple whatever the symbol is.
// VECTOR-LABEL: func.func private @relu_0
// VECTOR:       loop.size {value = #nn.dim<16 * ((5 * s) floordiv 16)>} : index
// VECTOR:       vector<16xf32>
// VECTOR:       valid #nn.dim<-16 * ((5 * s) floordiv 16) + 5 * s>
// VECTOR-LABEL: func.func private @relu_1
// VECTOR:       loop.size {value = #nn.dim<32 * s>} : index
// VECTOR-NOT:   valid
// VECTOR-LABEL: func.func @main
func.func @main(%x: tensor<?x5xf32, #nn.dims<[s, 5]>>, %y: tensor<?x32xf32, #nn.dims<[s, 32]>>) -> (tensor<?x5xf32, #nn.dims<[s, 5]>>, tensor<?x32xf32, #nn.dims<[s, 32]>>) attributes {nn.symbols = [#nn.symbol<s, 0>]} {
  %a = nn.relu %x : tensor<?x5xf32, #nn.dims<[s, 5]>> -> tensor<?x5xf32, #nn.dims<[s, 5]>>
  %b = nn.relu %y : tensor<?x32xf32, #nn.dims<[s, 32]>> -> tensor<?x32xf32, #nn.dims<[s, 32]>>
  func.return %a, %b : tensor<?x5xf32, #nn.dims<[s, 5]>>, tensor<?x32xf32, #nn.dims<[s, 32]>>
}

// -----

// A width that depends on symbols is cut into whole tiles and, from there on, halves of them.
// VECTOR-LABEL: func.func private @conv2d_0
// VECTOR-SAME:  attributes {nn.symbols = [#nn.symbol<h, 0>, #nn.symbol<w, 0>]}
// VECTOR:       loop.for %{{.*}} = [0] to [%{{.*}}] parallel
// VECTOR:       loop.for %{{.*}} = [0] to [%{{.*}}] step 16
// VECTOR:       loop.for %{{.*}} = [%{{.*}}] to [%{{.*}}] step 8
// VECTOR:       loop.for %{{.*}} = [%{{.*}}] to [%{{.*}}] step 4
// VECTOR:       loop.for %{{.*}} = [%{{.*}}] to [%{{.*}}] step 2
// VECTOR:       loop.for %{{.*}} = [%{{.*}}] to [%{{.*}}] {
// VECTOR-LABEL: func.func @main
func.func @main(%x: tensor<1x16x?x?xf32, #nn.dims<[1, 16, h, w]>>) -> tensor<1x16x?x?xf32, #nn.dims<[1, 16, h, w]>> attributes {nn.symbols = [#nn.symbol<h, 0>, #nn.symbol<w, 0>]} {
  %w = nn.constant dense<0.5> : tensor<16x16x3x3xf32>
  %c = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x16x?x?xf32, #nn.dims<[1, 16, h, w]>>, tensor<16x16x3x3xf32>) -> tensor<1x16x?x?xf32, #nn.dims<[1, 16, h, w]>>
  func.return %c : tensor<1x16x?x?xf32, #nn.dims<[1, 16, h, w]>>
}

// -----

// A pool over all of a symbolic size counts its elements when it runs.
// CHECK-LABEL: func.func private @adaptive_avg_pool2d_0
// CHECK:       arith.muli %{{.*}}, %{{.*}} : index
// CHECK:       loop.to_float
// CHECK:       arith.divf
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x3x?x?xf32, #nn.dims<[1, 3, h, w]>>) -> tensor<1x3x1x1xf32> attributes {nn.symbols = [#nn.symbol<h, 1>, #nn.symbol<w, 1>]} {
  %y = nn.adaptive_avg_pool2d %x {output_size = array<i64: 1, 1>} : tensor<1x3x?x?xf32, #nn.dims<[1, 3, h, w]>> -> tensor<1x3x1x1xf32>
  func.return %y : tensor<1x3x1x1xf32>
}

// -----

// Sums of codes: in 32 bits where the range of the symbol proves that they fit, else in 64.
// CHECK-LABEL: func.func private @sum_0
// CHECK:       loop.extend
// CHECK-NOT:   arith.extsi
// CHECK-LABEL: func.func private @sum_1
// CHECK:       arith.extsi %{{.*}} : i32 to i64
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<3x?x!quant.uniform<i8:f32, 0.5:7>, #nn.dims<[3, n]>>, %y: tensor<3x?x!quant.uniform<i8:f32, 0.5:7>, #nn.dims<[3, m]>>) -> (tensor<3xf32>, tensor<3xf32>) attributes {nn.symbols = [#nn.symbol<n, 0, 1000000>, #nn.symbol<m, 0>]} {
  %a = nn.sum %x {dim = array<i64: 1>, keepdim = false} : tensor<3x?x!quant.uniform<i8:f32, 0.5:7>, #nn.dims<[3, n]>> -> tensor<3xf32>
  %b = nn.sum %y {dim = array<i64: 1>, keepdim = false} : tensor<3x?x!quant.uniform<i8:f32, 0.5:7>, #nn.dims<[3, m]>> -> tensor<3xf32>
  func.return %a, %b : tensor<3xf32>, tensor<3xf32>
}

// -----

// What needs a first element runs only where there is one.
// CHECK-LABEL: func.func private @scan_0
// CHECK:       %[[N:.*]] = loop.size {value = #nn.dim<n>} : index
// CHECK:       loop.for %{{.*}} = [0] to [1, %[[N]]]
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, #nn.dims<[n]>>) -> tensor<?xf32, #nn.dims<[n]>> attributes {nn.symbols = [#nn.symbol<n, 0>]} {
  %y = nn.scan "add", %x {dim = 0 : i64} : tensor<?xf32, #nn.dims<[n]>> -> tensor<?xf32, #nn.dims<[n]>>
  func.return %y : tensor<?xf32, #nn.dims<[n]>>
}
