// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p duplicate-dequantize --verify-rewrites --split-input-file --explain --verify-diagnostics | filecheck %s
// RUN: qcomp-opt %s -p duplicate-dequantize,duplicate-dequantize --verify-rewrites --split-input-file --verify-diagnostics | filecheck %s
// RUN: not qcomp-opt %s -p duplicate-dequantize,cse --split-input-file 2>&1 | filecheck %s --check-prefix=ORDER
// ORDER: cse after duplicate-dequantize

!q = tensor<2x3x!quant.uniform<i8:f32, 0.02:3>>
!f = tensor<2x3xf32>

// One copy per using op, in front of it; both operands of mul(x, x) read the same copy; the return keeps the shared one.
// CHECK: builtin.module attributes {qcomp.private_dequantize}
// CHECK-LABEL: func.func @copies
func.func @copies(%q: !q) -> (!f, !f, !f) {
  // CHECK-NEXT: [[D:%[^ ]+]] = quant.dequantize %q
  // CHECK-NEXT: [[D1:%[^ ]+]] = quant.dequantize %q
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu [[D1]]
  // CHECK-NEXT: [[D2:%[^ ]+]] = quant.dequantize %q
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.mul [[D2]], [[D2]]
  // CHECK-NEXT: func.return [[D]], [[R]], [[M]]
  %d = quant.dequantize %q : !q -> !f
  %r = nn.relu %d : !f -> !f
  %m = nn.mul %d, %d : (!f, !f) -> !f
  func.return %d, %r, %m : !f, !f, !f
}

// No return use: the shared one is gone.
// CHECK-LABEL: func.func @no_original
func.func @no_original(%q: !q) -> (!f, !f) {
  // CHECK-NEXT: [[D1:%[^ ]+]] = quant.dequantize %q
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu [[D1]]
  // CHECK-NEXT: [[D2:%[^ ]+]] = quant.dequantize %q
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.neg [[D2]]
  // CHECK-NEXT: func.return [[R]], [[N]]
  %d = quant.dequantize %q : !q -> !f
  %r = nn.relu %d : !f -> !f
  %n = nn.neg %d : !f -> !f
  func.return %r, %n : !f, !f
}

// Per-channel ones too.
// CHECK-LABEL: func.func @per_channel
func.func @per_channel(%x: tensor<5x3xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  // CHECK: [[W:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[D1:%[^ ]+]] = quant.dequantize [[W]]
  // CHECK-NEXT: [[Y:%[^ ]+]] = nn.linear %x, [[D1]]
  // CHECK-NEXT: [[N:%[^ ]+]] = nn.neg
  // CHECK-NEXT: [[D2:%[^ ]+]] = quant.dequantize [[W]]
  // CHECK-NEXT: [[Z:%[^ ]+]] = nn.linear [[N]], [[D2]]
  %w = nn.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %d = quant.dequantize %w : tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> !f
  %y = nn.linear %x, %d : (tensor<5x3xf32>, !f) -> tensor<5x2xf32>
  %n = nn.neg %x : tensor<5x3xf32> -> tensor<5x3xf32>
  %z = nn.linear %n, %d : (tensor<5x3xf32>, !f) -> tensor<5x2xf32>
  func.return %y, %z : tensor<5x2xf32>, tensor<5x2xf32>
}

// Must not copy: one using op; only the return. A dequantize that nothing uses goes.
// CHECK-LABEL: func.func @private
func.func @private(%q: !q) -> (!f, !f) {
  // CHECK-NEXT: [[D1:%[^ ]+]] = quant.dequantize %q
  // CHECK-NEXT: [[M:%[^ ]+]] = nn.mul [[D1]], [[D1]]
  // CHECK-NEXT: [[D2:%[^ ]+]] = quant.dequantize %q
  // CHECK-NEXT: func.return [[M]], [[D2]]
  %dead = quant.dequantize %q : !q -> !f
  %d = quant.dequantize %q : !q -> !f
  %m = nn.mul %d, %d : (!f, !f) -> !f
  %e = quant.dequantize %q : !q -> !f
  func.return %m, %e : !f, !f
}

// -----

func.func @error(%q: tensor<2x3x!quant.uniform<i8:f32, 0.02:3>>) -> tensor<2x3xf64> {
  // expected-error@+1 {{elements are f64, the type expresses f32}}
  %d = quant.dequantize %q : tensor<2x3x!quant.uniform<i8:f32, 0.02:3>> -> tensor<2x3xf64>
  func.return %d : tensor<2x3xf64>
}
