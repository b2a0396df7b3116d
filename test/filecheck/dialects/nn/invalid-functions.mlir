// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{sine is no function of one number}}
  %t = nn.function %x {function = "sine"} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{elu takes 3 parameters, 1 are given}}
  %t = nn.function %x {function = "elu", parameters = array<f64: 1.0>} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi32>) {
  // expected-error@+1 {{function log of i32 does not exist}}
  %t = nn.function %x {function = "log"} : tensor<2x3xi32> -> tensor<2x3xi32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{function xor of f32 does not exist}}
  %t = nn.binary %x, %x {function = "xor"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{log is no function of two numbers}}
  %t = nn.binary %x, %x {function = "log"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{the predicate must be one of eq, ne, lt, le, gt, ge}}
  %t = nn.compare "above", %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error@+1 {{a comparison gives i1}}
  %t = nn.compare "lt", %x, %x : (tensor<2x3x!quant.uniform<i8:f32, 0.5>>, tensor<2x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x3xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{the condition must be i1}}
  %t = nn.select %x, %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
