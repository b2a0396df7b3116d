# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C helper functions that are exact: whole quotients, remainders of reals, angles modulo pi/2, float64. No libm."""

from __future__ import annotations


def _floor_quotient(bits: int, suffix: str) -> str:
    return f"""\
/* Rounded down; 0 for a divisor of 0. */
static inline int{bits}_t floor_quotient{suffix}(int{bits}_t x, int{bits}_t y) {{
  if (y == 0) return 0;
  if (y == -1) return (int{bits}_t)(0 - (uint{bits}_t)x);
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}}
"""


def _remainder(kind: str, bits: int, fraction: int, suffix: str) -> str:
    one, top = f"((uint{bits}_t)1 << {fraction})", bits - fraction - 1
    largest = (1 << top) - 1
    return f"""\
/* x less a whole multiple of y towards 0, exact: long division, a few binary digits at a time. */
static inline {kind} remainder_of{suffix}({kind} x, {kind} y) {{
  const uint{bits}_t mask = (uint{bits}_t)-1 >> 1;
  const uint{bits}_t size = (uint{bits}_t)bits_of{suffix}(x) & mask, by = (uint{bits}_t)bits_of{suffix}(y) & mask;
  if (by == 0 || size >> {fraction} == {largest} || by > (uint{bits}_t){largest} << {fraction}) {{
    return ({kind})(0.0f / 0.0f);
  }}
  if (size < by) return x;
  int32_t above = (int32_t)(size >> {fraction}), power = (int32_t)(by >> {fraction});
  uint64_t rest = size % {one}, divisor = by % {one};
  if (above == 0) above = 1;
  else rest += {one};
  if (power == 0) power = 1;
  else divisor += {one};
  rest %= divisor;
  for (above -= power; above > 0; above -= 8) rest = (rest << (above < 8 ? above : 8)) % divisor;
  while (rest < {one} && power > 1 && rest != 0) {{
    rest *= 2;
    --power;
  }}
  if (rest >= {one}) rest += (uint64_t)(power - 1) << {fraction};
  return copy_sign{suffix}(real_of{suffix}((int{bits}_t)rest), x);
}}
"""


def _angle16(part: str) -> str:
    return f"""\
VECTOR static inline __m512 angle_{part}16(__m512 x) {{
  float lanes[16];
  _mm512_storeu_ps(lanes, x);
  for (int lane = 0; lane < 16; ++lane) lanes[lane] = angle_{part}(lanes[lane]);
  return _mm512_loadu_ps(lanes);
}}
"""


EXACT_HELPERS = {
    "floor_quotient": _floor_quotient(32, ""),
    "floor_quotient_i64": _floor_quotient(64, "_i64"),
    "remainder_of": _remainder("float", 32, 23, ""),
    "remainder_of_f64": _remainder("double", 64, 52, "_f64"),
    "angle_turns": """\
/* |x| 2/pi modulo 4 in units of 2^-62, from 96 bits of 2/pi; for finite x above 1/2. */
static inline uint64_t angle_turns(float x) {
  static const uint32_t table[9] = {0, 0, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u,
                                    0xDB629599u, 0x3C439041u, 0xFE5163ABu};
  const uint32_t bits = (uint32_t)bits_of(x) & 0x7FFFFFFFu, place = (bits >> 23) - 88, shift = place % 32;
  const uint32_t *const word = table + place / 32;
  const uint64_t mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  uint64_t part[3];
  for (int i = 0; i < 3; ++i) {
    part[i] = ((((uint64_t)word[i] << 32) | word[i + 1]) >> (32 - shift)) & 0xFFFFFFFFu;
  }
  return mantissa * ((part[0] << 32) | part[1]) + ((mantissa * part[2]) >> 32);
}
""",
    "angle_quadrant": """\
static inline float angle_quadrant(float x) {
  const float size = absolute(x);
  if (!(size < 1.0f / 0.0f)) return 0.0f / 0.0f;
  if (size <= 0x1.921fb4p-1f) return 0.0f;
  const uint32_t quadrant = (uint32_t)((angle_turns(x) + ((uint64_t)1 << 61)) >> 62);
  return (float)(x < 0.0f && quadrant != 0 ? 4 - quadrant : quadrant);
}
""",
    "angle_rest": """\
static inline float angle_rest(float x) {
  const float size = absolute(x);
  if (!(size < 1.0f / 0.0f)) return 0.0f / 0.0f;
  if (size <= 0x1.921fb4p-1f) return x;
  const float rest = (float)((int64_t)(angle_turns(x) * 4) / 4) * 0x1.921fb6p-62f;
  return x < 0.0f ? -rest : rest;
}
""",
    "angle_parts_f64": """\
/* The right angles in |x| modulo 4, and what is left times pi/2, for finite x above 1/2: the mantissa, in two words,
   times 192 bits of 2/pi. */
static inline double angle_parts_f64(double x, double *rest) {
  static const uint32_t table[41] = {
    0, 0, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu,
    0xDEBBC561u, 0xB7246E3Au, 0x424DD2E0u, 0x06492EEAu, 0x09D1921Cu, 0xFE1DEB1Cu, 0xB129A73Eu,
    0xE88235F5u, 0x2EBB4484u, 0xE99C7026u, 0xB45F7E41u, 0x3991D639u, 0x835339F4u, 0x9C845F8Bu,
    0xBDF9283Bu, 0x1FF897FFu, 0xDE05980Fu, 0xEF2F118Bu, 0x5A0A6D1Fu, 0x6D367ECFu, 0x27CB09B7u,
    0x4F463F66u, 0x9E5FEA2Du, 0x7527BAC7u, 0xEBE5F17Bu, 0x3D0739F7u, 0x8A5292EAu, 0x6BFB5FB1u,
    0x1F8D5D08u, 0x56033046u, 0xFC7B6BABu, 0};
  const uint64_t bits = (uint64_t)bits_of_f64(x) & 0x7FFFFFFFFFFFFFFFu, place = (bits >> 52) - 1013, shift = place % 32;
  const uint64_t mantissa = (bits & 0xFFFFFFFFFFFFFu) | 0x10000000000000u;
  const uint64_t low = mantissa & 0xFFFFFFFFu, high = mantissa >> 32;
  const uint32_t *const word = table + place / 32;
  uint64_t found[6], carry = 0, above = 0;
  for (int i = 5; i >= 0; --i) {
    const uint64_t limb = ((((uint64_t)word[i] << 32) | word[i + 1]) >> (32 - shift)) & 0xFFFFFFFFu;
    const uint64_t product = limb * low, total = (product & 0xFFFFFFFFu) + above * high + carry;
    found[i] = total & 0xFFFFFFFFu;
    carry = (total >> 32) + (product >> 32);
    above = limb;
  }
  uint64_t first = found[0] << 32 | found[1], second = found[2] << 32 | found[3];
  const uint64_t quadrant = (first + ((uint64_t)1 << 61)) >> 62;
  first = first << 2 | second >> 62;
  second <<= 2;
  const int negative = first >> 63 != 0;
  if (negative) {
    first = ~first + (second == 0);
    second = ~second + 1;
  }
  const double one = (double)(first >> 32) * 0x1p-32, two = (double)(first & 0xFFFFFFFFu) * 0x1p-64;
  const double three = (double)(second >> 32) * 0x1p-96, four = (double)(second & 0xFFFFFFFFu) * 0x1p-128;
  const double near = one + two, less = (two - (near - one)) + (three + four);
  const double size = near * 0x1.921fb54442d18p+0
                      + (near * 0x1.1a62633145c07p-54 + less * 0x1.921fb54442d18p+0);
  *rest = negative ? -size : size;
  return (double)(quadrant % 4);
}
""",
    "angle_quadrant_f64": """\
static inline double angle_quadrant_f64(double x) {
  const double size = absolute_f64(x);
  if (!(size < 1.0 / 0.0)) return 0.0 / 0.0;
  if (size <= 0x1.921fb54442d18p-1) return 0.0;
  double rest;
  const double quadrant = angle_parts_f64(x, &rest);
  return x < 0.0 && quadrant != 0.0 ? 4.0 - quadrant : quadrant;
}
""",
    "angle_rest_f64": """\
static inline double angle_rest_f64(double x) {
  const double size = absolute_f64(x);
  if (!(size < 1.0 / 0.0)) return 0.0 / 0.0;
  if (size <= 0x1.921fb54442d18p-1) return x;
  double rest;
  angle_parts_f64(x, &rest);
  return x < 0.0 ? -rest : rest;
}
""",
    "angle_quadrant16": _angle16("quadrant"),
    "angle_rest16": _angle16("rest"),
}
"""Text by name, each after those it calls; they call those of `real_helpers`."""
