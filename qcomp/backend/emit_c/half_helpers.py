# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C helper functions between float and the patterns of float16 and bfloat16; one of 16 lanes beside each."""

from __future__ import annotations

HALF_HELPERS = {
    "widen_bf16": """\
static inline float widen_bf16(int16_t x) {
  return real_of((int32_t)((uint32_t)(uint16_t)x << 16));
}
""",
    "widen_f16": """\
/* The exponent is moved by a product, which is exact for denormals too. */
static inline float widen_f16(int16_t x) {
  const uint32_t size = (uint16_t)x & 0x7FFFu, sign = (uint32_t)((uint16_t)x & 0x8000u) << 16;
  const float value = size >= 0x7C00u ? real_of((int32_t)(size << 13 | 0x7F800000u))
                                      : real_of((int32_t)(size << 13)) * 0x1p112f;
  return real_of((int32_t)((uint32_t)bits_of(value) | sign));
}
""",
    "narrow_bf16": """\
static inline int16_t narrow_bf16(float x) {
  const uint32_t bits = (uint32_t)bits_of(x);
  return (int16_t)(uint16_t)(x != x ? 0x7FC0u : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}
""",
    "narrow_f16": """\
/* Adding 1/2 to what becomes denormal leaves as many bits as denormals have. */
static inline int16_t narrow_f16(float x) {
  const uint32_t bits = (uint32_t)bits_of(x), size = bits & 0x7FFFFFFFu, sign = bits >> 16 & 0x8000u;
  uint32_t pattern = 0x7E00u;
  if (size < 0x38800000u) pattern = (uint32_t)bits_of(real_of((int32_t)size) + 0.5f) - 0x3F000000u;
  else if (x == x) pattern = size >= 0x477FF000u ? 0x7C00u : ((size + 0xFFFu + (size >> 13 & 1u)) >> 13) - 0x1C000u;
  return (int16_t)(uint16_t)(pattern | sign);
}
""",
    "widen_bf16_16": """\
VECTOR static inline __m512 widen_bf16_16(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
""",
    "widen_f16_16": """\
VECTOR static inline __m512 widen_f16_16(__m256i x) {
  return _mm512_cvtph_ps(x);
}
""",
    "narrow_bf16_16": """\
VECTOR static inline __m256i narrow_bf16_16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x), half = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(half, _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), nan, _mm512_set1_epi32(0x7FC0)));
}
""",
    "narrow_f16_16": """\
VECTOR static inline __m256i narrow_f16_16(__m512 x) {
  return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
""",
    "gather_i16": """\
VECTOR static inline __m256i gather_i16(const int16_t *p, ptrdiff_t stride, int count) {
  int16_t lanes[16] = {0};
  for (int lane = 0; lane < count; ++lane) lanes[lane] = p[lane * stride];
  return _mm256_loadu_si256((const void *)lanes);
}
""",
    "scatter_i16": """\
VECTOR static inline void scatter_i16(int16_t *p, ptrdiff_t stride, int count, __m256i x) {
  int16_t lanes[16];
  _mm256_storeu_si256((void *)lanes, x);
  for (int lane = 0; lane < count; ++lane) p[lane * stride] = lanes[lane];
}
""",
}
"""Text by name; they call those of `real_helpers`."""
