// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p cse --verify-rewrites --split-input-file --verify-diagnostics | filecheck %s

// Equal ops become one; equal constants too, by content.
// CHECK-LABEL: func.func @merge
func.func @merge(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-NEXT: [[C:%[^ ]+]] = nn.constant
  // CHECK-NEXT: [[A:%[^ ]+]] = nn.add %x, [[C]]
  // CHECK-NEXT: func.return [[A]], [[A]]
  %c = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %a = nn.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %d = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = nn.add %x, %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// -----

// Must not merge: attributes differ, a fused activation, the bits of a float (-0.0, NaN), result encodings, the order
// of operands.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-COUNT-2: nn.sub
  %s = nn.sub %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %t = nn.sub %y, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK-COUNT-2: nn.mul
  %a = nn.mul %s, %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = nn.mul %s, %t {activation = #nn.relu} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK-COUNT-2: nn.pad
  %c = nn.pad %a {low = array<i64: 1>, high = array<i64: 0>, value = 0.0 : f32} : tensor<2xf32> -> tensor<3xf32>
  %d = nn.pad %a {low = array<i64: 1>, high = array<i64: 0>, value = -0.0 : f32} : tensor<2xf32> -> tensor<3xf32>
  %e = nn.div %c, %d : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK-COUNT-2: nn.constant
  %m = nn.constant dense<[0.0, 1.0, 2.0]> : tensor<3xf32>
  %n = nn.constant dense<[-0.0, 1.0, 2.0]> : tensor<3xf32>
  %o = nn.div %m, %n : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %p = nn.add %o, %e : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %r = nn.slice %p {dim = 0, start = 1, end = 3, step = 1} : tensor<3xf32> -> tensor<2xf32>
  // CHECK-COUNT-2: quant.quantize
  %q = quant.quantize %r : tensor<2xf32> -> tensor<2x!quant.uniform<i8:f32, 0.02:3>>
  %u = quant.quantize %r : tensor<2xf32> -> tensor<2x!quant.uniform<i8:f32, 0.02:4>>
  %f = quant.dequantize %q : tensor<2x!quant.uniform<i8:f32, 0.02:3>> -> tensor<2xf32>
  %g = quant.dequantize %u : tensor<2x!quant.uniform<i8:f32, 0.02:4>> -> tensor<2xf32>
  %h = nn.mul %f, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %h, %g : tensor<2xf32>, tensor<2xf32>
}

// -----

// Calls have effects: they stay.
// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-COUNT-2: func.call @effect
  %a = func.call @effect(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = func.call @effect(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %a, %b : tensor<2xf32>, tensor<2xf32>
}
func.func private @effect(tensor<2xf32>) -> tensor<2xf32>

// -----

// expected-error@unknown {{cse after duplicate-dequantize would merge the private dequantizes again}}
builtin.module attributes {qcomp.private_dequantize} {
}
