// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>) {
  // expected-error@+1 {{dim 2 is outside rank 2}}
  %r = nn.gather %x[%i] {dim = 2 : i64} : (tensor<4x5xf32>, tensor<2x1xi64>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{input and indices need the same rank}}
  %r = nn.gather %x[%i] {dim = 0 : i64} : (tensor<4x5xf32>, tensor<2xi64>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<2x1xf32>) {
  // expected-error@+1 {{indices must be integers}}
  %r = nn.gather %x[%i] {dim = 0 : i64} : (tensor<4x5xf32>, tensor<2x1xf32>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %j: tensor<2x5xi64>, %s: tensor<2x5xf32>) {
  // expected-error@+1 {{reduce must be one of none, add, mul, max, min}}
  %r = nn.scatter %s into %x[%j] {dim = 0 : i64, reduce = "mean"} : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %j: tensor<2xi64>, %s: tensor<2x5xf32>) {
  // expected-error@+1 {{input, indices and source need the same rank}}
  %r = nn.scatter %s into %x[%j] {dim = 0 : i64, reduce = "none"} : (tensor<4x5xf32>, tensor<2xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %j: tensor<2x5xi64>, %s: tensor<2x1xf32>) {
  // expected-error@+1 {{indices do not broadcast to source}}
  %r = nn.scatter %s into %x[%j] {dim = 0 : i64, reduce = "none"} : (tensor<4x5xf32>, tensor<2x5xi64>, tensor<2x1xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %j: tensor<2x6xi64>, %s: tensor<2x6xf32>) {
  // expected-error@+1 {{source is longer than input}}
  %r = nn.scatter %s into %x[%j] {dim = 0 : i64, reduce = "none"} : (tensor<4x5xf32>, tensor<2x6xi64>, tensor<2x6xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xi1>) {
  // expected-error@+1 {{sums of i1 need an integer type}}
  %r = nn.scan "add", %x {dim = 0 : i64} : tensor<4x5xi1> -> tensor<4x5xi1>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{the kind must be one of add, mul, max, min, logaddexp, argmax, argmin}}
  %r = nn.scan "mean", %x {dim = 0 : i64} : tensor<4x5xf32> -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{one dimension is searched}}
  %r = nn.argmax %x {dim = array<i64: 0, 1>, keepdim = false} : tensor<4x5xf32> -> tensor<i64>
  func.return
}
