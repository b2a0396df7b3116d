# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helper functions that emitted C may call; only those that a program uses are printed."""

from __future__ import annotations

from collections.abc import Iterable

from qcomp.backend.emit_c.exact_helpers import EXACT_HELPERS
from qcomp.backend.emit_c.half_helpers import HALF_HELPERS
from qcomp.backend.emit_c.real_helpers import REAL_HELPERS

HEAD = """\
/* Float results must not depend on flags: no fused multiply-add unless written as one. gcc keeps a register tile in
   registers only when it does not coalesce the variables of nested loops. */
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off", "no-tree-coalesce-vars")
#endif
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 64")
#else
#define UNROLL
#endif
"""


def _lookup(size: int, kind: str, store: str, load: str) -> str:
    return f"""\
VECTOR static inline {kind} lookup{size}(const int8_t *table, {kind} x) {{
  uint8_t lanes[{size}];
  {store}((void *)lanes, x);
  for (int lane = 0; lane < {size}; ++lane) lanes[lane] = (uint8_t)table[lanes[lane]];
  return {load}((const void *)lanes);
}}
"""


_HELPERS: dict[str, str] = {
    "floor_divide": """\
static inline ptrdiff_t floor_divide(ptrdiff_t x, ptrdiff_t by) {
  return x / by - (x % by != 0 && (x < 0) != (by < 0));
}
""",
    "first_lanes": """\
static inline uint64_t first_lanes(ptrdiff_t count) {
  return ((uint64_t)1 << count) - 1;
}
""",
    "clamp_above": """\
static inline float clamp_above(float x, float high) {
  return x > high ? high : x;
}
""",
    "clamp_above_f64": """\
static inline double clamp_above_f64(double x, double high) {
  return x > high ? high : x;
}
""",
    "round_bounded": """\
/* Half to even, for |x| <= 2^22: adding 1.5 * 2^23 leaves no bits for a fraction. */
static inline int32_t round_bounded(float x) {
  const float shifted = x + 12582912.0f;
  return (int32_t)(shifted - 12582912.0f);
}
""",
    "round_saturated": """\
static inline int32_t round_saturated(float x, int32_t nan) {
  const float low = x < -4194304.0f ? -4194304.0f : x;
  const float both = low > 4194304.0f ? 4194304.0f : low;
  return x != x ? nan : round_bounded(both);
}
""",
    "broadcast4": """\
VECTOR static inline __m512i broadcast4(const int8_t *p) {
  int32_t word;
  memcpy(&word, p, 4);
  return _mm512_set1_epi32(word);
}
""",
    "round_saturated16": """\
VECTOR static inline __m512i round_saturated16(__m512 x, int32_t nan) {
  const __m512 low = _mm512_max_ps(_mm512_set1_ps(-4194304.0f), x);
  const __m512 both = _mm512_min_ps(_mm512_set1_ps(4194304.0f), low);
  return _mm512_mask_cvtps_epi32(_mm512_set1_epi32(nan), _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), both);
}
""",
    "gather_f32": """\
VECTOR static inline __m512 gather_f32(const float *p, ptrdiff_t stride, int count) {
  float lanes[16] = {0};
  for (int lane = 0; lane < count; ++lane) lanes[lane] = p[lane * stride];
  return _mm512_loadu_ps(lanes);
}
""",
    "gather_i8": """\
VECTOR static inline __m128i gather_i8(const int8_t *p, ptrdiff_t stride, int count) {
  int8_t lanes[16] = {0};
  for (int lane = 0; lane < count; ++lane) lanes[lane] = p[lane * stride];
  return _mm_loadu_si128((const void *)lanes);
}
""",
    "gather_i32": """\
VECTOR static inline __m512i gather_i32(const int32_t *p, ptrdiff_t stride, int count) {
  int32_t lanes[16] = {0};
  for (int lane = 0; lane < count; ++lane) lanes[lane] = p[lane * stride];
  return _mm512_loadu_si512(lanes);
}
""",
    "scatter_f32": """\
VECTOR static inline void scatter_f32(float *p, ptrdiff_t stride, int count, __m512 x) {
  float lanes[16];
  _mm512_storeu_ps(lanes, x);
  for (int lane = 0; lane < count; ++lane) p[lane * stride] = lanes[lane];
}
""",
    "scatter_i8": """\
VECTOR static inline void scatter_i8(int8_t *p, ptrdiff_t stride, int count, __m128i x) {
  int8_t lanes[16];
  _mm_storeu_si128((void *)lanes, x);
  for (int lane = 0; lane < count; ++lane) p[lane * stride] = lanes[lane];
}
""",
    "scatter_i32": """\
VECTOR static inline void scatter_i32(int32_t *p, ptrdiff_t stride, int count, __m512i x) {
  int32_t lanes[16];
  _mm512_storeu_si512(lanes, x);
  for (int lane = 0; lane < count; ++lane) p[lane * stride] = lanes[lane];
}
""",
    **REAL_HELPERS,
    **EXACT_HELPERS,
    **HALF_HELPERS,
    "lookup16": _lookup(16, "__m128i", "_mm_storeu_si128", "_mm_loadu_si128"),
    "lookup32": _lookup(32, "__m256i", "_mm256_storeu_si256", "_mm256_loadu_si256"),
    "lookup64": _lookup(64, "__m512i", "_mm512_storeu_si512", "_mm512_loadu_si512"),
}


def helpers(lines: Iterable[str]) -> str:
    """The helper functions that `lines` call, each before its first use."""
    wanted: set[str] = set()
    new = _called("\n".join(lines))
    while new:
        wanted |= new
        new = _called("\n".join(_HELPERS[name] for name in new)) - wanted
    return "\n".join(text for name, text in _HELPERS.items() if name in wanted)


def _called(text: str) -> set[str]:
    return {name for name in _HELPERS if f"{name}(" in text}


def needs_memcpy(text: str) -> bool:
    """Whether `text` calls memcpy or memset."""
    return "memcpy(" in text or "memset(" in text
