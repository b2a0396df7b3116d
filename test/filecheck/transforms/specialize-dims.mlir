// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p 'specialize-dims{dims="b=2,x.1=5"}' --verify-rewrites | filecheck %s
// RUN: qcomp-opt %s -p 'specialize-dims{dims="s=5"}' | filecheck %s --check-prefix PART
// RUN: not qcomp-opt %s -p 'specialize-dims{dims="t=5"}' 2>&1 | filecheck %s --check-prefix NAME
// RUN: not qcomp-opt %s -p 'specialize-dims{dims="b=9"}' 2>&1 | filecheck %s --check-prefix RANGE
// RUN: not qcomp-opt %s -p 'specialize-dims{dims="b"}' 2>&1 | filecheck %s --check-prefix FORM
// RUN: not qcomp-opt %s -p 'specialize-dims{dims="s=5,x.1=6"}' 2>&1 | filecheck %s --check-prefix TWICE

// NAME: the program has no symbolic size t (hint: there are b, s, x.0, x.1)
// RANGE: b is 9, allowed are 0 to 8
// FORM: 'b' is no NAME=SIZE
// TWICE: two sizes for s: 5 and 6

// CHECK-LABEL: func.func @main(%x: tensor<2x5x4xf32> {nn.name = "x"}) -> tensor<10x4xf32>
// CHECK-NOT: nn.symbols
// PART-LABEL: func.func @main(%x: tensor<?x5x4xf32, #nn.dims<[b, 5, 4]>> {nn.name = "x"}) -> tensor<?x4xf32, #nn.dims<[5 * b, 4]>>
// PART-SAME: attributes {nn.symbols = [#nn.symbol<b, 0, 8>]}
func.func @main(%x: tensor<?x?x4xf32, #nn.dims<[b, s, 4]>> {nn.name = "x"}) -> tensor<?x4xf32, #nn.dims<[b * s, 4]>> attributes {nn.symbols = [#nn.symbol<b, 0, 8>, #nn.symbol<s, 0>]} {
  // CHECK: nn.dim_value {value = 4 : i64} : tensor<i64>
  %v = nn.dim_value {value = #nn.dim<s - 1>} : tensor<i64>
  %f = nn.cast %v : tensor<i64> -> tensor<f32>
  // CHECK: nn.mul %x, %f : (tensor<2x5x4xf32>, tensor<f32>) -> tensor<2x5x4xf32>
  %m = nn.mul %x, %f : (tensor<?x?x4xf32, #nn.dims<[b, s, 4]>>, tensor<f32>) -> tensor<?x?x4xf32, #nn.dims<[b, s, 4]>>
  // CHECK: nn.reshape {{.*}} -> tensor<10x4xf32>
  // PART: nn.reshape %m : tensor<?x5x4xf32, #nn.dims<[b, 5, 4]>> -> tensor<?x4xf32, #nn.dims<[5 * b, 4]>>
  %r = nn.reshape %m : tensor<?x?x4xf32, #nn.dims<[b, s, 4]>> -> tensor<?x4xf32, #nn.dims<[b * s, 4]>>
  func.return %r : tensor<?x4xf32, #nn.dims<[b * s, 4]>>
}
