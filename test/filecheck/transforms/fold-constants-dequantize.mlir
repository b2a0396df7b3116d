// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p fold-constants{dequantize=true} --verify-rewrites | filecheck %s
// RUN: not qcomp-opt %s -p fold-constants{growth=1} 2>&1 | filecheck %s --check-prefix=OPTION
// OPTION: error: pass fold-constants:

// Only when asked for: a constant behind a dequantize becomes a float constant.
// CHECK-LABEL: func.func @weight
func.func @weight() -> tensor<2x2xf32> {
  // CHECK-NEXT: nn.constant dense<[[2.5, 4.0], [-1.0, 0.5]]>
  %w = nn.constant dense<[[5, 8], [-4, 2]]> : tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  %d = quant.dequantize %w : tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>> -> tensor<2x2xf32>
  func.return %d : tensor<2x2xf32>
}
