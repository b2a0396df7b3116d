// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @indexing(
// CHECK-NEXT:    %rows = nn.gather %x[%i] {dim = 0 : i64} : (tensor<4x5xf32>, tensor<2x1xi64>) -> tensor<2x5xf32>
// CHECK-NEXT:    %put = nn.scatter %s into %x[%j] {dim = 0 : i64, reduce = "add"} : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT:    %order = nn.argsort %x {dim = 1 : i64, descending = true} : tensor<4x5xf32> -> tensor<4x5xi64>
// CHECK-NEXT:    %sums = nn.scan "add", %x {dim = 0 : i64} : tensor<4x5xf32> -> tensor<4x5xf32>
// CHECK-NEXT:    %places = nn.scan "argmax", %x {dim = 0 : i64} : tensor<4x5xf32> -> tensor<4x5xi64>
// CHECK-NEXT:    %least = nn.amin %x {dim = array<i64: 1>, keepdim = true} : tensor<4x5xf32> -> tensor<4x1xf32>
// CHECK-NEXT:    %product = nn.prod %x {dim = array<i64>, keepdim = false} : tensor<4x5xf32> -> tensor<f32>
// CHECK-NEXT:    %where = nn.argmax %x {dim = array<i64: 0>, keepdim = false} : tensor<4x5xf32> -> tensor<5xi64>
// CHECK-NEXT:    %there = nn.argmin %x {dim = array<i64: 1>, keepdim = true} : tensor<4x5xf32> -> tensor<4x1xi64>
func.func @indexing(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %j: tensor<2x5xi64>, %s: tensor<2x5xf32>) {
  %rows = nn.gather %x[%i] {dim = 0 : i64} : (tensor<4x5xf32>, tensor<2x1xi64>) -> tensor<2x5xf32>
  %put = nn.scatter %s into %x[%j] {dim = 0 : i64, reduce = "add"} : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  %order = nn.argsort %x {dim = 1 : i64, descending = true} : tensor<4x5xf32> -> tensor<4x5xi64>
  %sums = nn.scan "add", %x {dim = 0 : i64} : tensor<4x5xf32> -> tensor<4x5xf32>
  %places = nn.scan "argmax", %x {dim = 0 : i64} : tensor<4x5xf32> -> tensor<4x5xi64>
  %least = nn.amin %x {dim = array<i64: 1>, keepdim = true} : tensor<4x5xf32> -> tensor<4x1xf32>
  %product = nn.prod %x {dim = array<i64>, keepdim = false} : tensor<4x5xf32> -> tensor<f32>
  %where = nn.argmax %x {dim = array<i64: 0>, keepdim = false} : tensor<4x5xf32> -> tensor<5xi64>
  %there = nn.argmin %x {dim = array<i64: 1>, keepdim = true} : tensor<4x5xf32> -> tensor<4x1xi64>
  func.return
}
