// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fold-batch-norm,dce --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// factor = gamma / sqrt(var + eps) with this op's eps; the convolution's own bias is scaled too.
// CHECK-LABEL: func.func @conv_bias
func.func @conv_bias(%x: tensor<1x1x3x3xf32>) -> tensor<1x2x3x3xf32> {
  // CHECK-DAG: [[W:%[^ ]+]] = nn.constant dense<{{\[\[\[\[3.0\]\]\], \[\[\[10.0\]\]\]\]}}>
  // CHECK-DAG: [[B:%[^ ]+]] = nn.constant dense<[1.0, 6.5]>
  // CHECK: [[Y:%[^ ]+]] = nn.conv2d %x, [[W]] bias([[B]]) {
  // CHECK-NEXT: func.return [[Y]]
  %w = nn.constant dense<[[[[1.0]]], [[[4.0]]]]> : tensor<2x1x1x1xf32>
  %b = nn.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %mean = nn.constant dense<[0.25, 1.0]> : tensor<2xf32>
  %var = nn.constant dense<[0.5, 0.5]> : tensor<2xf32>
  %gamma = nn.constant dense<[3.0, 2.5]> : tensor<2xf32>
  %beta = nn.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %c = nn.conv2d %x, %w bias(%b) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x1x3x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32>
  %n = nn.batch_norm %c, %mean, %var weight(%gamma) bias(%beta) {eps = 5.0e-01 : f64} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32>
  func.return %n : tensor<1x2x3x3xf32>
}

// -----

// One weight, two batch norms: two new weights.
// CHECK-LABEL: func.func @shared_weight
func.func @shared_weight(%x: tensor<5x1xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  // CHECK-DAG: nn.constant dense<{{\[\[2.0\], \[2.0\]\]}}>
  // CHECK-DAG: nn.constant dense<{{\[\[0.5\], \[8.0\]\]}}>
  // CHECK-NOT: nn.batch_norm
  %w = nn.constant dense<[[1.0], [4.0]]> : tensor<2x1xf32>
  %zero = nn.constant dense<[0.0, 0.0]> : tensor<2xf32>
  %v = nn.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %u = nn.constant dense<[4.0, 0.25]> : tensor<2xf32>
  %c = nn.linear %x, %w : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  %n = nn.batch_norm %c, %zero, %v {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  %d = nn.linear %x, %w : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  %m = nn.batch_norm %d, %zero, %u {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %n, %m : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// Must not fold: the linear's result has another user, or is returned.
// CHECK-LABEL: func.func @other_use
func.func @other_use(%x: tensor<5x1xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  // CHECK: nn.batch_norm
  %w = nn.constant dense<[[1.0], [4.0]]> : tensor<2x1xf32>
  %s = nn.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %c = nn.linear %x, %w : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{the result of nn.linear has other uses}}
  %n = nn.batch_norm %c, %s, %s {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %n, %c : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// Must not fold: an activation in between.
func.func @activation(%x: tensor<5x1xf32>) -> tensor<5x2xf32> {
  %w = nn.constant dense<[[1.0], [4.0]]> : tensor<2x1xf32>
  %s = nn.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %c = nn.linear %x, %w {activation = #nn.relu} : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{nn.linear has an activation or a residual}}
  %n = nn.batch_norm %c, %s, %s {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %n : tensor<5x2xf32>
}

// -----

// Must not fold: after a linear of rank 3, axis 1 is not the feature axis. Square, so that no shape gives it away.
func.func @rank3(%x: tensor<5x2x3xf32>) -> tensor<5x2x2xf32> {
  %w = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %s = nn.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %c = nn.linear %x, %w : (tensor<5x2x3xf32>, tensor<2x3xf32>) -> tensor<5x2x2xf32>
  // expected-remark@+1 {{axis 1 is not the feature axis of a linear of rank other than 2}}
  %n = nn.batch_norm %c, %s, %s {eps = 0.0 : f64} : (tensor<5x2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2x2xf32>
  func.return %n : tensor<5x2x2xf32>
}

// -----

// Must not fold: statistics, parameters or the weight are not constant.
func.func @not_constant(%x: tensor<5x1xf32>, %w: tensor<2x1xf32>, %s: tensor<2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>) {
  %k = nn.constant dense<[[1.0], [4.0]]> : tensor<2x1xf32>
  %t = nn.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %c = nn.linear %x, %k : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{running statistics are not constant}}
  %n = nn.batch_norm %c, %t, %s {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  %d = nn.linear %x, %k : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{weight or bias of the batch norm is not constant}}
  %m = nn.batch_norm %d, %t, %t weight(%s) {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  %e = nn.linear %x, %w : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{weight or bias of nn.linear is not a float constant}}
  %l = nn.batch_norm %e, %t, %t {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %n, %m, %l : tensor<5x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// Must not fold: a factor that is not finite; var + eps that is not positive; a product beyond float32.
func.func @not_finite(%x: tensor<5x1xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>) {
  %w = nn.constant dense<[[1.0e+38], [4.0]]> : tensor<2x1xf32>
  %s = nn.constant dense<[0.0, 4.0]> : tensor<2xf32>
  %v = nn.constant dense<[-1.0, 4.0]> : tensor<2xf32>
  %u = nn.constant dense<[0.0001, 4.0]> : tensor<2xf32>
  %c = nn.linear %x, %w : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{var + eps is not positive, or a factor is not finite}}
  %n = nn.batch_norm %c, %s, %s {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  %d = nn.linear %x, %w : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{var + eps is not positive, or a factor is not finite}}
  %m = nn.batch_norm %d, %s, %v {eps = 0.5 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  %e = nn.linear %x, %w : (tensor<5x1xf32>, tensor<2x1xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{the folded weight or bias is not finite}}
  %l = nn.batch_norm %e, %s, %u {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %n, %m, %l : tensor<5x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// Must not fold: arithmetic of another type.
func.func @f16(%x: tensor<5x1xf16>) -> tensor<5x2xf16> {
  %w = nn.constant dense<[[1.0], [4.0]]> : tensor<2x1xf16>
  %s = nn.constant dense<[0.25, 4.0]> : tensor<2xf16>
  %c = nn.linear %x, %w : (tensor<5x1xf16>, tensor<2x1xf16>) -> tensor<5x2xf16>
  // expected-remark@+1 {{computes in f16, not in f32 or f64}}
  %n = nn.batch_norm %c, %s, %s {eps = 0.0 : f64} : (tensor<5x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<5x2xf16>
  func.return %n : tensor<5x2xf16>
}

// -----

func.func @error(%x: tensor<5x2xf32>, %s: tensor<5xf32>) -> tensor<5x2xf32> {
  // expected-error@+1 {{statistics and parameters must have shape [2]}}
  %n = nn.batch_norm %x, %s, %s {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5x2xf32>
  func.return %n : tensor<5x2xf32>
}
