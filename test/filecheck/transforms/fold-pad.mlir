// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fold-pad --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

!x = tensor<1x2x5x7xf32>

// Paddings add up, uneven ones too.
// CHECK-LABEL: func.func @conv
func.func @conv(%x: !x, %w: tensor<3x2x2x3xf32>) -> (tensor<1x3x6x11xf32>, tensor<1x3x6x9xf32>) {
  // CHECK-NEXT: nn.conv2d %x, %w {{{.*}}padding = array<i64: 1, 3>
  // CHECK-NEXT: nn.conv2d %x, %w {{{.*}}padding = array<i64: 1, 2>
  // CHECK-NEXT: func.return
  %p = nn.pad %x {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 1, 2>, value = 0.0 : f32} : !x -> tensor<1x2x7x11xf32>
  %c = nn.conv2d %p, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 1, 0, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x7x11xf32>, tensor<3x2x2x3xf32>) -> tensor<1x3x6x11xf32>
  %q = nn.pad %x {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 1, 2>, value = 0.0 : f32} : !x -> tensor<1x2x7x11xf32>
  %d = nn.conv2d %q, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x7x11xf32>, tensor<3x2x2x3xf32>) -> tensor<1x3x6x9xf32>
  func.return %c, %d : tensor<1x3x6x11xf32>, tensor<1x3x6x9xf32>
}

// On codes the border is the zero point. One side only: two entries per dimension.
// CHECK-LABEL: func.func @codes
func.func @codes(%x: tensor<1x2x5x7x!quant.uniform<i8:f32, 0.1:-7>>) -> tensor<1x1x4x7xf32> {
  // CHECK: nn.conv2d %x, {{.*}}padding = array<i64: 0, 0, 0, 2>
  %w = nn.constant dense<[[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]]> : tensor<1x2x2x3x!quant.uniform<i8:f32, 0.5>>
  %p = nn.pad %x {low = array<i64: 0, 0, 0, 0>, high = array<i64: 0, 0, 0, 2>, value = 0.0 : f32} : tensor<1x2x5x7x!quant.uniform<i8:f32, 0.1:-7>> -> tensor<1x2x5x9x!quant.uniform<i8:f32, 0.1:-7>>
  %c = nn.conv2d %p, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x5x9x!quant.uniform<i8:f32, 0.1:-7>>, tensor<1x2x2x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x1x4x7xf32>
  func.return %c : tensor<1x1x4x7xf32>
}

// CHECK-LABEL: func.func @pool
func.func @pool(%x: !x) -> tensor<1x2x5x7xf32> {
  // CHECK-NEXT: nn.avg_pool2d %x {{{.*}}padding = array<i64: 1, 1>
  %p = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.0 : f32} : !x -> tensor<1x2x7x9xf32>
  %c = nn.avg_pool2d %p {kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, ceil_mode = false, count_include_pad = true} : tensor<1x2x7x9xf32> -> tensor<1x2x5x7xf32>
  func.return %c : tensor<1x2x5x7xf32>
}

// Must not fold into a max pool: its padding loses against negative numbers, this zero wins.
// CHECK-LABEL: func.func @max_pool
func.func @max_pool(%x: !x) -> tensor<1x2x5x7xf32> {
  // CHECK-NEXT: nn.pad
  %p = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.0 : f32} : !x -> tensor<1x2x7x9xf32>
  %c = nn.max_pool2d %p {kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, ceil_mode = false} : tensor<1x2x7x9xf32> -> tensor<1x2x5x7xf32>
  func.return %c : tensor<1x2x5x7xf32>
}

// -----

// Must not fold: another value; -0.0; channels padded; another encoding.
func.func @convs(%x: tensor<1x2x5x7xf32>, %w: tensor<3x2x2x3xf32>, %v: tensor<3x3x2x3xf32>, %q: tensor<1x2x5x7x!quant.uniform<i8:f32, 0.1:-7>>) -> (tensor<1x3x5x5xf32>, tensor<1x3x5x5xf32>, tensor<1x3x4x5xf32>, tensor<1x1x5x5xf32>) {
  %p = nn.pad %x {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 0, 0>, value = 1.0 : f32} : tensor<1x2x5x7xf32> -> tensor<1x2x6x7xf32>
  // expected-remark@+1 {{the padding value is 1.0, not 0.0}}
  %a = nn.conv2d %p, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x6x7xf32>, tensor<3x2x2x3xf32>) -> tensor<1x3x5x5xf32>
  %r = nn.pad %x {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 0, 0>, value = -0.0 : f32} : tensor<1x2x5x7xf32> -> tensor<1x2x6x7xf32>
  // expected-remark@+1 {{the padding value is -0.0, not 0.0}}
  %b = nn.conv2d %r, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x6x7xf32>, tensor<3x2x2x3xf32>) -> tensor<1x3x5x5xf32>
  %s = nn.pad %x {low = array<i64: 0, 1, 0, 0>, high = array<i64: 0, 0, 0, 0>, value = 0.0 : f32} : tensor<1x2x5x7xf32> -> tensor<1x3x5x7xf32>
  // expected-remark@+1 {{dimensions other than the spatial ones are padded}}
  %c = nn.conv2d %s, %v {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x5x7xf32>, tensor<3x3x2x3xf32>) -> tensor<1x3x4x5xf32>
  %k = nn.constant dense<[[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]]> : tensor<1x2x2x3x!quant.uniform<i8:f32, 0.5>>
  %t = nn.pad %q {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 0, 0>, value = 0.0 : f32} : tensor<1x2x5x7x!quant.uniform<i8:f32, 0.1:-7>> -> tensor<1x2x6x7x!quant.uniform<i8:f32, 0.1:-8>>
  // expected-remark@+1 {{the padding changes the encoding}}
  %d = nn.conv2d %t, %k {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x6x7x!quant.uniform<i8:f32, 0.1:-8>>, tensor<1x2x2x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x1x5x5xf32>
  func.return %a, %b, %c, %d : tensor<1x3x5x5xf32>, tensor<1x3x5x5xf32>, tensor<1x3x4x5xf32>, tensor<1x1x5x5xf32>
}

// -----

!x = tensor<1x2x6x7xf32>

// Pools must not: padding not counted; size rounded up; uneven; more than half of the kernel.
func.func @pools(%x: !x) -> (tensor<1x2x6x7xf32>, tensor<1x2x4x5xf32>, tensor<1x2x5x7xf32>, tensor<1x2x8x9xf32>) {
  %p = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.0 : f32} : !x -> tensor<1x2x8x9xf32>
  // expected-remark@+1 {{the pool does not count padding}}
  %a = nn.avg_pool2d %p {kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, ceil_mode = false, count_include_pad = false} : tensor<1x2x8x9xf32> -> tensor<1x2x6x7xf32>
  // expected-remark@+1 {{the pool rounds its size up or has a divisor of its own}}
  %b = nn.avg_pool2d %p {kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0>, ceil_mode = true, count_include_pad = true} : tensor<1x2x8x9xf32> -> tensor<1x2x4x5xf32>
  %q = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 0, 1>, value = 0.0 : f32} : !x -> tensor<1x2x7x9xf32>
  // expected-remark@+1 {{the pool would be padded unevenly}}
  %c = nn.avg_pool2d %q {kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, ceil_mode = false, count_include_pad = true} : tensor<1x2x7x9xf32> -> tensor<1x2x5x7xf32>
  // expected-remark@+1 {{the pool would be padded by more than half of its kernel}}
  %d = nn.avg_pool2d %p {kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1>, ceil_mode = false, count_include_pad = true} : tensor<1x2x8x9xf32> -> tensor<1x2x8x9xf32>
  func.return %a, %b, %c, %d : tensor<1x2x6x7xf32>, tensor<1x2x4x5xf32>, tensor<1x2x5x7xf32>, tensor<1x2x8x9xf32>
}

// -----

func.func @error(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  // expected-error@+1 {{padding must be at least 0; use nn.slice to cut}}
  %p = nn.pad %x {low = array<i64: 0, -1>, high = array<i64: 0, 0>, value = 0.0 : f32} : tensor<2x3xf32> -> tensor<2x2xf32>
  func.return %p : tensor<2x2xf32>
}
