// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xi32>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error@+1 {{the input must hold plain 8-bit codes}}
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi32>, tensor<f32>, tensor<i32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error@+1 {{the result must be f32}}
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xi32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i64>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error@+1 {{scale and zero point must be f32 and i32, are f32 and i64}}
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<f32>, tensor<i64>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<2xf32>, %z: tensor<2xi32>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error@+1 {{scale [2] and zero point [2] are not one number, or one per row}}
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<2xf32>, tensor<2xi32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.5:3>>) {
  // expected-error@+1 {{the weight must be quantized in signed 8 bits, per tensor or along axis 0, with zero points 0}}
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<4x3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<4x5x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error@+1 {{input has [3] features, the weight takes 5}}
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<4x5x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error@+1 {{dynamic_linear takes [..., K] and a weight [N, K]}}
  %y = nn.dynamic_linear %x, %s, %z, %w : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.5>>, %b: tensor<3xf32>) {
  // expected-error@+1 {{bias must have shape [4]}}
  %y = nn.dynamic_linear %x, %s, %z, %w bias(%b) : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>, tensor<3xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xi8>, %s: tensor<f32>, %z: tensor<i32>, %w: tensor<4x3x!quant.uniform<i8:f32, 0.5>>, %b: tensor<4xf64>) {
  // expected-error@+1 {{the bias must be f32}}
  %y = nn.dynamic_linear %x, %s, %z, %w bias(%b) : (tensor<2x3xi8>, tensor<f32>, tensor<i32>, tensor<4x3x!quant.uniform<i8:f32, 0.5>>, tensor<4xf64>) -> tensor<2x4xf32>
  func.return
}
