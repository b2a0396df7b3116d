// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: qcomp-opt %s -p lower-to-loop,plan-memory -t 'c{program=tiny}' | filecheck %s
// RUN: qcomp-opt %s -p lower-to-loop,plan-memory -t 'c{program=tiny header=true}' | filecheck %s --check-prefix=HEADER
// RUN: qcomp-opt %s -p 'lower-to-loop{target="x86-64-avx512vnni"},plan-memory' -t c | filecheck %s --check-prefix=VNNI

// CHECK: #include "tiny.h"
// CHECK-NOT: immintrin
// CHECK: extern const int8_t tiny_w0[40];
// CHECK: /* linear_0: fc (model.py:7) */
// CHECK: static void linear_0(
// CHECK: const int8_t *x
// CHECK: int8_t *y
// CHECK: (int32_t)(uint8_t)v{{[0-9]+}} * (int32_t)v
// CHECK: void tiny_run(const float *data, float *out, void *arena) {
// CHECK:   /* fc (model.py:7) */
// CHECK-NEXT: linear_0(
// HEADER: #define TINY_ARENA_SIZE
// HEADER: void tiny_run(const float *data, float *out, void *arena);
// VNNI: #define VECTOR __attribute__((target("avx512f
// VNNI: _mm512_dpbusd_epi32
!x = tensor<2x8x!quant.uniform<u8:f32, 0.02:7>>
!y = tensor<2x5x!quant.uniform<u8:f32, 0.3:11>>
!w = tensor<5x8x!quant.uniform<i8<-127:127>:f32:0, {0.1, 0.2, 0.3, 0.4, 0.5}>>
func.func @main(%x: tensor<2x8xf32> {nn.name = "data"}) -> (tensor<2x5xf32> {nn.name = "out"}) {
  %q = quant.quantize %x : tensor<2x8xf32> -> !x
  %w = nn.constant dense<3> : !w
  %y = nn.linear %q, %w : (!x, !w) -> !y loc("fc"("model.py":7:0))
  %z = quant.dequantize %y : !y -> tensor<2x5xf32>
  func.return %z : tensor<2x5xf32>
}
