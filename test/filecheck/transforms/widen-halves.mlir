// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p widen-halves --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// One cast for both readers; what computes element by element stays; rounding between two ops stays.
// CHECK-LABEL: func.func @fires
func.func @fires(%x: tensor<2x3xbf16>) -> (tensor<2x3xbf16>, tensor<2xbf16>) {
  // CHECK-NEXT: [[X:%[^ ]+]] = nn.cast %x : tensor<2x3xbf16> -> tensor<2x3xf32>
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.softmax [[X]] {dim = 1 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK-NEXT: %y = nn.cast [[S]] : tensor<2x3xf32> -> tensor<2x3xbf16>
  // CHECK-NEXT: %z = nn.add %y, %x
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.mean [[X]] {{.*}} : tensor<2x3xf32> -> tensor<2xf32>
  // CHECK-NEXT: %m = nn.cast [[M]] : tensor<2xf32> -> tensor<2xbf16>
  // CHECK-NEXT: [[Y:%[^ ]+]] = nn.cast %y
  // CHECK-NEXT: nn.softmax [[Y]]
  // CHECK-NEXT: %w = nn.cast
  // CHECK-NEXT: %v = nn.add %z, %w
  %y = nn.softmax %x {dim = 1 : i64} : tensor<2x3xbf16> -> tensor<2x3xbf16>
  %z = nn.add %y, %x : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<2x3xbf16>
  %m = nn.mean %x {dim = array<i64: 1>, keepdim = false} : tensor<2x3xbf16> -> tensor<2xbf16>
  %w = nn.softmax %y {dim = 0 : i64} : tensor<2x3xbf16> -> tensor<2x3xbf16>
  %v = nn.add %z, %w : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<2x3xbf16>
  func.return %v, %m : tensor<2x3xbf16>, tensor<2xbf16>
}

// -----

// The weight stays 16 bits wide, also when constants are folded; a bias is small enough to become float32.
// CHECK-LABEL: func.func @weights
func.func @weights(%x: tensor<5x3xf16>) -> tensor<5x2xf16> {
  // CHECK-DAG: %w = nn.constant dense<{{.*}}> : tensor<2x3xf16>
  // CHECK-DAG: %b = nn.constant dense<{{.*}}> : tensor<2xf16>
  // CHECK-DAG: [[X:%[^ ]+]] = nn.cast %x
  // CHECK-DAG: [[W:%[^ ]+]] = nn.cast %w
  // CHECK-DAG: [[B:%[^ ]+]] = nn.cast %b
  // CHECK: nn.linear [[X]], [[W]] bias([[B]])
  // CHECK-NEXT: nn.cast
  %w = nn.constant dense<[[1.0, 2.0, 0.5], [3.0, 4.0, 5.0]]> : tensor<2x3xf16>
  %b = nn.constant dense<[0.25, 1.0]> : tensor<2xf16>
  %y = nn.linear %x, %w bias(%b) : (tensor<5x3xf16>, tensor<2x3xf16>, tensor<2xf16>) -> tensor<5x2xf16>
  func.return %y : tensor<5x2xf16>
}

// -----

// An operand or result of another type stays what it is.
// CHECK-LABEL: func.func @mixed
func.func @mixed(%x: tensor<1x1x4x4xf16>, %j: tensor<3x1xi64>, %u: tensor<3x2xf16>) -> (tensor<1x1x2x2xi64>, tensor<5x2xf16>) {
  // CHECK: [[X:%[^ ]+]] = nn.cast %x
  // CHECK-NEXT: nn.max_pool2d_indices [[X]] {{.*}} : tensor<1x1x4x4xf32> -> tensor<1x1x2x2xi64>
  // CHECK: nn.scatter {{.*}} : (tensor<5x2xf32>, tensor<3x1xi64>, tensor<3x2xf32>) -> tensor<5x2xf32>
  %p = nn.max_pool2d_indices %x {kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, ceil_mode = false} : tensor<1x1x4x4xf16> -> tensor<1x1x2x2xi64>
  %z = nn.constant dense<0.0> : tensor<5x2xf16>
  %s = nn.scatter %u into %z[%j] {dim = 0 : i64, reduce = "add"} : (tensor<5x2xf16>, tensor<3x1xi64>, tensor<3x2xf16>) -> tensor<5x2xf16>
  func.return %p, %s : tensor<1x1x2x2xi64>, tensor<5x2xf16>
}

// -----

// Must not: other types; ops that move elements; curves; running totals, which are carried in float32.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<2x3xf32>, %d: tensor<2x3xf64>, %h: tensor<2x3xf16>, %i: tensor<2xi64>) -> (tensor<2x3xf32>, tensor<2x3xf64>, tensor<3x2xf16>, tensor<2x3xf16>, tensor<2x3xf16>, tensor<2x3xf16>) {
  // CHECK-NOT: nn.cast
  // CHECK: func.return
  %a = nn.softmax %x {dim = 1 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  %b = nn.softmax %d {dim = 1 : i64} : tensor<2x3xf64> -> tensor<2x3xf64>
  %c = nn.permute %h {dims = array<i64: 1, 0>} : tensor<2x3xf16> -> tensor<3x2xf16>
  %e = nn.tanh %h : tensor<2x3xf16> -> tensor<2x3xf16>
  %f = nn.scan "add", %h {dim = 1 : i64} : tensor<2x3xf16> -> tensor<2x3xf16>
  %g = nn.embedding %h, %i : (tensor<2x3xf16>, tensor<2xi64>) -> tensor<2x3xf16>
  func.return %a, %b, %c, %e, %f, %g : tensor<2x3xf32>, tensor<2x3xf64>, tensor<3x2xf16>, tensor<2x3xf16>, tensor<2x3xf16>, tensor<2x3xf16>
}

// -----

!q = tensor<2x3x!quant.uniform<i16:bf16, 0.5:-1000>>
// Must not: the codes stand for numbers of bf16, to which they are rounded.
func.func @codes_of_halves(%h: tensor<2x3xbf16>) -> !q {
  // expected-remark@+1 {{codes stand for 16-bit floats}}
  %c = quant.quantize %h {recipe = f32} : tensor<2x3xbf16> -> !q
  func.return %c : !q
}
