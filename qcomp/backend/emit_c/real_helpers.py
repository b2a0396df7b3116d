# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C helper functions for operations on reals: no libm, IEEE operations and bit patterns only."""

from __future__ import annotations

REAL_HELPERS = {
    "bits_of": """\
static inline int32_t bits_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
""",
    "real_of": """\
static inline float real_of(int32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
""",
    "absolute": """\
static inline float absolute(float x) {
  return real_of(bits_of(x) & 0x7FFFFFFF);
}
""",
    "copy_sign": """\
static inline float copy_sign(float size, float sign) {
  return real_of((bits_of(size) & 0x7FFFFFFF) | (bits_of(sign) & ~0x7FFFFFFF));
}
""",
    "shift_right": """\
static inline int32_t shift_right(int32_t x, int32_t count) {
  return x < 0 ? ~(~x >> count) : x >> count;
}
""",
    "round_even": """\
/* Half to even: floats from 2^23 on are whole, and adding 2^23 to smaller ones leaves no bits for a fraction. */
static inline float round_even(float x) {
  const float size = absolute(x);
  return size < 8388608.0f ? copy_sign((size + 8388608.0f) - 8388608.0f, x) : x;
}
""",
    "scale_by": """\
/* x * 2^n rounded once: after the first of two factors moderate numbers are still normal. */
static inline float scale_by(float x, float n) {
  const int32_t whole = n == n ? (int32_t)n : 0;
  const int32_t half = whole / 2;
  const float scaled = x * real_of((half + 127) * 8388608) * real_of((whole - half + 127) * 8388608);
  return n == n ? scaled : n;
}
""",
    "square_root": """\
/* Correctly rounded, digit by digit: 24 binary digits of the root of a fraction in [1, 4), and one to round by. */
static inline float square_root(float x) {
  if (!(x > 0.0f) || x > 3.402823466e+38f) return x < 0.0f ? 0.0f / 0.0f : x;
  int32_t exponent = bits_of(x) >> 23;
  uint32_t rest = (uint32_t)bits_of(x) & 0x7FFFFF;
  if (exponent == 0) {
    for (exponent = 1; rest < 0x800000; --exponent) rest *= 2;
  }
  rest |= 0x800000;
  if (exponent % 2 == 0) rest *= 2;
  rest *= 2;
  uint32_t root = 0, sum = 0;
  for (uint32_t digit = 0x1000000; digit != 0; digit /= 2) {
    const uint32_t next = sum + digit;
    if (next <= rest) {
      sum = next + digit;
      rest -= next;
      root += digit;
    }
    rest *= 2;
  }
  root += root & 1;
  return real_of((int32_t)((root >> 1) + (uint32_t)((exponent + 125) >> 1) * 0x800000));
}
""",
    "truncate_i32": """\
static inline int32_t truncate_i32(float x) {
  if (x >= 2147483648.0f) return INT32_MAX;
  return x > -2147483648.0f ? (int32_t)x : x == x ? INT32_MIN : 0;
}
""",
    "truncate_i64": """\
static inline int64_t truncate_i64(float x) {
  if (x >= 9223372036854775808.0f) return INT64_MAX;
  return x > -9223372036854775808.0f ? (int64_t)x : x == x ? INT64_MIN : 0;
}
""",
    "maximum16": """\
VECTOR static inline __m512 maximum16(__m512 a, __m512 b) {
  return _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
}
""",
    "minimum16": """\
VECTOR static inline __m512 minimum16(__m512 a, __m512 b) {
  return _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
}
""",
    "copy_sign16": """\
VECTOR static inline __m512 copy_sign16(__m512 size, __m512 sign) {
  const __m512 mask = _mm512_set1_ps(-0.0f);
  return _mm512_or_ps(_mm512_andnot_ps(mask, size), _mm512_and_ps(mask, sign));
}
""",
    "truncate16": """\
VECTOR static inline __m512i truncate16(__m512 x) {
  const __mmask16 high = _mm512_cmp_ps_mask(x, _mm512_set1_ps(2147483648.0f), _CMP_GE_OQ);
  const __m512i whole = _mm512_maskz_cvttps_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
  return _mm512_mask_mov_epi32(whole, high, _mm512_set1_epi32(INT32_MAX));
}
""",
    "add16": """\
/* The rounding mode keeps compilers from fusing a product into the sum. */
VECTOR static inline __m512 add16(__m512 a, __m512 b) {
  return _mm512_add_round_ps(a, b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
""",
    "reduce_add16": """\
VECTOR static inline float reduce_add16(__m512 x) {
  x = add16(x, _mm512_shuffle_f32x4(x, x, 0xEE));
  x = add16(x, _mm512_shuffle_f32x4(x, x, 0x55));
  x = add16(x, _mm512_permute_ps(x, 0xEE));
  return _mm512_cvtss_f32(add16(x, _mm512_permute_ps(x, 0x55)));
}
""",
    "reduce_add16_i32": """\
VECTOR static inline int32_t reduce_add16_i32(__m512i x) {
  return _mm512_reduce_add_epi32(x);
}
""",
    "reduce_max16_i32": """\
VECTOR static inline int32_t reduce_max16_i32(__m512i x) {
  return _mm512_reduce_max_epi32(x);
}
""",
    "reduce_max16": """\
VECTOR static inline float reduce_max16(__m512 x) {
  x = maximum16(_mm512_shuffle_f32x4(x, x, 0xEE), x);
  x = maximum16(_mm512_shuffle_f32x4(x, x, 0x55), x);
  x = maximum16(_mm512_permute_ps(x, 0xEE), x);
  return _mm512_cvtss_f32(maximum16(_mm512_permute_ps(x, 0x55), x));
}
""",
}
"""Text by name, each after those it calls."""
