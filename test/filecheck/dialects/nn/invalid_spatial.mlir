// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<1x3x5x4xf32>, %w: tensor<7x3x3x2xf32>) {
  // expected-error@+1 {{attributes need 2 entries}}
  %t = nn.conv_transpose2d %x, %w {stride = array<i64: 2>, padding = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x5x4xf32>, tensor<7x3x3x2xf32>) -> tensor<1x7x11x9xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x3x5x4xf32>, %w: tensor<7x3x3x2xf32>) {
  // expected-error@+1 {{output_padding must be smaller than stride or dilation}}
  %t = nn.conv_transpose2d %x, %w {stride = array<i64: 2, 2>, padding = array<i64: 0, 0>, output_padding = array<i64: 2, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x5x4xf32>, tensor<7x3x3x2xf32>) -> tensor<1x7x13x8xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x3x1x4xf32>, %w: tensor<7x3x3x2xf32>) {
  // expected-error@+1 {{padding leaves nothing of dimension 2}}
  %t = nn.conv_transpose2d %x, %w {stride = array<i64: 2, 2>, padding = array<i64: 2, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x1x4xf32>, tensor<7x3x3x2xf32>) -> tensor<1x7x1x8xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x3x5xf32>, %w: tensor<7x3x3x2xf32>) {
  // expected-error@+1 {{input must have rank 4}}
  %t = nn.conv_transpose2d %x, %w {stride = array<i64: 2, 2>, padding = array<i64: 2, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x5xf32>, tensor<7x3x3x2xf32>) -> tensor<1x7x1x8xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x3x0x4xf32>) {
  // expected-error@+1 {{adaptive windows over no elements}}
  %t = nn.adaptive_max_pool2d %x {output_size = array<i64: 2, 4>} : tensor<1x3x0x4xf32> -> tensor<1x3x2x4xf32>
  func.return
}
