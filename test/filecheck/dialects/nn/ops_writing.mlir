// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @slices(
// CHECK-NEXT:      %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 2 : i64, step = 3 : i64} : tensor<3x2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
func.func @slices(%x: tensor<3x7xf32>, %s: tensor<3x2xf32>) {
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 2 : i64, step = 3 : i64} : tensor<3x2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// CHECK-LABEL: func.func @indices(
// CHECK-NEXT:      %t = nn.index_copy %s into %x[%i] {dim = 1 : i64} : tensor<3x4x2xi8> into tensor<3x7x2xi8>[tensor<4xi64>] -> tensor<3x7x2xi8>
func.func @indices(%x: tensor<3x7x2xi8>, %s: tensor<3x4x2xi8>, %i: tensor<4xi64>) {
  %t = nn.index_copy %s into %x[%i] {dim = 1 : i64} : tensor<3x4x2xi8> into tensor<3x7x2xi8>[tensor<4xi64>] -> tensor<3x7x2xi8>
  func.return
}
