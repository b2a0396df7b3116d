# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, log, tanh, erf and what is made of them as loop ops: step by step what
`qcomp.interpreter.reference.transcendental` computes."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from qcomp.dialects import loop
from qcomp.interpreter.reference import transcendental as reference
from qcomp.transforms.lower_to_loop.reals import Reals


def exp(m: Reals, x: SSAValue) -> SSAValue:
    """e to the x."""
    x = m.clamp(x, *reference.EXP_RANGE)
    n = m.round(m.multiply(x, m.number(reference.LOG2_E)))
    high = m.subtract(x, m.multiply(n, m.number(reference.LN2_HIGH)))
    low = m.multiply(n, m.number(reference.LN2_LOW))
    r = m.subtract(high, low)
    curve = m.subtract(m.multiply(m.polynomial(reference.EXP, r), m.multiply(r, r)), low)
    return m.scale(m.add(m.add(high, curve), m.number(1.0)), n)


def log(m: Reals, x: SSAValue) -> SSAValue:
    """Natural logarithm."""
    normal = m.select("lt", x, reference.SMALLEST_NORMAL, m.multiply(x, m.number(2.0**23)), x)
    shift = m.select("lt", x, reference.SMALLEST_NORMAL, m.number(23.0), m.number(0.0))
    bits = m.bits(normal)
    middle = int(np.float32(reference.SQRT_HALF).view(np.int32))
    # Wrapping: what negative numbers and NaN give is replaced below.
    exponent = m.b.add(arith.ShRSIOp(m.b.add(arith.SubiOp(bits, m.whole(middle))), m.whole(23)))
    power = m.b.add(arith.MuliOp(exponent, m.whole(2**23)))
    f = m.subtract(m.from_bits(m.b.add(arith.SubiOp(bits, power))), m.number(1.0))
    n = m.subtract(m.b.add(loop.ToFloatOp(exponent)), shift)
    square = m.multiply(f, f)
    curve = m.multiply(m.multiply(square, f), m.polynomial(reference.LOG, f))
    rest = m.add(curve, m.multiply(n, m.number(reference.LN2_LOW)))
    rest = m.subtract(rest, m.multiply(square, m.number(0.5)))
    result = m.add(m.add(f, rest), m.multiply(n, m.number(reference.LN2_HIGH)))
    result = m.select("eq", x, math.inf, x, result)
    result = m.select("eq", x, 0.0, m.number(-math.inf), result)
    return m.select("ge", x, 0.0, result, m.number(math.nan))


def tanh(m: Reals, x: SSAValue) -> SSAValue:
    """Hyperbolic tangent."""
    size, t = m.absolute(x), m.multiply(x, x)
    small = m.add(x, m.multiply(x, m.multiply(t, m.polynomial(reference.TANH, t))))
    power = m.add(exp(m, m.add(size, size)), m.number(1.0))
    large = m.subtract(m.number(1.0), m.divide(m.number(2.0), power))
    return m.select("lt", size, reference.TANH_SPLIT, small, m.copy_sign(large, x))


def erf(m: Reals, x: SSAValue) -> SSAValue:
    """The error function."""
    size = m.absolute(x)
    large = m.copy_sign(m.subtract(m.number(1.0), _erf_tail(m, size)), x)
    return m.select("lt", size, reference.ERF_SPLIT, _erf_small(m, x), large)


def _erf_small(m: Reals, x: SSAValue) -> SSAValue:
    return m.add(x, m.multiply(x, m.polynomial(reference.ERF, m.multiply(x, x))))


def _erf_tail(m: Reals, size: SSAValue) -> SSAValue:
    capped = m.select("gt", size, reference.ERF_END, m.number(reference.ERF_END), size)
    return exp(m, m.polynomial(reference.ERF_TAIL, capped))


def sigmoid(m: Reals, x: SSAValue) -> SSAValue:
    """1 / (1 + exp(-x))."""
    power = exp(m, m.negate(m.absolute(x)))
    quotient = m.divide(power, m.add(m.number(1.0), power))
    whole = m.select("lt", x, 0.0, power, m.number(1.0))
    return m.subtract(whole, m.multiply(whole, quotient))


def silu(m: Reals, x: SSAValue) -> SSAValue:
    """x * sigmoid(x)."""
    return m.multiply(x, sigmoid(m, x))


def gelu(m: Reals, x: SSAValue) -> SSAValue:
    """x times the normal distribution function."""
    size = m.multiply(m.absolute(x), m.number(reference.SQRT_HALF))
    tail = m.select("gt", size, reference.ERF_END, m.number(0.0), _erf_tail(m, size))
    tail = m.multiply(m.number(0.5), tail)
    outer = m.select("lt", x, 0.0, tail, m.subtract(m.number(1.0), tail))
    signed = m.copy_sign(_erf_small(m, size), x)
    inner = m.add(m.number(0.5), m.multiply(m.number(0.5), signed))
    return m.multiply(x, m.select("lt", size, reference.ERF_SPLIT, inner, outer))


def gelu_tanh(m: Reals, x: SSAValue) -> SSAValue:
    """x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))."""
    cubic = m.multiply(m.number(reference.GELU_CUBIC), m.multiply(x, x))
    return m.multiply(x, sigmoid(m, m.multiply(x, m.add(m.number(reference.GELU_LINEAR), cubic))))
