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

// -----

func.func @f(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{index 3 is outside 0 to 2}}
  %t = nn.take %x {dim = 1 : i64, indices = array<i64: 0, 3>} : tensor<2x3x4xf32> -> tensor<2x2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x?x4xf32>) {
  // expected-error@+1 {{elements of a dimension of unknown size}}
  %t = nn.take %x {dim = 1 : i64, indices = array<i64: 0, 1>} : tensor<2x?x4xf32> -> tensor<2x2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %i: tensor<5xi64>, %w: tensor<5x2xf32>) {
  // expected-error@+1 {{indices must have rank 2}}
  %t = nn.resample %x, %i, %w {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<5xi64>, tensor<5x2xf32>) -> tensor<2x3x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %i: tensor<5x3xi64>, %w: tensor<5x2xf32>) {
  // expected-error@+1 {{indices and weights must have one shape}}
  %t = nn.resample %x, %i, %w {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<5x3xi64>, tensor<5x2xf32>) -> tensor<2x3x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x2x13xf32>, %h: tensor<2x4xf32>, %w: tensor<12x4xf32>) {
  // expected-error@+1 {{input must be [T, N, 3 * H]}}
  %t = nn.gru %x, %h, %w {reverse = false} : (tensor<5x2x13xf32>, tensor<2x4xf32>, tensor<12x4xf32>) -> tensor<5x2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x2x12xf32>, %h: tensor<4xf32>, %w: tensor<12x4xf32>) {
  // expected-error@+1 {{hidden must be [N, P]}}
  %t = nn.gru %x, %h, %w {reverse = false} : (tensor<5x2x12xf32>, tensor<4xf32>, tensor<12x4xf32>) -> tensor<5x2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x2x12xf32>, %h: tensor<2x4xf32>, %w: tensor<4x12xf32>) {
  // expected-error@+1 {{an operand should have shape [12, 4]}}
  %t = nn.gru %x, %h, %w {reverse = false} : (tensor<5x2x12xf32>, tensor<2x4xf32>, tensor<4x12xf32>) -> tensor<5x2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x2x12xf32>, %h: tensor<2x5xf32>, %w: tensor<12x5xf32>) {
  // expected-error@+1 {{without a projection the hidden state has H elements}}
  %t = nn.gru %x, %h, %w {reverse = false} : (tensor<5x2x12xf32>, tensor<2x5xf32>, tensor<12x5xf32>) -> tensor<5x2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<5x2x4xf32>, %h: tensor<2x4xf32>, %w: tensor<4x4xf32>) {
  // expected-error@+1 {{nonlinearity must be "tanh" or "relu"}}
  %t = nn.rnn %x, %h, %w {reverse = false, nonlinearity = "gelu"} : (tensor<5x2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<5x2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %g: tensor<2x6x7x2xf32>) {
  // expected-error@+1 {{input must be [N, C, H, W], H and W not 0}}
  %t = nn.grid_sample %x, %g {mode = "nearest", padding_mode = "zeros", align_corners = true} : (tensor<2x3x4xf32>, tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4x5xf32>, %g: tensor<2x6x7x3xf32>) {
  // expected-error@+1 {{grid must be [N, H, W, 2]}}
  %t = nn.grid_sample %x, %g {mode = "nearest", padding_mode = "zeros", align_corners = true} : (tensor<2x3x4x5xf32>, tensor<2x6x7x3xf32>) -> tensor<2x3x6x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4x5xf32>, %g: tensor<1x6x7x2xf32>) {
  // expected-error@+1 {{input and grid must have one batch}}
  %t = nn.grid_sample %x, %g {mode = "nearest", padding_mode = "zeros", align_corners = true} : (tensor<2x3x4x5xf32>, tensor<1x6x7x2xf32>) -> tensor<2x3x6x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4x5xf32>, %g: tensor<2x6x7x2xf32>) {
  // expected-error@+1 {{mode must be "bilinear" or "nearest"}}
  %t = nn.grid_sample %x, %g {mode = "cubic", padding_mode = "zeros", align_corners = true} : (tensor<2x3x4x5xf32>, tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x4x5xf32>, %g: tensor<2x6x7x2xf32>) {
  // expected-error@+1 {{padding_mode must be "zeros", "border" or "reflection"}}
  %t = nn.grid_sample %x, %g {mode = "nearest", padding_mode = "none", align_corners = true} : (tensor<2x3x4x5xf32>, tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32>
  func.return
}
