// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @cond(
// CHECK-NEXT:     %y = nn.cond %p : (tensor<i1>) -> tensor<2xf32> {
// CHECK-NEXT:       %a = nn.relu %x : tensor<2xf32> -> tensor<2xf32>
// CHECK-NEXT:       nn.yield %a : tensor<2xf32>
// CHECK-NEXT:     } else {
// CHECK-NEXT:       nn.yield %x : tensor<2xf32>
// CHECK-NEXT:     }
func.func @cond(%p: tensor<i1>, %x: tensor<2xf32>) {
  %y = nn.cond %p : (tensor<i1>) -> tensor<2xf32> {
    %a = nn.relu %x : tensor<2xf32> -> tensor<2xf32>
    nn.yield %a : tensor<2xf32>
  } else {
    nn.yield %x : tensor<2xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @loop(
// CHECK-NEXT:     %n, %s = nn.while(%i, %x) : (tensor<i64>, tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>) {
// CHECK-NEXT:     ^bb0(%i1: tensor<i64>, %x1: tensor<2xf32>):
// CHECK-NEXT:       nn.yield %p : tensor<i1>
// CHECK-NEXT:     } do {
// CHECK-NEXT:     ^bb0(%i2: tensor<i64>, %x2: tensor<2xf32>):
// CHECK-NEXT:       %a = nn.relu %x2 : tensor<2xf32> -> tensor<2xf32>
// CHECK-NEXT:       nn.yield %i2, %a : tensor<i64>, tensor<2xf32>
// CHECK-NEXT:     }
func.func @loop(%p: tensor<i1>, %i: tensor<i64>, %x: tensor<2xf32>) {
  %n, %s = nn.while(%i, %x) : (tensor<i64>, tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>) {
  ^bb0(%i1: tensor<i64>, %x1: tensor<2xf32>):
    nn.yield %p : tensor<i1>
  } do {
  ^bb0(%i2: tensor<i64>, %x2: tensor<2xf32>):
    %a = nn.relu %x2 : tensor<2xf32> -> tensor<2xf32>
    nn.yield %i2, %a : tensor<i64>, tensor<2xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @scan(
// CHECK-NEXT:     %h, %ys = nn.iterate(%x : tensor<2xf32>) over %xs : tensor<5x3xf32> -> tensor<2xf32>, tensor<5x3xf32> {
// CHECK-NEXT:     ^bb0(%c: tensor<2xf32>, %e: tensor<3xf32>):
// CHECK-NEXT:       nn.yield %c, %e : tensor<2xf32>, tensor<3xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %zs = nn.iterate() over %xs : tensor<5x3xf32> -> tensor<5x3xf32> {
// CHECK-NEXT:     ^bb0(%e1: tensor<3xf32>):
// CHECK-NEXT:       nn.yield %e1 : tensor<3xf32>
// CHECK-NEXT:     }
func.func @scan(%x: tensor<2xf32>, %xs: tensor<5x3xf32>) {
  %h, %ys = nn.iterate(%x : tensor<2xf32>) over %xs : tensor<5x3xf32> -> tensor<2xf32>, tensor<5x3xf32> {
  ^bb0(%c: tensor<2xf32>, %e: tensor<3xf32>):
    nn.yield %c, %e : tensor<2xf32>, tensor<3xf32>
  }
  %zs = nn.iterate() over %xs : tensor<5x3xf32> -> tensor<5x3xf32> {
  ^bb0(%e1: tensor<3xf32>):
    nn.yield %e1 : tensor<3xf32>
  }
  func.return
}
