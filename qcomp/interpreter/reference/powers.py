# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""x to the y over any `Algebra`: the logarithm to base 2 in two floats, the first bits and the rest, so that a product
with y keeps its fraction; for integers by squaring."""

from __future__ import annotations

import math
from typing import TypeVar

from qcomp.interpreter.reference.algebra import Algebra
from qcomp.interpreter.reference.formulas import coefficients_of, cut, log_parts

V = TypeVar("V")
_LARGEST_EXPONENT_BITS = 63


def power(m: Algebra[V], x: V, y: V) -> V:
    """C's pow."""
    size, one = m.absolute(x), m.number(1.0)
    result = _power_of_size(m, size, y)
    whole = m.copy_sign(truncated(m, m.absolute(y)), y)
    half = m.multiply(y, m.number(0.5))
    odd = m.select("ne", truncated(m, m.absolute(half)), m.absolute(half), one, m.number(0.0))
    odd = m.select("eq", whole, y, odd, m.number(0.0))
    odd = m.select("eq", m.absolute(y), math.inf, m.number(0.0), odd)
    result = m.select("eq", odd, 1.0, m.copy_sign(result, x), result)
    fails = m.select("ne", whole, y, m.number(math.nan), result)
    fails = m.select("eq", x, -math.inf, result, fails)
    result = m.select("lt", x, 0.0, fails, result)
    result = m.select("ne", x, x, x, m.select("ne", y, y, y, result))
    return m.select("eq", x, 1.0, one, m.select("eq", y, 0.0, one, result))


def truncated(m: Algebra[V], size: V) -> V:
    """The whole part of what is not negative."""
    near = m.round(size)
    return m.select("gt", near, size, m.subtract(near, m.number(1.0)), near)


def _power_of_size(m: Algebra[V], size: V, y: V) -> V:
    c = coefficients_of(m)
    high, low = _log2(m, size)
    rough = m.multiply(y, m.add(high, low))
    near = m.clamp(y, -c.LARGEST, c.LARGEST)
    y_high = cut(m, near)
    top = m.multiply(y_high, high)
    rest = m.add(m.multiply(m.subtract(near, y_high), high), m.multiply(near, low))
    n = m.round(m.clamp(m.add(top, rest), -c.POWER_RANGE, c.POWER_RANGE))
    f = m.clamp(m.add(m.subtract(top, n), rest), -1.0, 1.0)
    fine = m.scale(m.add(m.number(1.0), m.multiply(f, m.polynomial(c.EXP2, f))), n)
    fine = m.select("lt", rough, -c.POWER_END, m.number(0.0), fine)
    fine = m.select("gt", rough, c.POWER_END, m.number(math.inf), fine)
    return m.select("eq", size, 1.0, m.number(1.0), m.select("ne", rough, rough, rough, fine))


def _log2(m: Algebra[V], size: V) -> tuple[V, V]:
    """Logarithm to base 2 as 12 bits and the rest: n + 2 / ln 2 * atanh(s) with s = f / (2 + f)."""
    c = coefficients_of(m)
    f, n = log_parts(m, size)
    two = m.number(2.0)
    over = m.add(two, f)
    s = m.divide(f, over)
    s_high, over_high = cut(m, s), cut(m, over)
    over_low = m.subtract(f, m.subtract(over_high, two))
    left = m.subtract(m.subtract(f, m.multiply(s_high, over_high)), m.multiply(s_high, over_low))
    s_low = m.divide(left, over)
    t = m.multiply(s, s)
    rest = m.add(s_low, m.multiply(s, m.multiply(t, m.polynomial(c.ATANH, t))))
    high = cut(m, m.add(s_high, rest))
    low = m.subtract(rest, m.subtract(high, s_high))
    top = m.multiply(high, m.number(c.TWO_LOG2_E_HIGH))
    low = m.add(
        m.multiply(high, m.number(c.TWO_LOG2_E_LOW)),
        m.multiply(low, m.number(c.TWO_LOG2_E)),
    )
    whole = cut(m, m.add(m.add(top, low), n))
    low = m.subtract(low, m.subtract(m.subtract(whole, n), top))
    whole = m.select("eq", size, 0.0, m.number(-math.inf), m.select("eq", size, math.inf, size, whole))
    low = m.select("eq", size, 0.0, m.number(0.0), m.select("eq", size, math.inf, m.number(0.0), low))
    return whole, low


def integer_power(m: Algebra[V], x: V, y: V) -> V:
    """x to the y by squaring, wrapping; for negative y what rounding towards 0 leaves: 1, -1 or 0."""
    one, zero, rest = m.number(1), m.number(0), y
    result, square = one, x
    for _ in range(_LARGEST_EXPONENT_BITS):
        odd = m.bit_and(rest, one)
        result = m.select("ne", odd, 0, m.multiply(result, square), result)
        square = m.multiply(square, square)
        rest = m.shift_right_by(rest, one)
    parity = m.select("ne", m.bit_and(y, one), 0, x, one)
    small = m.select("eq", x, 1, one, m.select("eq", x, -1, parity, zero))
    return m.select("lt", y, 0, small, result)
