// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @transposed(
// CHECK-NEXT:      %one = nn.conv_transpose1d %x1, %w1 {stride = array<i64: 4>, padding = array<i64: 2>, output_padding = array<i64: 1>, dilation = array<i64: 1>, groups = 2 : i64} : (tensor<2x6x9xf32>, tensor<8x3x4xf32>) -> tensor<2x8x33xf32>
// CHECK-NEXT:      %two = nn.conv_transpose2d %x2, %w2 bias(%b2) residual(%r2) {stride = array<i64: 2, 3>, padding = array<i64: 1, 0>, output_padding = array<i64: 1, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, activation = #nn.relu} : (tensor<1x3x5x4xf32>, tensor<7x3x3x2xf32>, tensor<7xf32>, tensor<1x7x10x11xf32>) -> tensor<1x7x10x11xf32>
// CHECK-NEXT:      %three = nn.conv_transpose3d %x3, %w3 {stride = array<i64: 1, 2, 1>, padding = array<i64: 0, 0, 1>, output_padding = array<i64: 0, 0, 0>, dilation = array<i64: 1, 1, 2>, groups = 1 : i64} : (tensor<2x3x3x4x2xf32>, tensor<5x3x1x2x3xf32>) -> tensor<2x5x3x8x4xf32>
func.func @transposed(%x1: tensor<2x6x9xf32>, %w1: tensor<8x3x4xf32>, %x2: tensor<1x3x5x4xf32>, %w2: tensor<7x3x3x2xf32>, %b2: tensor<7xf32>, %r2: tensor<1x7x10x11xf32>, %x3: tensor<2x3x3x4x2xf32>, %w3: tensor<5x3x1x2x3xf32>) {
  %one = nn.conv_transpose1d %x1, %w1 {stride = array<i64: 4>, padding = array<i64: 2>, output_padding = array<i64: 1>, dilation = array<i64: 1>, groups = 2 : i64} : (tensor<2x6x9xf32>, tensor<8x3x4xf32>) -> tensor<2x8x33xf32>
  %two = nn.conv_transpose2d %x2, %w2 bias(%b2) residual(%r2) {stride = array<i64: 2, 3>, padding = array<i64: 1, 0>, output_padding = array<i64: 1, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, activation = #nn.relu} : (tensor<1x3x5x4xf32>, tensor<7x3x3x2xf32>, tensor<7xf32>, tensor<1x7x10x11xf32>) -> tensor<1x7x10x11xf32>
  %three = nn.conv_transpose3d %x3, %w3 {stride = array<i64: 1, 2, 1>, padding = array<i64: 0, 0, 1>, output_padding = array<i64: 0, 0, 0>, dilation = array<i64: 1, 1, 2>, groups = 1 : i64} : (tensor<2x3x3x4x2xf32>, tensor<5x3x1x2x3xf32>) -> tensor<2x5x3x8x4xf32>
  func.return
}

// CHECK-LABEL: func.func @pools(
// CHECK-NEXT:      %max = nn.max_pool3d %x {kernel_size = array<i64: 2, 2, 3>, stride = array<i64: 1, 2, 2>, padding = array<i64: 0, 1, 0>, ceil_mode = true, dilation = array<i64: 2, 1, 1>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x3x4x3xf32>
// CHECK-NEXT:      %avg = nn.avg_pool3d %x {kernel_size = array<i64: 2, 2, 3>, stride = array<i64: 1, 2, 2>, padding = array<i64: 0, 1, 0>, ceil_mode = false, count_include_pad = true, divisor_override = 3 : i64} : tensor<2x3x5x6x7xf32> -> tensor<2x3x4x4x3xf32>
// CHECK-NEXT:      %even = nn.adaptive_avg_pool3d %x {output_size = array<i64: 1, 4, 2>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x1x4x2xf32>
// CHECK-NEXT:      %most = nn.adaptive_max_pool3d %x {output_size = array<i64: 1, 4, 2>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x1x4x2xf32>
// CHECK-NEXT:      %flat = nn.adaptive_max_pool2d %u {output_size = array<i64: 2, 4>} : tensor<3x5x6xf32> -> tensor<3x2x4xf32>
func.func @pools(%x: tensor<2x3x5x6x7xf32>, %u: tensor<3x5x6xf32>) {
  %max = nn.max_pool3d %x {kernel_size = array<i64: 2, 2, 3>, stride = array<i64: 1, 2, 2>, padding = array<i64: 0, 1, 0>, ceil_mode = true, dilation = array<i64: 2, 1, 1>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x3x4x3xf32>
  %avg = nn.avg_pool3d %x {kernel_size = array<i64: 2, 2, 3>, stride = array<i64: 1, 2, 2>, padding = array<i64: 0, 1, 0>, ceil_mode = false, count_include_pad = true, divisor_override = 3 : i64} : tensor<2x3x5x6x7xf32> -> tensor<2x3x4x4x3xf32>
  %even = nn.adaptive_avg_pool3d %x {output_size = array<i64: 1, 4, 2>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x1x4x2xf32>
  %most = nn.adaptive_max_pool3d %x {output_size = array<i64: 1, 4, 2>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x1x4x2xf32>
  %flat = nn.adaptive_max_pool2d %u {output_size = array<i64: 2, 4>} : tensor<3x5x6xf32> -> tensor<3x2x4xf32>
  func.return
}

// CHECK-LABEL: func.func @resampling(
// CHECK-NEXT:      %mirror = nn.take %q {dim = 1 : i64, indices = array<i64: 1, 0, 1, 2, 1>} : tensor<2x3x4x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x5x4x!quant.uniform<u8:f32, 0.0235:114>>
// CHECK-NEXT:      %linear = nn.resample %x, %i, %w {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>) -> tensor<2x3x5xf32>
func.func @resampling(%x: tensor<2x3x4xf32>, %q: tensor<2x3x4x!quant.uniform<u8:f32, 0.0235:114>>, %i: tensor<5x2xi64>, %w: tensor<5x2xf32>) {
  %mirror = nn.take %q {dim = 1 : i64, indices = array<i64: 1, 0, 1, 2, 1>} : tensor<2x3x4x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x5x4x!quant.uniform<u8:f32, 0.0235:114>>
  %linear = nn.resample %x, %i, %w {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>) -> tensor<2x3x5xf32>
  func.return
}

// CHECK-LABEL: func.func @recurrent(
// CHECK-NEXT:      %lstm = nn.lstm %x, %h, %c, %w bias(%b) projection(%p) {reverse = true} : (tensor<5x2x12xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<12x2xf32>, tensor<12xf32>, tensor<2x3xf32>) -> tensor<5x2x5xf32>
// CHECK-NEXT:      %gru = nn.gru %x, %k, %v bias(%b) {reverse = false} : (tensor<5x2x12xf32>, tensor<2x4xf32>, tensor<12x4xf32>, tensor<12xf32>) -> tensor<5x2x4xf32>
// CHECK-NEXT:      %rnn = nn.rnn %x, %i, %u {reverse = false, nonlinearity = "tanh"} : (tensor<5x2x12xf32>, tensor<2x12xf32>, tensor<12x12xf32>) -> tensor<5x2x12xf32>
func.func @recurrent(%x: tensor<5x2x12xf32>, %h: tensor<2x2xf32>, %c: tensor<2x3xf32>, %w: tensor<12x2xf32>, %b: tensor<12xf32>, %p: tensor<2x3xf32>, %k: tensor<2x4xf32>, %v: tensor<12x4xf32>, %u: tensor<12x12xf32>, %i: tensor<2x12xf32>) {
  %lstm = nn.lstm %x, %h, %c, %w bias(%b) projection(%p) {reverse = true} : (tensor<5x2x12xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<12x2xf32>, tensor<12xf32>, tensor<2x3xf32>) -> tensor<5x2x5xf32>
  %gru = nn.gru %x, %k, %v bias(%b) {reverse = false} : (tensor<5x2x12xf32>, tensor<2x4xf32>, tensor<12x4xf32>, tensor<12xf32>) -> tensor<5x2x4xf32>
  %rnn = nn.rnn %x, %i, %u {reverse = false, nonlinearity = "tanh"} : (tensor<5x2x12xf32>, tensor<2x12xf32>, tensor<12x12xf32>) -> tensor<5x2x12xf32>
  func.return
}

// CHECK-LABEL: func.func @sampling(
// CHECK-NEXT:      %near = nn.grid_sample %x, %g {mode = "nearest", padding_mode = "border", align_corners = true} : (tensor<2x3x4x5xf32>, tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32>
func.func @sampling(%x: tensor<2x3x4x5xf32>, %g: tensor<2x6x7x2xf32>) {
  %near = nn.grid_sample %x, %g {mode = "nearest", padding_mode = "border", align_corners = true} : (tensor<2x3x4x5xf32>, tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32>
  func.return
}

// CHECK-LABEL: func.func @indices_of(
// CHECK-NEXT:      %deep = nn.max_pool3d_indices %x {kernel_size = array<i64: 2, 2, 3>, stride = array<i64: 1, 2, 2>, padding = array<i64: 0, 1, 0>, ceil_mode = true, dilation = array<i64: 2, 1, 1>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x3x4x3xi64>
// CHECK-NEXT:      %flat = nn.max_pool2d_indices %u {kernel_size = array<i64: 2, 2>, stride = array<i64: 1, 2>, padding = array<i64: 0, 1>, ceil_mode = false, dilation = array<i64: 1, 1>} : tensor<3x5x6xf32> -> tensor<3x4x4xi64>
func.func @indices_of(%x: tensor<2x3x5x6x7xf32>, %u: tensor<3x5x6xf32>) {
  %deep = nn.max_pool3d_indices %x {kernel_size = array<i64: 2, 2, 3>, stride = array<i64: 1, 2, 2>, padding = array<i64: 0, 1, 0>, ceil_mode = true, dilation = array<i64: 2, 1, 1>} : tensor<2x3x5x6x7xf32> -> tensor<2x3x3x4x3xi64>
  %flat = nn.max_pool2d_indices %u {kernel_size = array<i64: 2, 2>, stride = array<i64: 1, 2>, padding = array<i64: 0, 1>, ceil_mode = false, dilation = array<i64: 1, 1>} : tensor<3x5x6xf32> -> tensor<3x4x4xi64>
  func.return
}
