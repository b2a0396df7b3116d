# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C helper functions for operations on reals: no libm, IEEE operations and bit patterns only."""

from __future__ import annotations


def _shift_right(bits: int, suffix: str) -> str:
    return f"""\
static inline int{bits}_t shift_right{suffix}(int{bits}_t x, int{bits}_t count) {{
  return x < 0 ? ~(~x >> count) : x >> count;
}}
"""


def _truncate(kind: str, bits: int, suffix: str) -> str:
    bound = f"{1 << (bits - 1)}.0{'f' if kind == 'float' else ''}"
    return f"""\
static inline int{bits}_t truncate_i{bits}{suffix}({kind} x) {{
  if (x >= {bound}) return INT{bits}_MAX;
  return x > -{bound} ? (int{bits}_t)x : x == x ? INT{bits}_MIN : 0;
}}
"""


def _bit_patterns(kind: str, bits: int, suffix: str) -> dict[str, str]:
    """Between a real and its bits, and what is done to the sign alone."""
    whole = f"int{bits}_t"
    return {
        f"bits_of{suffix}": f"""\
static inline {whole} bits_of{suffix}({kind} x) {{
  {whole} bits;
  memcpy(&bits, &x, {bits // 8});
  return bits;
}}
""",
        f"real_of{suffix}": f"""\
static inline {kind} real_of{suffix}({whole} bits) {{
  {kind} x;
  memcpy(&x, &bits, {bits // 8});
  return x;
}}
""",
        f"absolute{suffix}": f"""\
static inline {kind} absolute{suffix}({kind} x) {{
  return real_of{suffix}(bits_of{suffix}(x) & INT{bits}_MAX);
}}
""",
        f"copy_sign{suffix}": f"""\
static inline {kind} copy_sign{suffix}({kind} size, {kind} sign) {{
  return real_of{suffix}((bits_of{suffix}(size) & INT{bits}_MAX) | (bits_of{suffix}(sign) & INT{bits}_MIN));
}}
""",
    }


def _round_even(kind: str, fraction: int, suffix: str) -> str:
    whole = f"{1 << fraction}.0{'f' if kind == 'float' else ''}"
    return f"""\
/* Half to even: reals from 2^{fraction} on are whole, and adding that to smaller ones leaves no bits for a fraction. */
static inline {kind} round_even{suffix}({kind} x) {{
  const {kind} size = absolute{suffix}(x);
  return size < {whole} ? copy_sign{suffix}((size + {whole}) - {whole}, x) : x;
}}
"""


def _square_root(kind: str, bits: int, fraction: int, suffix: str) -> str:
    top = (1 << (bits - fraction - 1)) - 1
    return f"""\
/* Correctly rounded: {fraction + 1} binary digits of the root of a fraction in [1, 4), and one to round by. */
static inline {kind} square_root{suffix}({kind} x) {{
  const uint{bits}_t one = (uint{bits}_t)1 << {fraction};
  if (!(x > 0) || bits_of{suffix}(x) >> {fraction} == {top}) return x < 0 ? ({kind})(0.0f / 0.0f) : x;
  int{bits}_t exponent = bits_of{suffix}(x) >> {fraction};
  uint{bits}_t rest = (uint{bits}_t)bits_of{suffix}(x) % one;
  if (exponent == 0) {{
    for (exponent = 1; rest < one; --exponent) rest *= 2;
  }}
  rest |= one;
  if (exponent % 2 == 0) rest *= 2;
  rest *= 2;
  uint{bits}_t root = 0, sum = 0;
  for (uint{bits}_t digit = 2 * one; digit != 0; digit /= 2) {{
    const uint{bits}_t next = sum + digit;
    if (next <= rest) {{
      sum = next + digit;
      rest -= next;
      root += digit;
    }}
    rest *= 2;
  }}
  root += root & 1;
  return real_of{suffix}((int{bits}_t)((root >> 1) + (uint{bits}_t)((exponent + {top // 2 - 2}) >> 1) * one));
}}
"""


def _scale_by(kind: str, bits: int, fraction: int, suffix: str) -> str:
    whole, bias = f"int{bits}_t", (1 << (bits - fraction - 2)) - 1
    first, second = (f"real_of{suffix}(({part} + {bias}) * {1 << fraction})" for part in ("half", "whole - half"))
    return f"""\
/* x * 2^n rounded once: after the first of two factors moderate numbers are still normal. */
static inline {kind} scale_by{suffix}({kind} x, {kind} n) {{
  const {whole} whole = n == n ? ({whole})n : 0;
  const {whole} half = whole / 2;
  const {kind} scaled = x * {first} * {second};
  return n == n ? scaled : n;
}}
"""


def _of_both_widths() -> dict[str, str]:
    found = {f"shift_right{suffix}": _shift_right(bits, suffix) for bits, suffix in ((32, ""), (64, "_i64"))}
    for kind, bits, fraction, suffix in (("float", 32, 23, ""), ("double", 64, 52, "_f64")):
        found |= _bit_patterns(kind, bits, suffix)
        found[f"round_even{suffix}"] = _round_even(kind, fraction, suffix)
        found[f"scale_by{suffix}"] = _scale_by(kind, bits, fraction, suffix)
        found[f"square_root{suffix}"] = _square_root(kind, bits, fraction, suffix)
        found |= {f"truncate_i{width}{suffix}": _truncate(kind, width, suffix) for width in (32, 64)}
    return found


REAL_HELPERS = {
    **_of_both_widths(),
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
