# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logarithms, powers, circular and hyperbolic functions, as sequences of operations on reals over any `Algebra`."""

from __future__ import annotations

import math
from typing import TypeVar

from qcomp.interpreter.reference.algebra import Algebra
from qcomp.interpreter.reference.formulas import (
    coefficients_of,
    erf_small,
    erfc_tail,
    exp,
    exp_parts,
    log,
    log_ends,
    log_parts,
)

V = TypeVar("V")


def expm1(m: Algebra[V], x: V) -> V:
    """exp(x) - 1: 2^n (exp(r) - 1) + (2^n - 1)."""
    c = coefficients_of(m)
    near = m.clamp(x, *c.EXPM1_RANGE)
    power, n = exp_parts(m, near)
    unit = m.scale(m.number(1.0), n)
    small = m.add(m.multiply(power, unit), m.subtract(unit, m.number(1.0)))
    large = m.subtract(exp(m, x), m.number(1.0))
    return m.select("eq", x, 0.0, x, m.select("gt", x, c.EXPM1_RANGE[1], large, small))


def exp2(m: Algebra[V], x: V) -> V:
    """2 to the x."""
    c = coefficients_of(m)
    x = m.clamp(x, *c.EXP2_RANGE)
    n = m.round(x)
    return _two_to(m, m.subtract(x, n), n)


def _two_to(m: Algebra[V], f: V, n: V) -> V:
    c = coefficients_of(m)
    return m.scale(m.add(m.number(1.0), m.multiply(f, m.polynomial(c.EXP2, f))), n)


def log1p(m: Algebra[V], x: V) -> V:
    """log(1 + x): what rounding 1 + x to u lost is (x - (u - 1)) / u of the logarithm."""
    c = coefficients_of(m)
    u = m.add(m.number(1.0), x)
    lost = m.divide(m.subtract(x, m.subtract(u, m.number(1.0))), u)
    plain = log(m, u)
    result = m.select("lt", u, c.LOG1P_EXACT, m.add(plain, lost), plain)
    result = m.select("eq", u, 0.0, plain, result)
    return m.select("eq", x, 0.0, x, result)


def log2(m: Algebra[V], x: V) -> V:
    """Logarithm to base 2: exact at powers of two."""
    c = coefficients_of(m)
    f, n = log_parts(m, x)
    return log_ends(m, x, m.add(n, m.multiply(_log_near_one(m, f), m.number(c.LOG2_E))))


def log10(m: Algebra[V], x: V) -> V:
    """Logarithm to base 10."""
    c = coefficients_of(m)
    f, n = log_parts(m, x)
    rest = m.add(m.multiply(n, m.number(c.LOG10_2_LOW)), m.multiply(_log_near_one(m, f), m.number(c.LOG10_E)))
    return log_ends(m, x, m.add(m.multiply(n, m.number(c.LOG10_2_HIGH)), rest))


def _log_near_one(m: Algebra[V], f: V) -> V:
    c = coefficients_of(m)
    square = m.multiply(f, f)
    curve = m.multiply(m.multiply(square, f), m.polynomial(c.LOG, f))
    return m.add(f, m.subtract(curve, m.multiply(square, m.number(0.5))))


def _sine_and_cosine(m: Algebra[V], x: V) -> tuple[V, V, V]:
    """(sin, cos, quadrant) of the rest of the angle."""
    c = coefficients_of(m)
    r, quadrant = m.remaining_angle(x), m.quadrant(x)
    t = m.multiply(r, r)
    sine = m.copy_sign(m.add(r, m.multiply(r, m.multiply(t, m.polynomial(c.SIN, t)))), r)
    half = m.multiply(t, m.number(0.5))
    cosine = m.subtract(m.number(1.0), half)
    # What rounding 1 - t/2 lost is added again.
    lost = m.subtract(m.subtract(m.number(1.0), cosine), half)
    cosine = m.add(cosine, m.add(lost, m.multiply(m.multiply(t, t), m.polynomial(c.COS, t))))
    return sine, cosine, quadrant


def sin(m: Algebra[V], x: V) -> V:
    """Sine."""
    sine, cosine, quadrant = _sine_and_cosine(m, x)
    size = m.select("eq", quadrant, 1.0, cosine, m.select("eq", quadrant, 3.0, cosine, sine))
    return m.select("ge", quadrant, 2.0, m.negate(size), size)


def cos(m: Algebra[V], x: V) -> V:
    """Cosine."""
    sine, cosine, quadrant = _sine_and_cosine(m, x)
    result = m.select("eq", quadrant, 1.0, m.negate(sine), m.select("eq", quadrant, 3.0, sine, cosine))
    return m.select("eq", quadrant, 2.0, m.negate(cosine), result)


def tan(m: Algebra[V], x: V) -> V:
    """Tangent."""
    sine, cosine, quadrant = _sine_and_cosine(m, x)
    odd = m.negate(m.divide(cosine, sine))
    return m.select("eq", quadrant, 1.0, odd, m.select("eq", quadrant, 3.0, odd, m.divide(sine, cosine)))


def asin(m: Algebra[V], x: V) -> V:
    """Arc sine: beyond 1/2, pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    c = coefficients_of(m)
    size = m.absolute(x)
    large = m.subtract(m.number(c.HALF_PI), _doubled_asin(m, size, c.HALF_PI_LOW))
    return m.select("le", size, 0.5, _asin_small(m, x), m.copy_sign(large, x))


def acos(m: Algebra[V], x: V) -> V:
    """Arc cosine."""
    c = coefficients_of(m)
    doubled = _doubled_asin(m, m.absolute(x), 0.0)
    below = m.subtract(m.number(c.PI), m.subtract(doubled, m.number(c.PI_LOW)))
    outer = m.select("lt", x, 0.0, below, doubled)
    inner = m.subtract(m.number(c.HALF_PI), m.subtract(_asin_small(m, x), m.number(c.HALF_PI_LOW)))
    return m.select("le", m.absolute(x), 0.5, inner, outer)


def _asin_small(m: Algebra[V], x: V) -> V:
    c = coefficients_of(m)
    t = m.multiply(x, x)
    return m.add(x, m.multiply(x, m.multiply(t, m.polynomial(c.ASIN, t))))


def _doubled_asin(m: Algebra[V], size: V, less: float) -> V:
    """2 asin(sqrt((1 - size) / 2)) - less; NaN for sizes above 1."""
    c = coefficients_of(m)
    t = m.multiply(m.subtract(m.number(1.0), size), m.number(0.5))
    root = m.square_root(t)
    twice = m.add(root, root)
    curve = m.multiply(twice, m.multiply(t, m.polynomial(c.ASIN, t)))
    return m.add(twice, m.subtract(curve, m.number(less)) if less else curve)


def atan(m: Algebra[V], x: V) -> V:
    """Arc tangent: by 1 / x beyond tan(3 pi/8), by (x - 1) / (x + 1) beyond tan(pi/8)."""
    c = coefficients_of(m)
    one, size = m.number(1.0), m.absolute(x)
    middle = m.divide(m.subtract(size, one), m.add(size, one))
    outer = m.negate(m.divide(one, size))
    y = m.select("gt", size, c.TAN_PI_8, m.select("gt", size, c.TAN_3_PI_8, outer, middle), size)
    start = m.select("gt", size, c.TAN_3_PI_8, m.number(c.HALF_PI), m.number(c.HALF_PI / 2))
    low = m.select("gt", size, c.TAN_3_PI_8, m.number(c.HALF_PI_LOW), m.number(c.HALF_PI_LOW / 2))
    t = m.multiply(y, y)
    curve = m.multiply(y, m.multiply(t, m.polynomial(c.ATAN, t)))
    far = m.add(start, m.add(y, m.add(curve, low)))
    return m.copy_sign(m.select("gt", size, c.TAN_PI_8, far, m.add(y, curve)), x)


def atan2(m: Algebra[V], y: V, x: V) -> V:
    """The angle of the point (x, y)."""
    c = coefficients_of(m)
    size, other = m.absolute(y), m.absolute(x)
    steep_top, steep_low = m.select("gt", size, other, other, size), m.select("gt", size, other, size, other)
    quotient = m.divide(steep_top, steep_low)
    quotient = m.select("eq", steep_low, 0.0, steep_top, quotient)
    quotient = m.select("eq", steep_top, math.inf, m.number(1.0), quotient)
    angle = atan(m, quotient)
    turned = m.subtract(m.number(c.HALF_PI), m.subtract(angle, m.number(c.HALF_PI_LOW)))
    angle = m.select("gt", size, other, turned, angle)
    flipped = m.subtract(m.number(c.PI), m.subtract(angle, m.number(c.PI_LOW)))
    angle = m.select("lt", m.copy_sign(m.number(1.0), x), 0.0, flipped, angle)
    angle = m.select("ne", x, x, x, angle)
    return m.select("ne", y, y, y, m.copy_sign(angle, y))


def sinh(m: Algebra[V], x: V) -> V:
    """Hyperbolic sine: with e = exp(|x|) - 1, (e + e / (e + 1)) / 2."""
    c = coefficients_of(m)
    size = m.absolute(x)
    less = expm1(m, m.clamp(size, -1.0, c.TOP))
    small = m.multiply(m.add(less, m.divide(less, m.add(less, m.number(1.0)))), m.number(0.5))
    return m.copy_sign(m.select("gt", size, c.TOP, _half_exp(m, size), small), x)


def cosh(m: Algebra[V], x: V) -> V:
    """Hyperbolic cosine."""
    c = coefficients_of(m)
    size = m.absolute(x)
    power = exp(m, m.clamp(size, -1.0, c.TOP))
    small = m.multiply(m.add(power, m.divide(m.number(1.0), power)), m.number(0.5))
    return m.select("gt", size, c.TOP, _half_exp(m, size), small)


def _half_exp(m: Algebra[V], size: V) -> V:
    """exp(size) / 2 without overflow of exp(size): in float32 128 ln 2 is taken off and 2^127 multiplied."""
    c = coefficients_of(m)
    less = m.subtract(m.subtract(size, m.number(c.LN2_TOP_HIGH)), m.number(c.LN2_TOP_LOW))
    return m.multiply(exp(m, less), m.number(c.HALF_TOP))


def asinh(m: Algebra[V], x: V) -> V:
    """Inverse hyperbolic sine: log1p(|x| + x^2 / (1 + sqrt(1 + x^2))), for large x log |x| + ln 2."""
    c = coefficients_of(m)
    one, size = m.number(1.0), m.absolute(x)
    capped = m.clamp(size, -1.0, c.LARGE)
    square = m.multiply(capped, capped)
    root = m.square_root(m.add(one, square))
    small = log1p(m, m.add(capped, m.divide(square, m.add(one, root))))
    large = m.add(log(m, size), m.number(c.LN2))
    return m.copy_sign(m.select("gt", size, c.LARGE, large, small), x)


def acosh(m: Algebra[V], x: V) -> V:
    """Inverse hyperbolic cosine: with t = x - 1, log1p(t + sqrt(2 t + t^2)), for large x log x + ln 2."""
    c = coefficients_of(m)
    t = m.clamp(m.subtract(x, m.number(1.0)), -math.inf, c.LARGE)
    root = m.square_root(m.add(m.add(t, t), m.multiply(t, t)))
    large = m.add(log(m, x), m.number(c.LN2))
    result = m.select("gt", x, c.LARGE, large, log1p(m, m.add(t, root)))
    return m.select("lt", x, 1.0, m.number(math.nan), result)


def atanh(m: Algebra[V], x: V) -> V:
    """Inverse hyperbolic tangent: log1p(2 |x| / (1 - |x|)) / 2."""
    size = m.absolute(x)
    quotient = m.divide(m.add(size, size), m.subtract(m.number(1.0), size))
    return m.copy_sign(m.multiply(log1p(m, quotient), m.number(0.5)), x)


def erfc(m: Algebra[V], x: V) -> V:
    """1 - erf(x)."""
    size = m.absolute(x)
    tail = erfc_tail(m, size)
    outer = m.select("lt", x, 0.0, m.subtract(m.number(2.0), tail), tail)
    return m.select("lt", size, 0.5, m.subtract(m.number(1.0), erf_small(m, x)), outer)
