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
    "angle_quadrant16": _angle16("quadrant"),
    "angle_rest16": _angle16("rest"),
}
"""Text by name, each after those it calls; they call those of `real_helpers`."""
