// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fold-batch-norm-qat --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// Weight and bias take the batch norm in; the observer keeps its encoding.
// CHECK-LABEL: func.func @fires
func.func @fires(%x: tensor<1x1x2x3xf32>) -> (tensor<1x2x2x3xf32>) {
  // CHECK-DAG: [[W:%[^ ]+]] = nn.constant dense<{{.*}}1.1546{{.*}}-3.9999{{.*}}> : tensor<2x1x1x1xf32>
  // CHECK-DAG: [[B:%[^ ]+]] = nn.constant dense<[1.279{{.*}}> : tensor<2xf32>
  // CHECK: [[O:%[^ ]+]] = quant.observe [[W]] : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  // CHECK-NEXT: [[Y:%[^ ]+]] = nn.conv2d %x, [[O]] bias([[B]])
  // CHECK-NEXT: func.return [[Y]]
  %w0 = nn.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %mean = nn.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<1.0e-05> : tensor<f32>
  %z = nn.constant dense<0.0> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.mul %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// Must not: the factor in the graph has another eps than the batch norm.
// CHECK-LABEL: func.func @eps
func.func @eps(%x: tensor<1x1x2x3xf32>) -> (tensor<1x2x2x3xf32>) {
  // CHECK: nn.batch_norm
  %w0 = nn.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %mean = nn.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<0.1> : tensor<f32>
  %z = nn.constant dense<0.0> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.mul %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  // expected-remark@+1 {{the factor in the graph is not that of the batch norm}}
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// Must not: a bias that is divided too.
// CHECK-LABEL: func.func @bias_before
func.func @bias_before(%x: tensor<1x1x2x3xf32>) -> (tensor<1x2x2x3xf32>) {
  // CHECK: nn.batch_norm
  %w0 = nn.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %mean = nn.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<1.0e-05> : tensor<f32>
  %z = nn.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.mul %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  // expected-remark@+1 {{the convolution adds a bias before the division}}
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// Must not: an activation in between.
// CHECK-LABEL: func.func @activation
func.func @activation(%x: tensor<1x1x2x3xf32>) -> (tensor<1x2x2x3xf32>) {
  // CHECK: nn.batch_norm
  %w0 = nn.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %mean = nn.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<1.0e-05> : tensor<f32>
  %z = nn.constant dense<0.0> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.mul %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1, activation = #nn.relu} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  // expected-remark@+1 {{the convolution has an activation, a residual, or its output channels not along axis 0}}
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// Must not: the value between is returned as well.
// CHECK-LABEL: func.func @other_use
func.func @other_use(%x: tensor<1x1x2x3xf32>) -> (tensor<1x2x2x3xf32>, tensor<1x2x2x3xf32>) {
  // CHECK: nn.batch_norm
  %w0 = nn.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %mean = nn.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<1.0e-05> : tensor<f32>
  %z = nn.constant dense<0.0> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.mul %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  // expected-remark@+1 {{a value between convolution and batch norm has other uses}}
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y, %d : tensor<1x2x2x3xf32>, tensor<1x2x2x3xf32>
}

// -----

// Must not: statistics that come from outside.
// CHECK-LABEL: func.func @statistics
func.func @statistics(%x: tensor<1x1x2x3xf32>, %mean: tensor<2xf32>) -> (tensor<1x2x2x3xf32>) {
  // CHECK: nn.batch_norm
  %w0 = nn.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<1.0e-05> : tensor<f32>
  %z = nn.constant dense<0.0> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.mul %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  // expected-remark@+1 {{weight, bias, statistics or parameters are not constants in f32}}
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// Must not: the weight is observed as it is.
// CHECK-LABEL: func.func @plain_weight
func.func @plain_weight(%x: tensor<1x1x2x3xf32>) -> (tensor<1x2x2x3xf32>) {
  // CHECK: nn.batch_norm
  %w0 = nn.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %mean = nn.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<1.0e-05> : tensor<f32>
  %z = nn.constant dense<0.0> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.add %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  // expected-remark@+1 {{the weight is not multiplied by the factor of the batch norm}}
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// Must not: a weight that would be infinite.
// CHECK-LABEL: func.func @overflow
func.func @overflow(%x: tensor<1x1x2x3xf32>) -> (tensor<1x2x2x3xf32>) {
  // CHECK: nn.batch_norm
  %w0 = nn.constant dense<[[[[1.0]]], [[[3.0e38]]]]> : tensor<2x1x1x1xf32>
  %mean = nn.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %var = nn.constant dense<[3.0, 0.25]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %beta = nn.constant dense<[0.125, 3.0]> : tensor<2xf32>
  %b = nn.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %e = nn.constant dense<1.0e-05> : tensor<f32>
  %z = nn.constant dense<0.0> : tensor<2xf32>
  %v = nn.add %var, %e : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %q = nn.sqrt %v : tensor<2xf32> -> tensor<2xf32>
  %f = nn.div %gamma, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = nn.reshape %f : tensor<2xf32> -> tensor<2x1x1x1xf32>
  %m = nn.mul %w0, %r : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x1xf32>
  %o = quant.observe %m : tensor<2x1x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.04}>
  %c = nn.conv2d %x, %o bias(%z) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1} : (tensor<1x1x2x3xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  %s = nn.reshape %f : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %d = nn.div %c, %s : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %t = nn.reshape %b : tensor<2xf32> -> tensor<1x2x1x1xf32>
  %a = nn.add %d, %t : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  // expected-remark@+1 {{the folded weight or bias is not finite}}
  %y = nn.batch_norm %a, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : (tensor<1x2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}
