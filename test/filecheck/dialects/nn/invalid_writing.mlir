// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+1 {{step must be at least 1}}
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 2 : i64, step = 0 : i64} : tensor<3x2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+1 {{start must be at least 0}}
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = -1 : i64, step = 3 : i64} : tensor<3x2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+1 {{source does not fit into base}}
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 4 : i64, step = 3 : i64} : tensor<3x2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{base and source need the same rank}}
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 2 : i64, step = 3 : i64} : tensor<2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+1 {{dim 2 is outside rank 2}}
  %t = nn.insert_slice %s into %x {dim = 2 : i64, start = 2 : i64, step = 3 : i64} : tensor<3x2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<2x2xf32>) {
  // expected-error@+1 {{base and source differ outside dim}}
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 2 : i64, step = 3 : i64} : tensor<2x2xf32> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x2xi8>) {
  // expected-error@+1 {{operands of f32 and i8: nn.cast one of them}}
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 2 : i64, step = 3 : i64} : tensor<3x2xi8> into tensor<3x7xf32> -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+1 {{result has shape}}
  %t = nn.insert_slice %s into %x {dim = 1 : i64, start = 2 : i64, step = 3 : i64} : tensor<3x2xf32> into tensor<3x7xf32> -> tensor<3x8xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x4xf32>, %i: tensor<4xf32>) {
  // expected-error@+1 {{indices must be integers}}
  %t = nn.index_copy %s into %x[%i] {dim = 1 : i64} : tensor<3x4xf32> into tensor<3x7xf32> [tensor<4xf32>] -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x4xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{source needs one element per index}}
  %t = nn.index_copy %s into %x[%i] {dim = 1 : i64} : tensor<3x4xf32> into tensor<3x7xf32> [tensor<5xi64>] -> tensor<3x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x7xf32>, %s: tensor<3x4xf32>, %i: tensor<4x1xi64>) {
  // expected-error@+1 {{source needs one element per index}}
  %t = nn.index_copy %s into %x[%i] {dim = 1 : i64} : tensor<3x4xf32> into tensor<3x7xf32> [tensor<4x1xi64>] -> tensor<3x7xf32>
  func.return
}
