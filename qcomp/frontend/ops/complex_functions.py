# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quotients and exponentials of complex numbers, which must not overflow or turn into NaN on the way."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.frontend.builder import Builder, Complex, Result, dtype_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.complexes import complex_op, is_real, operand_of, self_of
from qcomp.frontend.ops.operands import choose, compare, unary


@complex_op("div.Tensor", "div.Scalar")
def divide(b: Builder, node: Node) -> Result:
    """self / other."""
    left, right = self_of(b, node), operand_of(b, node, "other")
    if is_real(b, node, "other"):
        return Complex(*(arithmetic.divide(b, part, right.real) for part in left))
    return quotient(b, left, right)


@complex_op("reciprocal.default")
def reciprocal(b: Builder, node: Node) -> Result:
    """1 / self."""
    value = self_of(b, node)
    one, zero = (b.scalar(number, dtype_of(value.real)) for number in (1.0, 0.0))
    return quotient(b, Complex(one, zero), value)


def quotient(b: Builder, left: Complex, right: Complex) -> Complex:
    """Return left / right by Smith's method, without squares, which overflow and underflow early.

        (a + ib) / (c + id) = (a + b r + i (b - a r)) / (c + d r)  with r = d / c     where |c| >= |d|
                              (b + a r + i (b r - a)) / (d + c r)  with r = c / d     elsewhere

    By 0 both parts are divided by 0.0, as torch does.
    """
    (a, c), (d, e) = left, right
    sizes = [b.add(nn.AbsOp(part)) for part in right]
    steep = compare(b, "lt", *sizes)
    large, small = choose(b, steep, e, d), choose(b, steep, d, e)
    none = compare(b, "eq", large, b.scalar(0.0, dtype_of(large)))
    ratio = choose(b, none, b.add(nn.AbsOp(small)), arithmetic.divide(b, small, large))
    divisor = arithmetic.add(b, large, arithmetic.multiply(b, small, ratio))
    divisor = choose(b, none, b.add(nn.AbsOp(large)), divisor)
    first, second = choose(b, steep, c, a), choose(b, steep, a, c)
    real = arithmetic.add(b, first, arithmetic.multiply(b, second, ratio))
    imag = arithmetic.subtract(b, second, arithmetic.multiply(b, first, ratio))
    imag = choose(b, steep, b.add(nn.NegOp(imag)), imag)
    return Complex(arithmetic.divide(b, real, divisor), arithmetic.divide(b, imag, divisor))


@complex_op("exp.default")
def exp(b: Builder, node: Node) -> Result:
    """Return e^(x/2) (cos y + i sin y) e^(x/2), which overflows where the result does.

    It stays real for y = 0, and an infinite x has no use for a y without an angle.
    """
    x, y = self_of(b, node)
    root, angle = b.add(nn.ExpOp(arithmetic.multiply(b, x, 0.5))), _angle(b, x, y)
    cosine, sine = (
        arithmetic.multiply(b, arithmetic.multiply(b, root, unary(b, name, angle)), root) for name in ("cos", "sin")
    )
    return Complex(cosine, choose(b, compare(b, "eq", y, b.scalar(0.0, dtype_of(y))), y, sine))


def _angle(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """`y`, but 0 where it is infinite or NaN beside an infinite `x`."""
    zero, infinite = b.scalar(0.0, dtype_of(y)), b.scalar(math.inf, dtype_of(x))
    known = compare(b, "eq", arithmetic.subtract(b, y, y), zero)
    return choose(b, compare(b, "eq", b.add(nn.AbsOp(x)), infinite), choose(b, known, y, zero), y)
