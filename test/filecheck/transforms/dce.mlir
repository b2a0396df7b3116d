// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p dce --verify-rewrites --split-input-file --verify-diagnostics | filecheck %s

// Chains of pure ops without a use go, constants too.
// CHECK-LABEL: func.func @dead
func.func @dead(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: [[R:%[^ ]+]] = nn.relu
  // CHECK-NEXT: func.return [[R]]
  %c = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = nn.relu %x : tensor<2xf32> -> tensor<2xf32>
  %a = nn.add %r, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %q = quant.quantize %a : tensor<2xf32> -> tensor<2x!quant.uniform<i8:f32, 0.02:3>>
  %d = quant.dequantize %q : tensor<2x!quant.uniform<i8:f32, 0.02:3>> -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// -----

// Must not go: a call may have effects; a function is a symbol; what is returned is used.
// CHECK-LABEL: func.func @effects
func.func @effects(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: func.call @effect
  // CHECK-NEXT: nn.constant
  // CHECK-NEXT: func.return
  %n = nn.neg %x : tensor<2xf32> -> tensor<2xf32>
  %a = func.call @effect(%n) : (tensor<2xf32>) -> tensor<2xf32>
  %c = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  func.return %c : tensor<2xf32>
}
// CHECK: func.func private @effect
func.func private @effect(tensor<2xf32>) -> tensor<2xf32>

// -----

// expected-error@+1 {{Operation undefined-op is not registered}}
"undefined-op"() : () -> ()
