// RUN: qcomp-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result has shape [3, 2], inferred is [2, 3]}}
  %t = nn.relu %x : tensor<2x3xf32> -> tensor<3x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result elements are f16, inferred is f32}}
  %t = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf16>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{quantization axis 3 is outside rank 2}}
  %t = nn.relu %x : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8:f32:3, {0.5, 0.5, 0.5}>>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{clamp bounds must not be NaN}}
  %t = nn.clamp %x {min = 0x7FC00000 : f32, max = 1.0 : f32} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{clamp bounds must not be NaN}}
  %t = nn.add %x, %x {activation = #nn.clamp<0.0 : f32, 0x7FC00000 : f32>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{approximate must be "none" or "tanh"}}
  %t = nn.gelu %x {approximate = "erf"} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  // expected-error@+1 {{shapes [2, 3] and [2] do not broadcast}}
  %t = nn.add %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3xi32>) {
  // expected-error@+1 {{operands of f32 and i32: nn.cast one of them}}
  %t = nn.mul %x, %y : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{result has shape [1, 6, 7, 7], inferred is [1, 6, 7, 6]}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{input must have rank 4}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3xf32>) {
  // expected-error@+1 {{weight of rank 3 for input of rank 4}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{stride and dilation need 2 entries}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{stride and dilation need 2 entries}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{padding needs 2 or 4 entries}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{stride, dilation >= 1 and padding >= 0}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 0>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{stride, dilation >= 1 and padding >= 0}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: -1, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{6 output channels do not divide into 4 groups}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 4 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>) {
  // expected-error@+1 {{4 input channels, the weight takes 2 x 1}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x9xf32>) {
  // expected-error@+1 {{kernel is larger than the padded input in dimension 3}}
  %t = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x9xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{bias must have shape [6]}}
  %t = nn.conv2d %x, %w bias(%b) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>, tensor<5xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>, %r: tensor<1x6x7x1xf32>) {
  // expected-error@+1 {{residual must have the result's shape [1, 6, 7, 6]}}
  %t = nn.conv2d %x, %w residual(%r) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>, tensor<1x6x7x1xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf16>) {
  // expected-error@+1 {{operands of f16 and f32: nn.cast one of them}}
  %t = nn.conv2d %x, %w bias(%b) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<1x4x9x8xf32>, tensor<6x2x3x3xf32>, tensor<6xf16>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<1x4x9x8xf32>) {
  // expected-error@+1 {{nn.conv2d takes the operands input, weight}}
  %t = nn.conv2d %x {groups = 1 : i64} : (tensor<1x4x9x8xf32>) -> tensor<1x6x7x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<5x3x1xf32>) {
  // expected-error@+1 {{linear takes [..., K] and a weight [N, K]}}
  %t = nn.linear %x, %w : (tensor<2x3xf32>, tensor<5x3x1xf32>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<5x4xf32>) {
  // expected-error@+1 {{input has [3] features, the weight takes 4}}
  %t = nn.linear %x, %w : (tensor<2x3xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<3xf32>) {
  // expected-error@+1 {{matmul takes operands of rank 2 or more}}
  %t = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x5xf32>) {
  // expected-error@+1 {{matmul of [2, 3] and [4, 5]: inner dimensions differ}}
  %t = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{input must have rank 2 or more}}
  %t = nn.batch_norm %x, %x, %x {eps = 1.0e-05 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %c: tensor<3xf32>, %d: tensor<2xf32>) {
  // expected-error@+1 {{statistics and parameters must have shape [3]}}
  %t = nn.batch_norm %x, %c, %d {eps = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{normalized_shape must be a suffix of the input's shape}}
  %t = nn.layer_norm %x {normalized_shape = array<i64: 2>, eps = 1.0e-05 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{normalized_shape must be a suffix of the input's shape}}
  %t = nn.layer_norm %x {normalized_shape = array<i64>, eps = 1.0e-05 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %c: tensor<2xf32>) {
  // expected-error@+1 {{parameters must have shape [3]}}
  %t = nn.layer_norm %x weight(%c) {normalized_shape = array<i64: 3>, eps = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{axis 2 is outside rank 2}}
  %t = nn.softmax %x {dim = 2 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{axis -3 is outside rank 2}}
  %t = nn.mean %x {dim = array<i64: -3>, keepdim = false} : tensor<2x3xf32> -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{a dimension is reduced twice}}
  %t = nn.sum %x {dim = array<i64: 1, -1>, keepdim = false} : tensor<2x3xf32> -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<9x10xf32>) {
  // expected-error@+1 {{input must have rank 3 or 4}}
  %t = nn.avg_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, ceil_mode = false, count_include_pad = true}
    : tensor<9x10xf32> -> tensor<2x3x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x9x10xf32>) {
  // expected-error@+1 {{kernel_size, stride, padding and dilation need 2 entries}}
  %t = nn.avg_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2>, padding = array<i64: 0, 1>, ceil_mode = false, count_include_pad = true}
    : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x9x10xf32>) {
  // expected-error@+1 {{kernel_size, stride, padding and dilation need 2 entries}}
  %t = nn.max_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, ceil_mode = false, dilation = array<i64: 1>}
    : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x9x10xf32>) {
  // expected-error@+1 {{dilation must be at least 1}}
  %t = nn.max_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, ceil_mode = false, dilation = array<i64: 1, 0>}
    : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x9x10xf32>) {
  // expected-error@+1 {{kernel, stride >= 1, padding <= kernel / 2}}
  %t = nn.avg_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 2>, ceil_mode = false, count_include_pad = true}
    : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x9x10xf32>) {
  // expected-error@+1 {{window is larger than the padded input}}
  %t = nn.avg_pool2d %x {kernel_size = array<i64: 2, 13>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, ceil_mode = false, count_include_pad = true}
    : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3x9x10xf32>) {
  // expected-error@+1 {{divisor_override must not be 0}}
  %t = nn.avg_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, ceil_mode = false, count_include_pad = true, divisor_override = 0 : i64}
    : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<9x10xf32>) {
  // expected-error@+1 {{input must have rank 3 or 4}}
  %t = nn.adaptive_avg_pool2d %x {output_size = array<i64: 1, 2>} : tensor<9x10xf32> -> tensor<1x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<3x9x10xf32>) {
  // expected-error@+1 {{output_size needs 2 entries >= 1}}
  %t = nn.adaptive_avg_pool2d %x {output_size = array<i64: 1, 0>} : tensor<3x9x10xf32> -> tensor<3x1x0xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{cannot reshape 6 elements to [2, 4]}}
  %t = nn.reshape %x : tensor<2x3xf32> -> tensor<2x4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{dims [0, 0] are no permutation}}
  %t = nn.permute %x {dims = array<i64: 0, 0>} : tensor<2x3xf32> -> tensor<2x2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expand cannot shrink}}
  %t = nn.expand %x : tensor<2x3xf32> -> tensor<1x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{dim 2 is outside rank 2}}
  %t = nn.slice %x {dim = 2 : i64, start = 0 : i64, end = 1 : i64, step = 1 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{slice 1:4 of size 3}}
  %t = nn.slice %x {dim = 1 : i64, start = 1 : i64, end = 4 : i64, step = 1 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{step must be at least 1}}
  %t = nn.slice %x {dim = 1 : i64, start = 0 : i64, end = 2 : i64, step = 0 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{cat needs an operand}}
  %c = "nn.cat"() <{dim = 0 : i64}> : () -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) {
  // expected-error@+1 {{operands of cat differ outside its dimension}}
  %t = nn.cat %x, %y {dim = 1 : i64} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x3xi8>) {
  // expected-error@+1 {{operands of f32 and i8: nn.cast one of them}}
  %t = nn.cat %x, %y {dim = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xi8>) -> tensor<2x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{low and high need one entry per dimension}}
  %t = nn.pad %x {low = array<i64: 1>, high = array<i64: 1, 1>, value = 0.0 : f32} : tensor<2x3xf32> -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{padding must be at least 0; use nn.slice to cut}}
  %t = nn.pad %x {low = array<i64: 1, -1>, high = array<i64: 0, 0>, value = 0.0 : f32} : tensor<2x3xf32> -> tensor<3x2xf32>
  func.return
}

// -----

func.func @f(%w: tensor<5xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{weight must have rank 2}}
  %t = nn.embedding %w, %i : (tensor<5xf32>, tensor<2xi64>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @f(%w: tensor<5x4xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{indices must be integers}}
  %t = nn.embedding %w, %i : (tensor<5x4xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  func.return
}
// -----

func.func @truth_values(%a: tensor<3xi1>) -> tensor<3xi1> {
  // expected-error@+1 {{no arithmetic on truth values: nn.binary has and, or, xor}}
  %0 = nn.add %a, %a : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  func.return %0 : tensor<3xi1>
}
