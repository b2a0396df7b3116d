// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fold-affine,dce --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// The factor scales weight and bias, the addend only the bias; the activation of the last one stays.
// CHECK-LABEL: func.func @conv
func.func @conv(%x: tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32> {
  // CHECK-DAG: [[W:%[^ ]+]] = nn.constant dense<{{\[\[\[\[3.0\]\]\], \[\[\[8.0\]\]\]\]}}>
  // CHECK-DAG: [[B:%[^ ]+]] = nn.constant dense<[2.5, 11.0]>
  // CHECK: [[Y:%[^ ]+]] = nn.conv2d %x, [[W]] bias([[B]]) {{{.*}}activation = #nn.relu}
  // CHECK-NEXT: func.return [[Y]]
  %w = nn.constant dense<[[[[1.0]]], [[[4.0]]]]> : tensor<2x1x1x1xf32>
  %b = nn.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %f = nn.constant dense<[[[3.0]], [[2.0]]]> : tensor<2x1x1xf32>
  %s = nn.constant dense<[[[[1.0]], [[7.0]]]]> : tensor<1x2x1x1xf32>
  %c = nn.conv2d %x, %w bias(%b) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %m = nn.mul %f, %c : (tensor<2x1x1xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %a = nn.add %m, %s {activation = #nn.relu} : (tensor<1x2x3x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x3x3xf32>
  func.return %a : tensor<1x2x3x3xf32>
}

// Division, subtraction, scalars; behind a quantized weight too for what only touches the bias.
// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<5x3xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  // CHECK-DAG: nn.constant dense<{{\[\[0.5, 1.0, 1.5\], \[2.0, 2.5, 3.0\]\]}}>
  // CHECK-DAG: nn.constant dense<[-3.0, -3.0]>
  // CHECK: nn.linear {{.*}} bias({{.*}})
  // CHECK: [[B:%[^ ]+]] = nn.constant dense<[-1.0, -7.0]>
  // CHECK: nn.linear {{.*}} bias([[B]])
  // CHECK-NEXT: func.return
  %w = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %three = nn.constant dense<3.0> : tensor<f32>
  %s = nn.constant dense<[[1.0, 7.0]]> : tensor<1x2xf32>
  %q = nn.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3x!quant.uniform<i8:f32, 0.5>>
  %v = quant.dequantize %q : tensor<2x3x!quant.uniform<i8:f32, 0.5>> -> tensor<2x3xf32>
  %l = nn.linear %x, %w : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  %d = nn.div %l, %two : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
  %e = nn.sub %d, %three : (tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
  %m = nn.linear %x, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32>
  %g = nn.sub %m, %s : (tensor<5x2xf32>, tensor<1x2xf32>) -> tensor<5x2xf32>
  func.return %e, %g : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

!y = tensor<5x2xf32>

// Must not fold: another use; an activation in between; a quantized weight; a bias that is no constant; not finite;
// the constant is subtracted from, or divided.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<5x3xf32>, %b: tensor<2xf32>) -> (!y, !y, !y, !y, !y, !y, !y) {
  // CHECK: nn.mul
  // CHECK: nn.mul
  // CHECK: nn.mul
  // CHECK: nn.add
  // CHECK: nn.div
  // CHECK: nn.sub
  %w = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %q = nn.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3x!quant.uniform<i8:f32, 0.5>>
  %v = quant.dequantize %q : tensor<2x3x!quant.uniform<i8:f32, 0.5>> -> tensor<2x3xf32>
  %l = nn.linear %x, %w : (tensor<5x3xf32>, tensor<2x3xf32>) -> !y
  // expected-remark@+1 {{the result of nn.linear has other uses}}
  %m = nn.mul %l, %two : (!y, tensor<f32>) -> !y
  %k = nn.linear %x, %w {activation = #nn.relu} : (tensor<5x3xf32>, tensor<2x3xf32>) -> !y
  // expected-remark@+1 {{nn.linear has an activation or a residual}}
  %n = nn.mul %k, %two : (!y, tensor<f32>) -> !y
  %j = nn.linear %x, %v : (tensor<5x3xf32>, tensor<2x3xf32>) -> !y
  // expected-remark@+1 {{weight is not a float constant}}
  %o = nn.mul %j, %two : (!y, tensor<f32>) -> !y
  %i = nn.linear %x, %w bias(%b) : (tensor<5x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> !y
  // expected-remark@+1 {{bias is not a float constant}}
  %p = nn.add %i, %two : (!y, tensor<f32>) -> !y
  %h = nn.linear %x, %w : (tensor<5x3xf32>, tensor<2x3xf32>) -> !y
  // expected-remark@+1 {{the folded weight or bias is not finite}}
  %r = nn.div %h, %zero : (!y, tensor<f32>) -> !y
  %g = nn.linear %x, %w : (tensor<5x3xf32>, tensor<2x3xf32>) -> !y
  %s = nn.sub %two, %g : (tensor<f32>, !y) -> !y
  func.return %m, %n, %o, %p, %r, %s, %l : !y, !y, !y, !y, !y, !y, !y
}

// -----

!y = tensor<1x2x2x2xf32>

// Must not fold: along the width (on a square, where sizes do not tell); of full shape; one that enlarges the result.
// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<1x1x2x2xf32>) -> (!y, !y, tensor<3x2x2x2xf32>) {
  // CHECK-COUNT-3: nn.mul
  %w = nn.constant dense<[[[[1.0]]], [[[4.0]]]]> : tensor<2x1x1x1xf32>
  %s = nn.constant dense<[1.0, 7.0]> : tensor<2xf32>
  %t = nn.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>
  %u = nn.constant dense<[[[[1.0]]], [[[2.0]]], [[[3.0]]]]> : tensor<3x1x1x1xf32>
  %a = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x1x2x2xf32>, tensor<2x1x1x1xf32>) -> !y
  // expected-remark@+1 {{the constant varies along other dimensions than the output channels}}
  %b = nn.mul %a, %s : (!y, tensor<2xf32>) -> !y
  %c = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x1x2x2xf32>, tensor<2x1x1x1xf32>) -> !y
  // expected-remark@+1 {{the constant varies along other dimensions than the output channels}}
  %d = nn.mul %c, %t : (!y, tensor<2x2x2xf32>) -> !y
  %e = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x1x2x2xf32>, tensor<2x1x1x1xf32>) -> !y
  // expected-remark@+1 {{the constant enlarges the result}}
  %f = nn.mul %e, %u : (!y, tensor<3x1x1x1xf32>) -> tensor<3x2x2x2xf32>
  func.return %b, %d, %f : !y, !y, tensor<3x2x2x2xf32>
}

// -----

func.func @f16(%x: tensor<5x1xf16>) -> tensor<5x2xf16> {
  %w = nn.constant dense<[[1.0], [4.0]]> : tensor<2x1xf16>
  %s = nn.constant dense<[0.25, 4.0]> : tensor<2xf16>
  %c = nn.linear %x, %w : (tensor<5x1xf16>, tensor<2x1xf16>) -> tensor<5x2xf16>
  // expected-remark@+1 {{computes in f16, not in f32 or f64}}
  %n = nn.mul %c, %s : (tensor<5x2xf16>, tensor<2xf16>) -> tensor<5x2xf16>
  func.return %n : tensor<5x2xf16>
}

// -----

// As many output channels as the other input has rows: no constant can have a bias or factor for each.
func.func @symbolic_channels(%x: tensor<5x2xf32>, %w: tensor<?x2xf32, #nn.dims<[n, 2]>>) -> tensor<5x?xf32, #nn.dims<[5, n]>> attributes {nn.symbols = [#nn.symbol<n, 1>]} {
  %s = nn.constant dense<3.0> : tensor<f32>
  %l = nn.linear %x, %w : (tensor<5x2xf32>, tensor<?x2xf32, #nn.dims<[n, 2]>>) -> tensor<5x?xf32, #nn.dims<[5, n]>>
  // expected-remark@+1 {{the number of output channels is symbolic}}
  %m = nn.mul %l, %s : (tensor<5x?xf32, #nn.dims<[5, n]>>, tensor<f32>) -> tensor<5x?xf32, #nn.dims<[5, n]>>
  func.return %m : tensor<5x?xf32, #nn.dims<[5, n]>>
}

// -----

func.func @error(%x: tensor<5x2xf32>, %s: tensor<3xf32>) -> tensor<5x2xf32> {
  // expected-error@+1 {{shapes [5, 2] and [3] do not broadcast}}
  %n = nn.mul %x, %s : (tensor<5x2xf32>, tensor<3xf32>) -> tensor<5x2xf32>
  func.return %n : tensor<5x2xf32>
}
