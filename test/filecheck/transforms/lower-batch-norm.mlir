// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p lower-batch-norm --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @stand_alone
func.func @stand_alone(%x: tensor<3x2x5x7xf32>) -> tensor<3x2x5x7xf32> {
  // CHECK: [[F:%[^ ]+]] = nn.constant dense<{{\[\[\[2.0\]\], \[\[6.0\]\]\]}}> : tensor<2x1x1xf32>
  // CHECK-NEXT: [[S:%[^ ]+]] = nn.constant dense<{{\[\[\[0.5\]\], \[\[-21.0\]\]\]}}> : tensor<2x1x1xf32>
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.mul %x, [[F]]
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add [[M]], [[S]]
  // CHECK-NEXT: func.return [[A]]
  %mean = nn.constant dense<[0.25, 4.0]> : tensor<2xf32>
  %var = nn.constant dense<[0.75, 3.75]> : tensor<2xf32>
  %gamma = nn.constant dense<[2.0, 12.0]> : tensor<2xf32>
  %beta = nn.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %n = nn.batch_norm %x, %mean, %var weight(%gamma) bias(%beta) {eps = 0.25 : f64} : (tensor<3x2x5x7xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<3x2x5x7xf32>
  func.return %n : tensor<3x2x5x7xf32>
}

// -----

// CHECK-LABEL: func.func @not_constant
func.func @not_constant(%x: tensor<5x2x3xf32>, %m: tensor<2xf32>, %s: tensor<2xf32>, %w: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<5x2x3xf32> {
  // CHECK-NEXT: [[E:%[^ ]+]] = nn.constant dense<0.25> : tensor<f32>
  // CHECK-NEXT: [[V:%[^ ]+]] = nn.add %s, [[E]]
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.rsqrt [[V]]
  // CHECK-NEXT: [[F:%[^ ]+]] = nn.mul [[R]], %w
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.reshape %m : tensor<2xf32> -> tensor<2x1xf32>
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.sub %x, [[M]]
  // CHECK-NEXT: [[G:%[^ ]+]] = nn.reshape [[F]]
  // CHECK-NEXT: [[P:%[^ ]+]] = nn.mul [[C]], [[G]]
  // CHECK-NEXT: [[B:%[^ ]+]] = nn.reshape %b
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add [[P]], [[B]]
  // CHECK-NEXT: func.return [[A]]
  // expected-remark@+1 {{running statistics are not constant}}
  %n = nn.batch_norm %x, %m, %s weight(%w) bias(%b) {eps = 0.25 : f64} : (tensor<5x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2x3xf32>
  func.return %n : tensor<5x2x3xf32>
}

// -----

// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: tensor<5x2xf16>, %s: tensor<2xf16>) -> tensor<5x2xf16> {
  // CHECK-NEXT: nn.batch_norm
  // expected-remark@+2 {{LowerBatchNorm refused 'nn.batch_norm': computes in f16, not in f32 or f64}}
  // expected-remark@+1 {{LowerVariableBatchNorm refused 'nn.batch_norm': computes in f16, not in f32 or f64}}
  %n = nn.batch_norm %x, %s, %s {eps = 0.25 : f64} : (tensor<5x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<5x2xf16>
  func.return %n : tensor<5x2xf16>
}

// -----

func.func @not_finite(%x: tensor<5x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %s = nn.constant dense<[0.0, 4.0]> : tensor<2xf32>
  // expected-remark@+1 {{var + eps is not positive, or a factor is not finite}}
  %n = nn.batch_norm %x, %s, %s {eps = 0.0 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  // expected-remark@+1 {{a factor is not finite}}
  %m = nn.batch_norm %x, %s, %s {eps = 1.0e-100 : f64} : (tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  func.return %n, %m : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

func.func @error(%x: tensor<5xf32>, %s: tensor<5xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{input must have rank 2 or more}}
  %n = nn.batch_norm %x, %s, %s {eps = 0.0 : f64} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %n : tensor<5xf32>
}
