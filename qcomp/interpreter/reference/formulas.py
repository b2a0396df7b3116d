# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, log, tanh, erf and what is made of them, as sequences of float32 operations over any `Algebra`.

The polynomials and their errors: `qcomp.interpreter.reference.transcendental`.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from qcomp.interpreter.reference import coefficients as c
from qcomp.interpreter.reference.algebra import Algebra

V = TypeVar("V")


def exp(m: Algebra[V], x: V) -> V:
    """e to the x: x = n ln 2 + r, then 2^n * (1 + r + r^2 p(r))."""
    power, n = exp_parts(m, m.clamp(x, *c.EXP_RANGE))
    return m.scale(m.add(power, m.number(1.0)), n)


def exp_parts(m: Algebra[V], x: V) -> tuple[V, V]:
    """(exp(r) - 1, n) for x = n ln 2 + r."""
    n = m.round(m.multiply(x, m.number(c.LOG2_E)))
    high = m.subtract(x, m.multiply(n, m.number(c.LN2_HIGH)))
    low = m.multiply(n, m.number(c.LN2_LOW))
    r = m.subtract(high, low)
    curve = m.subtract(m.multiply(m.polynomial(c.EXP, r), m.multiply(r, r)), low)
    return m.add(high, curve), n


def log(m: Algebra[V], x: V) -> V:
    """Natural logarithm; -inf at zeros, NaN below."""
    f, n = log_parts(m, x)
    square = m.multiply(f, f)
    curve = m.multiply(m.multiply(square, f), m.polynomial(c.LOG, f))
    rest = m.add(curve, m.multiply(n, m.number(c.LN2_LOW)))
    rest = m.subtract(rest, m.multiply(square, m.number(0.5)))
    return log_ends(m, x, m.add(m.add(f, rest), m.multiply(n, m.number(c.LN2_HIGH))))


def log_parts(m: Algebra[V], x: V) -> tuple[V, V]:
    """(f, n) with x = (1 + f) 2^n and 1 + f between sqrt(1/2) and sqrt(2)."""
    normal = m.select("lt", x, c.SMALLEST_NORMAL, m.multiply(x, m.number(2.0**23)), x)
    shift = m.select("lt", x, c.SMALLEST_NORMAL, m.number(23.0), m.number(0.0))
    bits = m.bits(normal)
    middle = int(np.float32(c.SQRT_HALF).view(np.int32))
    # Wrapping: what negative numbers and NaN give is replaced in the end.
    exponent = m.shift_right(m.subtract_whole(bits, m.whole(middle)), 23)
    power = m.multiply_whole(exponent, m.whole(2**23))
    f = m.subtract(m.from_bits(m.subtract_whole(bits, power)), m.number(1.0))
    return f, m.subtract(m.to_real(exponent), shift)


def log_ends(m: Algebra[V], x: V, result: V) -> V:
    """A logarithm of `x` with its infinities, and NaN below 0."""
    result = m.select("eq", x, math.inf, x, result)
    result = m.select("eq", x, 0.0, m.number(-math.inf), result)
    return m.select("ge", x, 0.0, result, m.number(math.nan))


def tanh(m: Algebra[V], x: V) -> V:
    """Hyperbolic tangent: x + x (t p(t)) with t = x^2 for small x, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x."""
    size, t = m.absolute(x), m.multiply(x, x)
    small = m.add(x, m.multiply(x, m.multiply(t, m.polynomial(c.TANH, t))))
    power = m.add(exp(m, m.add(size, size)), m.number(1.0))
    large = m.subtract(m.number(1.0), m.divide(m.number(2.0), power))
    return m.select("lt", size, c.TANH_SPLIT, small, m.copy_sign(large, x))


def erf(m: Algebra[V], x: V) -> V:
    """The error function: x + x p(x^2) for small x, else 1 - exp(q(|x|)) with the sign of x."""
    size = m.absolute(x)
    large = m.copy_sign(m.subtract(m.number(1.0), _erf_tail(m, size)), x)
    return m.select("lt", size, c.ERF_SPLIT, erf_small(m, x), large)


def erf_small(m: Algebra[V], x: V) -> V:
    """erf below ERF_SPLIT."""
    return m.add(x, m.multiply(x, m.polynomial(c.ERF, m.multiply(x, x))))


def _erf_tail(m: Algebra[V], size: V) -> V:
    """1 - erf(size) for size of ERF_SPLIT or more."""
    capped = m.select("gt", size, c.ERF_END, m.number(c.ERF_END), size)
    return exp(m, m.polynomial(c.ERF_TAIL, capped))


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
    size = m.multiply(m.absolute(x), m.number(c.SQRT_HALF))
    tail = m.select("gt", size, c.ERF_END, m.number(0.0), _erf_tail(m, size))
    tail = m.multiply(m.number(0.5), tail)
    outer = m.select("lt", x, 0.0, tail, m.subtract(m.number(1.0), tail))
    signed = m.copy_sign(erf_small(m, size), x)
    inner = m.add(m.number(0.5), m.multiply(m.number(0.5), signed))
    return m.multiply(x, m.select("lt", size, c.ERF_SPLIT, inner, outer))


def gelu_tanh(m: Algebra[V], x: V) -> V:
    """x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))."""
    cubic = m.multiply(m.number(c.GELU_CUBIC), m.multiply(x, x))
    return m.multiply(x, sigmoid(m, m.multiply(x, m.add(m.number(c.GELU_LINEAR), cubic))))
