// RUN: qcomp-opt %s | filecheck %s
// RUN: qcomp-opt %s | qcomp-opt | filecheck %s
// RUN: qcomp-opt %s --print-op-generic | qcomp-opt | filecheck %s

// CHECK-LABEL: func.func @unary(
// CHECK-NEXT:    %relu = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %sigmoid = nn.sigmoid %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %tanh = nn.tanh %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %silu = nn.silu %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %hardswish = nn.hardswish %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %hardsigmoid = nn.hardsigmoid %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %exp = nn.exp %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %sqrt = nn.sqrt %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %rsqrt = nn.rsqrt %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %neg = nn.neg %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %abs = nn.abs %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %erf = nn.erf %x : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %clamp = nn.clamp %x {min = -1.000000e+00 : f32, max = 6.000000e+00 : f32} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %open = nn.clamp %x {min = 0.000000e+00 : f32, max = 0x7f800000 : f32} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %leaky = nn.leaky_relu %x {negative_slope = 1.000000e-02 : f32} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %gelu = nn.gelu %x {approximate = "none"} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %fast = nn.gelu %x {approximate = "tanh"} : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %cast = nn.cast %x : tensor<2x3xf32> -> tensor<2x3xi64>
func.func @unary(%x: tensor<2x3xf32>) {
  %relu = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %sigmoid = nn.sigmoid %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %tanh = nn.tanh %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %silu = nn.silu %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %hardswish = nn.hardswish %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %hardsigmoid = nn.hardsigmoid %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %exp = nn.exp %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %sqrt = nn.sqrt %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %rsqrt = nn.rsqrt %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %neg = nn.neg %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %abs = nn.abs %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %erf = nn.erf %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %clamp = nn.clamp %x {min = -1.0 : f32, max = 6.0 : f32} : tensor<2x3xf32> -> tensor<2x3xf32>
  %open = nn.clamp %x {min = 0.0 : f32, max = 0x7F800000 : f32} : tensor<2x3xf32> -> tensor<2x3xf32>
  %leaky = nn.leaky_relu %x {negative_slope = 0.01 : f32} : tensor<2x3xf32> -> tensor<2x3xf32>
  %gelu = nn.gelu %x {approximate = "none"} : tensor<2x3xf32> -> tensor<2x3xf32>
  %fast = nn.gelu %x {approximate = "tanh"} : tensor<2x3xf32> -> tensor<2x3xf32>
  %cast = nn.cast %x : tensor<2x3xf32> -> tensor<2x3xi64>
  func.return
}

// CHECK-LABEL: func.func @quantized_unary(
// CHECK-NEXT:    %relu = nn.relu %x {recipe = f32} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<u8:f32, 0.0117>>
// CHECK-NEXT:    %tanh = nn.tanh %x {recipe = f64} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<i8:f32, 0.0078125:-1>>
func.func @quantized_unary(%x: tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>) {
  %relu = nn.relu %x {recipe = f32} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<u8:f32, 0.0117>>
  %tanh = nn.tanh %x {recipe = f64} : tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>> -> tensor<2x3x!quant.uniform<i8:f32, 0.0078125:-1>>
  func.return
}

// CHECK-LABEL: func.func @binary(
// CHECK-NEXT:    %add = nn.add %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %sub = nn.sub %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %mul = nn.mul %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %div = nn.div %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %maximum = nn.maximum %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %minimum = nn.minimum %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %act = nn.add %x, %y {activation = #nn.relu} : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %lim = nn.mul %x, %y {activation = #nn.clamp<-5.000000e-01 : f32, 6.000000e+00 : f32>} : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
func.func @binary(%x: tensor<2x1x4xf32>, %y: tensor<3x4xf32>) {
  %add = nn.add %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %sub = nn.sub %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %mul = nn.mul %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %div = nn.div %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %maximum = nn.maximum %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %minimum = nn.minimum %x, %y : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %act = nn.add %x, %y {activation = #nn.relu} : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %lim = nn.mul %x, %y {activation = #nn.clamp<-0.5 : f32, 6.0 : f32>} : (tensor<2x1x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @quantized_binary(
// CHECK-NEXT:    %add = nn.add %x, %y {activation = #nn.relu, recipe = f64} : (tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>, tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<2x3x!quant.uniform<u8:f32, 0.75>>
func.func @quantized_binary(%x: tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>,
                            %y: tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>) {
  %add = nn.add %x, %y {activation = #nn.relu, recipe = f64} : (tensor<2x3x!quant.uniform<u8:f32, 0.0235:114>>, tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<2x3x!quant.uniform<u8:f32, 0.75>>
  func.return
}

// CHECK-LABEL: func.func @convolutions(
// CHECK-NEXT:    %conv1d = nn.conv1d %x1, %w1 {stride = array<i64: 2>, padding = array<i64: 1>, dilation = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x9xf32>, tensor<6x4x3xf32>) -> tensor<2x6x5xf32>
// CHECK-NEXT:    %conv2d = nn.conv2d %x2, %w2 bias(%b) residual(%r) {activation = #nn.relu, stride = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 2>, dilation = array<i64: 1, 3>, groups = 2 : i64} : (tensor<2x4x9x8xf32>, tensor<6x2x3x1xf32>, tensor<6xf32>, tensor<2x6x4x10xf32>) -> tensor<2x6x4x10xf32>
// CHECK-NEXT:    %conv3d = nn.conv3d %x3, %w3 {stride = array<i64: 1, 2, 1>, padding = array<i64: 0, 1, 2>, dilation = array<i64: 1, 1, 2>, groups = 1 : i64} : (tensor<1x2x5x6x7xf32>, tensor<3x2x1x2x3xf32>) -> tensor<1x3x5x4x7xf32>
func.func @convolutions(%x1: tensor<2x4x9xf32>, %w1: tensor<6x4x3xf32>, %x2: tensor<2x4x9x8xf32>,
                        %w2: tensor<6x2x3x1xf32>, %x3: tensor<1x2x5x6x7xf32>, %w3: tensor<3x2x1x2x3xf32>,
                        %b: tensor<6xf32>, %r: tensor<2x6x4x10xf32>) {
  %conv1d = nn.conv1d %x1, %w1 {stride = array<i64: 2>, padding = array<i64: 1>, dilation = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x9xf32>, tensor<6x4x3xf32>) -> tensor<2x6x5xf32>
  %conv2d = nn.conv2d %x2, %w2 bias(%b) residual(%r) {activation = #nn.relu, stride = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 2>, dilation = array<i64: 1, 3>, groups = 2 : i64} : (tensor<2x4x9x8xf32>, tensor<6x2x3x1xf32>, tensor<6xf32>, tensor<2x6x4x10xf32>) -> tensor<2x6x4x10xf32>
  %conv3d = nn.conv3d %x3, %w3 {stride = array<i64: 1, 2, 1>, padding = array<i64: 0, 1, 2>, dilation = array<i64: 1, 1, 2>, groups = 1 : i64} : (tensor<1x2x5x6x7xf32>, tensor<3x2x1x2x3xf32>) -> tensor<1x3x5x4x7xf32>
  func.return
}

// CHECK-LABEL: func.func @quantized_convolution(
// CHECK-NEXT:    %q = nn.conv2d %x, %w bias(%b) residual(%r) {activation = #nn.clamp<0.000000e+00 : f32, 6.000000e+00 : f32>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x5x4x!quant.uniform<u8:f32, 0.0235:114>>, tensor<3x2x1x1x!quant.uniform<i8<-127:127>:f32:0, {0.25, 0.5, 0.125}>>, tensor<3xf32>, tensor<1x3x5x4x!quant.uniform<u8:f32, 0.0625:7>>) -> tensor<1x3x5x4x!quant.uniform<u8:f32, 0.0235>>
func.func @quantized_convolution(%x: tensor<1x2x5x4x!quant.uniform<u8:f32, 0.0235:114>>,
                                 %w: tensor<3x2x1x1x!quant.uniform<i8<-127:127>:f32:0, {0.25, 0.5, 0.125}>>,
                                 %b: tensor<3xf32>, %r: tensor<1x3x5x4x!quant.uniform<u8:f32, 0.0625:7>>) {
  %q = nn.conv2d %x, %w bias(%b) residual(%r) {activation = #nn.clamp<0.0 : f32, 6.0 : f32>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x5x4x!quant.uniform<u8:f32, 0.0235:114>>, tensor<3x2x1x1x!quant.uniform<i8<-127:127>:f32:0, {0.25, 0.5, 0.125}>>, tensor<3xf32>, tensor<1x3x5x4x!quant.uniform<u8:f32, 0.0625:7>>) -> tensor<1x3x5x4x!quant.uniform<u8:f32, 0.0235>>
  func.return
}

// CHECK-LABEL: func.func @products(
// CHECK-NEXT:    %plain = nn.linear %x, %w : (tensor<5x3x4xf32>, tensor<7x4xf32>) -> tensor<5x3x7xf32>
// CHECK-NEXT:    %linear = nn.linear %x, %w bias(%b) residual(%r) {activation = #nn.relu} : (tensor<5x3x4xf32>, tensor<7x4xf32>, tensor<7xf32>, tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
// CHECK-NEXT:    %sum = nn.linear %x, %w residual(%r) : (tensor<5x3x4xf32>, tensor<7x4xf32>, tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
// CHECK-NEXT:    %matmul = nn.matmul %x, %m : (tensor<5x3x4xf32>, tensor<4x6xf32>) -> tensor<5x3x6xf32>
func.func @products(%x: tensor<5x3x4xf32>, %w: tensor<7x4xf32>, %b: tensor<7xf32>, %r: tensor<5x3x7xf32>,
                    %m: tensor<4x6xf32>) {
  %plain = nn.linear %x, %w : (tensor<5x3x4xf32>, tensor<7x4xf32>) -> tensor<5x3x7xf32>
  %linear = nn.linear %x, %w bias(%b) residual(%r) {activation = #nn.relu} : (tensor<5x3x4xf32>, tensor<7x4xf32>, tensor<7xf32>, tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
  %sum = nn.linear %x, %w residual(%r) : (tensor<5x3x4xf32>, tensor<7x4xf32>, tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
  %matmul = nn.matmul %x, %m : (tensor<5x3x4xf32>, tensor<4x6xf32>) -> tensor<5x3x6xf32>
  func.return
}

// CHECK-LABEL: func.func @norms(
// CHECK-NEXT:    %plain = nn.batch_norm %x, %c, %c {eps = 1.000000e-05 : f64} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x5xf32>
// CHECK-NEXT:    %batch = nn.batch_norm %x, %c, %c weight(%c) bias(%c) {eps = 1.000000e-03 : f64} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x5xf32>
// CHECK-NEXT:    %layer = nn.layer_norm %x weight(%n) bias(%n) {normalized_shape = array<i64: 5>, eps = 1.000000e-05 : f64} : (tensor<2x3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
// CHECK-NEXT:    %bare = nn.layer_norm %x {normalized_shape = array<i64: 3, 5>, eps = 1.000000e-05 : f64} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
// CHECK-NEXT:    %softmax = nn.softmax %x {dim = -1 : i64} : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
func.func @norms(%x: tensor<2x3x5xf32>, %c: tensor<3xf32>, %n: tensor<5xf32>) {
  %plain = nn.batch_norm %x, %c, %c {eps = 1.0e-05 : f64} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x5xf32>
  %batch = nn.batch_norm %x, %c, %c weight(%c) bias(%c) {eps = 0.001 : f64} : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x5xf32>
  %layer = nn.layer_norm %x weight(%n) bias(%n) {normalized_shape = array<i64: 5>, eps = 1.0e-05 : f64} : (tensor<2x3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  %bare = nn.layer_norm %x {normalized_shape = array<i64: 3, 5>, eps = 1.0e-05 : f64} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %softmax = nn.softmax %x {dim = -1 : i64} : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  func.return
}

// CHECK-LABEL: func.func @pools(
// CHECK-NEXT:    %max = nn.max_pool2d %x {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 3>, padding = array<i64: 1, 0>, ceil_mode = true, dilation = array<i64: 1, 2>} : tensor<2x3x9x10xf32> -> tensor<2x3x5x4xf32>
// CHECK-NEXT:    %avg = nn.avg_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, ceil_mode = false, count_include_pad = false, divisor_override = 5 : i64} : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
// CHECK-NEXT:    %adaptive = nn.adaptive_avg_pool2d %x {output_size = array<i64: 1, 2>} : tensor<2x3x9x10xf32> -> tensor<2x3x1x2xf32>
// CHECK-NEXT:    %mean = nn.mean %x {dim = array<i64: 2, 3>, keepdim = true} : tensor<2x3x9x10xf32> -> tensor<2x3x1x1xf32>
// CHECK-NEXT:    %near = nn.mean %x {dim = array<i64: 2, 3>, keepdim = true, shifted} : tensor<2x3x9x10xf32> -> tensor<2x3x1x1xf32>
// CHECK-NEXT:    %sum = nn.sum %x {dim = array<i64: -1>, keepdim = false} : tensor<2x3x9x10xf32> -> tensor<2x3x9xf32>
// CHECK-NEXT:    %amax = nn.amax %x {dim = array<i64>, keepdim = false} : tensor<2x3x9x10xf32> -> tensor<f32>
func.func @pools(%x: tensor<2x3x9x10xf32>) {
  %max = nn.max_pool2d %x {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 3>, padding = array<i64: 1, 0>, ceil_mode = true, dilation = array<i64: 1, 2>} : tensor<2x3x9x10xf32> -> tensor<2x3x5x4xf32>
  %avg = nn.avg_pool2d %x {kernel_size = array<i64: 2, 3>, stride = array<i64: 2, 3>, padding = array<i64: 0, 1>, ceil_mode = false, count_include_pad = false, divisor_override = 5 : i64} : tensor<2x3x9x10xf32> -> tensor<2x3x4x4xf32>
  %adaptive = nn.adaptive_avg_pool2d %x {output_size = array<i64: 1, 2>} : tensor<2x3x9x10xf32> -> tensor<2x3x1x2xf32>
  %mean = nn.mean %x {dim = array<i64: 2, 3>, keepdim = true} : tensor<2x3x9x10xf32> -> tensor<2x3x1x1xf32>
  %near = nn.mean %x {dim = array<i64: 2, 3>, keepdim = true, shifted} : tensor<2x3x9x10xf32> -> tensor<2x3x1x1xf32>
  %sum = nn.sum %x {dim = array<i64: -1>, keepdim = false} : tensor<2x3x9x10xf32> -> tensor<2x3x9xf32>
  %amax = nn.amax %x {dim = array<i64>, keepdim = false} : tensor<2x3x9x10xf32> -> tensor<f32>
  func.return
}

// CHECK-LABEL: func.func @movement(
// CHECK-NEXT:    %reshape = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK-NEXT:    %permute = nn.permute %x {dims = array<i64: 2, 0, 1>} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
// CHECK-NEXT:    %expand = nn.expand %x : tensor<2x3x4xf32> -> tensor<5x2x3x4xf32>
// CHECK-NEXT:    %slice = nn.slice %x {dim = 2 : i64, start = 1 : i64, end = 4 : i64, step = 2 : i64} : tensor<2x3x4xf32> -> tensor<2x3x2xf32>
// CHECK-NEXT:    %cat = nn.cat %x, %y, %x {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x3x4xf32>) -> tensor<2x11x4xf32>
// CHECK-NEXT:    %pad = nn.pad %x {low = array<i64: 0, 1, 2>, high = array<i64: 3, 0, 1>, value = -1.500000e+00 : f32} : tensor<2x3x4xf32> -> tensor<5x4x7xf32>
// CHECK-NEXT:    %rows = nn.embedding %w, %i : (tensor<11x6xf32>, tensor<7x2xi64>) -> tensor<7x2x6xf32>
func.func @movement(%x: tensor<2x3x4xf32>, %y: tensor<2x5x4xf32>, %i: tensor<7x2xi64>, %w: tensor<11x6xf32>) {
  %reshape = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %permute = nn.permute %x {dims = array<i64: 2, 0, 1>} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %expand = nn.expand %x : tensor<2x3x4xf32> -> tensor<5x2x3x4xf32>
  %slice = nn.slice %x {dim = 2 : i64, start = 1 : i64, end = 4 : i64, step = 2 : i64} : tensor<2x3x4xf32> -> tensor<2x3x2xf32>
  %cat = nn.cat %x, %y, %x {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x3x4xf32>) -> tensor<2x11x4xf32>
  %pad = nn.pad %x {low = array<i64: 0, 1, 2>, high = array<i64: 3, 0, 1>, value = -1.5 : f32} : tensor<2x3x4xf32> -> tensor<5x4x7xf32>
  %rows = nn.embedding %w, %i : (tensor<11x6xf32>, tensor<7x2xi64>) -> tensor<7x2x6xf32>
  func.return
}

// CHECK-LABEL: func.func @bits(
// CHECK-NEXT:    %narrow = nn.bitcast %x : tensor<2x3xf32> -> tensor<2x6xi16>
// CHECK-NEXT:    %wide = nn.bitcast %narrow : tensor<2x6xi16> -> tensor<2x3xi32>
func.func @bits(%x: tensor<2x3xf32>) {
  %narrow = nn.bitcast %x : tensor<2x3xf32> -> tensor<2x6xi16>
  %wide = nn.bitcast %narrow : tensor<2x6xi16> -> tensor<2x3xi32>
  func.return
}

// CHECK-LABEL: func.func @unknown_sizes(
// CHECK-NEXT:    %add = nn.add %x, %y : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT:    %reshape = nn.reshape %add : tensor<?x4xf32> -> tensor<?x2x2xf32>
func.func @unknown_sizes(%x: tensor<?x4xf32>, %y: tensor<1x4xf32>) {
  %add = nn.add %x, %y : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  %reshape = nn.reshape %add : tensor<?x4xf32> -> tensor<?x2x2xf32>
  func.return
}

// CHECK-LABEL: func.func @constants(
// CHECK-NEXT:    %small = nn.constant dense<{{\[\[}}1.0, -0.5, 3.25], [4.0, 5.0e-20, 6.0]]> : tensor<2x3xf32>
// CHECK-NEXT:    %codes = nn.constant dense<[1, 200]> : tensor<2x!quant.uniform<u8:f32, 0.5:3>>
// CHECK-NEXT:    %scalar = nn.constant dense<-7> : tensor<i32>
// CHECK-NEXT:    %none = nn.constant dense<[]> : tensor<0x3xf32>
// CHECK-NEXT:    %flags = nn.constant dense<[true, false]> : tensor<2xi1>
// CHECK-NEXT:    %bits = nn.constant dense<[0x7FC00001, 0xFF800000, -0.0]> : tensor<3xf32>
func.func @constants() {
  %small = nn.constant dense<[[1.0, -0.5, 3.25], [4.0, 5.0e-20, 6.0]]> : tensor<2x3xf32>
  %codes = nn.constant dense<[1, 200]> : tensor<2x!quant.uniform<u8:f32, 0.5:3>>
  %scalar = nn.constant dense<-7> : tensor<i32>
  %none = nn.constant dense<[]> : tensor<0x3xf32>
  %flags = nn.constant dense<[true, false]> : tensor<2xi1>
  %bits = nn.constant dense<[0x7FC00001, 0xFF800000, -0.0]> : tensor<3xf32>
  func.return
}
