# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, log, tanh, erf and what is made of them, as sequences of float32 or float64 operations over any `Algebra`.

The polynomials and their errors: `qcomp.interpreter.reference.transcendental`.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

from qcomp.interpreter.reference import coefficients, coefficients64
from qcomp.interpreter.reference.algebra import Algebra

V = TypeVar("V")


def coefficients_of(m: Algebra[Any]) -> Any:
    """The module of the coefficients of the type that `m` computes in."""
    return coefficients64 if m.double else coefficients


def exp(m: Algebra[V], x: V) -> V:
    """e to the x: x = n ln 2 + r, then 2^n * (1 + r + r^2 p(r))."""
    c = coefficients_of(m)
    power, n = exp_parts(m, m.clamp(x, *c.EXP_RANGE))
    return m.scale(m.add(power, m.number(1.0)), n)


def exp_parts(m: Algebra[V], x: V) -> tuple[V, V]:
    """(exp(r) - 1, n) for x = n ln 2 + r."""
    c = coefficients_of(m)
    n = m.round(m.multiply(x, m.number(c.LOG2_E)))
    high = m.subtract(x, m.multiply(n, m.number(c.LN2_HIGH)))
    low = m.multiply(n, m.number(c.LN2_LOW))
    r = m.subtract(high, low)
    curve = m.subtract(m.multiply(m.polynomial(c.EXP, r), m.multiply(r, r)), low)
    return m.add(high, curve), n


def log(m: Algebra[V], x: V) -> V:
    """Natural logarithm; -inf at zeros, NaN below."""
    c = coefficients_of(m)
    f, n = log_parts(m, x)
    square = m.multiply(f, f)
    curve = m.multiply(m.multiply(square, f), m.polynomial(c.LOG, f))
    rest = m.add(curve, m.multiply(n, m.number(c.LN2_LOW)))
    rest = m.subtract(rest, m.multiply(square, m.number(0.5)))
    return log_ends(m, x, m.add(m.add(f, rest), m.multiply(n, m.number(c.LN2_HIGH))))


def log_parts(m: Algebra[V], x: V) -> tuple[V, V]:
    """(f, n) with x = (1 + f) 2^n and 1 + f between sqrt(1/2) and sqrt(2)."""
    c = coefficients_of(m)
    normal = m.select("lt", x, c.SMALLEST_NORMAL, m.multiply(x, m.number(2.0**c.FRACTION)), x)
    shift = m.select("lt", x, c.SMALLEST_NORMAL, m.number(float(c.FRACTION)), m.number(0.0))
    bits = m.bits(normal)
    # Wrapping: what negative numbers and NaN give is replaced in the end.
    exponent = m.shift_right(m.subtract_whole(bits, m.whole(c.SQRT_HALF_BITS)), c.FRACTION)
    power = m.multiply_whole(exponent, m.whole(2**c.FRACTION))
    f = m.subtract(m.from_bits(m.subtract_whole(bits, power)), m.number(1.0))
    return f, m.subtract(m.to_real(exponent), shift)


def log_ends(m: Algebra[V], x: V, result: V) -> V:
    """A logarithm of `x` with its infinities, and NaN below 0."""
    result = m.select("eq", x, math.inf, x, result)
    result = m.select("eq", x, 0.0, m.number(-math.inf), result)
    return m.select("ge", x, 0.0, result, m.number(math.nan))


def tanh(m: Algebra[V], x: V) -> V:
    """Hyperbolic tangent: of |x| it is |x| + |x| (t p(t)) with t = x^2 if small, else 1 - 2 / (exp(2 |x|) + 1)."""
    c = coefficients_of(m)
    size, t = m.absolute(x), m.multiply(x, x)
    small = m.add(size, m.multiply(size, m.multiply(t, m.polynomial(c.TANH, t))))
    power = m.add(exp(m, m.add(size, size)), m.number(1.0))
    large = m.subtract(m.number(1.0), m.divide(m.number(2.0), power))
    return m.copy_sign(m.select("lt", size, c.TANH_SPLIT, small, large), x)


def erf(m: Algebra[V], x: V) -> V:
    """The error function: x + x p(x^2) for small x, else 1 - exp(q(|x|)) with the sign of x."""
    c = coefficients_of(m)
    size = m.absolute(x)
    large = m.copy_sign(m.subtract(m.number(1.0), _erf_tail(m, size)), x)
    return m.select("lt", size, c.ERF_SPLIT, erf_small(m, x), large)


def erf_small(m: Algebra[V], x: V) -> V:
    """erf below ERF_SPLIT."""
    c = coefficients_of(m)
    return m.add(x, m.multiply(x, m.polynomial(c.ERF, m.multiply(x, x))))


def _erf_tail(m: Algebra[V], size: V) -> V:
    """1 - erf(size) for size of ERF_SPLIT or more."""
    c = coefficients_of(m)
    if m.double:
        return erfc_tail(m, size)
    capped = m.select("gt", size, c.ERF_END, m.number(c.ERF_END), size)
    return exp(m, m.polynomial(c.ERF_TAIL, capped))


def erfc_tail(m: Algebra[V], size: V) -> V:
    """1 - erf(size) for size of 1/2 or more: exp(-x^2) p((x - 2) / (x + 2)) / (x + 2)."""
    y = m.clamp(size, 0.0, coefficients_of(m).ERFC_END)
    return m.multiply(_bell(m, y, -1.0), _erfc_curve(m, y))


def _bell(m: Algebra[V], x: V, factor: float) -> V:
    """exp(factor x^2), the square in two parts."""
    high = cut(m, x)
    rest = m.multiply(m.subtract(x, high), m.add(x, high))
    first, second = (m.multiply(m.number(factor), part) for part in (m.multiply(high, high), rest))
    return m.multiply(exp(m, first), exp(m, second))


def _erfc_curve(m: Algebra[V], y: V) -> V:
    """erfc(y) exp(y^2)."""
    c = coefficients_of(m)
    over = m.add(y, m.number(2.0))
    return m.divide(m.polynomial(c.ERFC, m.divide(m.subtract(y, m.number(2.0)), over)), over)


def cut(m: Algebra[V], x: V) -> V:
    """The first bits of x: products of two such are exact."""
    return m.from_bits(m.bit_and(m.bits(x), m.whole(-(2 ** coefficients_of(m).CUT))))


def sigmoid(m: Algebra[V], x: V) -> V:
    """1 / (1 + exp(-x)): with e = exp(-|x|) and q = e / (1 + e) it is e - e q for negative x, else 1 - q."""
    power = exp(m, m.negate(m.absolute(x)))
    quotient = m.divide(power, m.add(m.number(1.0), power))
    whole = m.select("lt", x, 0.0, power, m.number(1.0))
    return m.subtract(whole, m.multiply(whole, quotient))


def silu(m: Algebra[V], x: V) -> V:
    """x * sigmoid(x)."""
    return m.multiply(x, sigmoid(m, x))


def gelu(m: Algebra[V], x: V) -> V:
    """x times the normal distribution function. With the tail itself, no difference, nothing cancels below 0."""
    c = coefficients_of(m)
    size = m.multiply(m.absolute(x), m.number(c.SQRT_HALF))
    beyond = _normal_tail(m, x, size) if m.double else _erf_tail(m, size)
    tail = m.select("gt", size, c.ERF_END, m.number(0.0), beyond)
    tail = m.multiply(m.number(0.5), tail)
    outer = m.select("lt", x, 0.0, tail, m.subtract(m.number(1.0), tail))
    signed = m.copy_sign(erf_small(m, size), x)
    inner = m.add(m.number(0.5), m.multiply(m.number(0.5), signed))
    return m.multiply(x, m.select("lt", size, c.GELU_SPLIT, inner, outer))


def _normal_tail(m: Algebra[V], x: V, size: V) -> V:
    """1 - erf(size) for size = |x| sqrt(1/2): the square is that of x, which is not rounded."""
    end = coefficients_of(m).ERFC_END
    return m.multiply(_bell(m, m.clamp(x, -2.0 * end, 2.0 * end), -0.5), _erfc_curve(m, m.clamp(size, 0.0, end)))


def gelu_tanh(m: Algebra[V], x: V) -> V:
    """x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))."""
    c = coefficients_of(m)
    cubic = m.multiply(m.number(c.GELU_CUBIC), m.multiply(x, x))
    return m.multiply(x, sigmoid(m, m.multiply(x, m.add(m.number(c.GELU_LINEAR), cubic))))
