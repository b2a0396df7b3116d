// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p unfuse-qdq --verify-rewrites --split-input-file --verify-diagnostics | filecheck %s

!x = tensor<4x3x!quant.uniform<i8:f32, 0.03:-7>>
!w = tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
!y = tensor<4x2x!quant.uniform<i8:f32, 0.2:5>>

// CHECK-LABEL: func.func @residual
func.func @residual(%x: !x, %r: !y) -> (!y, tensor<4x2xf32>) {
  // CHECK: [[W:%[^ ]+]] = nn.constant
  // CHECK: [[D:%[^ ]+]] = quant.dequantize %x
  // CHECK-NEXT: [[V:%[^ ]+]] = quant.dequantize [[W]]
  // CHECK-NEXT: [[E:%[^ ]+]] = quant.dequantize %r
  // CHECK-NEXT: [[L:%[^ ]+]] = nn.linear [[D]], [[V]] bias({{.*}}) : {{.*}} -> tensor<4x2xf32>
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add [[L]], [[E]] {activation = #nn.relu}
  // CHECK-NEXT: [[Q:%[^ ]+]] = quant.quantize [[A]]
  // CHECK: nn.linear {{.*}}{activation = #nn.relu} : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: func.return [[Q]]
  %w = nn.constant dense<[[5, -7, 127], [-2, 88, 1]]> : !w
  %b = nn.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %l = nn.linear %x, %w bias(%b) residual(%r) {activation = #nn.relu} : (!x, !w, tensor<2xf32>, !y) -> !y
  %m = nn.linear %x, %w {activation = #nn.relu} : (!x, !w) -> tensor<4x2xf32>
  func.return %l, %m : !y, tensor<4x2xf32>
}

// CHECK-LABEL: func.func @average
func.func @average(%x: !x) -> tensor<4x!quant.uniform<i8:f32, 0.02:1>> {
  // CHECK-NEXT: quant.dequantize
  // CHECK-NEXT: nn.mean
  // CHECK-NEXT: quant.quantize
  %m = nn.mean %x {dim = array<i64: 1>, keepdim = false} : !x -> tensor<4x!quant.uniform<i8:f32, 0.02:1>>
  func.return %m : tensor<4x!quant.uniform<i8:f32, 0.02:1>>
}

// What keeps every bit on codes stays, and what is float.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: !x, %f: tensor<4x3xf32>, %g: tensor<2x3xf32>) -> (!x, !y) {
  // CHECK-NEXT: nn.sigmoid %x
  // CHECK-NEXT: nn.linear %f, %g
  // CHECK-NEXT: quant.quantize
  %s = nn.sigmoid %x : !x -> !x
  %l = nn.linear %f, %g : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  %q = quant.quantize %l : tensor<4x2xf32> -> !y
  func.return %s, %q : !x, !y
}

// -----

func.func @error(%x: tensor<4x3x!quant.uniform<i8:f32, 0.03:-7>>, %w: tensor<2x3x!quant.uniform<i8:f32, 0.5>>, %r: tensor<2x!quant.uniform<i8:f32, 0.2:5>>) -> tensor<4x2xf32> {
  // expected-error@+1 {{residual must have the result's shape [4, 2]}}
  %l = nn.linear %x, %w residual(%r) : (tensor<4x3x!quant.uniform<i8:f32, 0.03:-7>>, tensor<2x3x!quant.uniform<i8:f32, 0.5>>, tensor<2x!quant.uniform<i8:f32, 0.2:5>>) -> tensor<4x2xf32>
  func.return %l : tensor<4x2xf32>
}
