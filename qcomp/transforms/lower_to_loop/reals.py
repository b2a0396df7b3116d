# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on f32 tiles of one shape, for formulas: constants are splats, every call is one op."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from qcomp.dialects import loop
from qcomp.transforms.lower_to_loop.builder import Builder


class Reals:
    """Formulas over tiles of `shape` (() for scalars), appended to `b`."""

    def __init__(self, b: Builder, shape: Sequence[int]):
        self.b = b
        self.shape = tuple(shape)

    def number(self, value: float) -> SSAValue:
        """A constant."""
        return self.b.real(value, self.shape)

    def whole(self, value: int) -> SSAValue:
        """An i32 constant."""
        return self.b.integer(value, self.shape)

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.AddfOp(x, y))

    def subtract(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.SubfOp(x, y))

    def multiply(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.MulfOp(x, y))

    def divide(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.DivfOp(x, y))

    def negate(self, x: SSAValue) -> SSAValue:
        return self.b.add(arith.NegfOp(x))

    def absolute(self, x: SSAValue) -> SSAValue:
        return self.b.add(math.AbsFOp(x))

    def square_root(self, x: SSAValue) -> SSAValue:
        return self.b.add(math.SqrtOp(x))

    def round(self, x: SSAValue) -> SSAValue:
        """Half to even, still a float."""
        return self.b.add(math.RoundEvenOp(x))

    def copy_sign(self, size: SSAValue, sign: SSAValue) -> SSAValue:
        return self.b.add(math.CopySignOp(size, sign))

    def scale(self, x: SSAValue, exponent: SSAValue) -> SSAValue:
        """x * 2^exponent; see `loop.scale`."""
        return self.b.add(loop.ScaleOp(x, exponent))

    def clamp(self, x: SSAValue, low: float, high: float) -> SSAValue:
        return self.b.add(loop.ClampOp(x, low, high))

    def select(self, predicate: str, x: SSAValue, bound: SSAValue | float, yes: SSAValue, no: SSAValue) -> SSAValue:
        """``x predicate bound ? yes : no``."""
        other = self.number(bound) if isinstance(bound, float | int) else bound
        return self.b.add(loop.SelectOp(self.b.add(loop.CompareOp(predicate, x, other)), yes, no))

    def bits(self, x: SSAValue) -> SSAValue:
        """The bit patterns."""
        return self.b.add(arith.BitcastOp(x, loop.tile_like(x.type, i32)))

    def from_bits(self, bits: SSAValue) -> SSAValue:
        """The floats of bit patterns."""
        return self.b.add(arith.BitcastOp(bits, loop.tile_like(bits.type, f32)))

    def polynomial(self, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
        """Horner's scheme, the constant first."""
        total = self.number(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            total = self.add(self.multiply(total, x), self.number(coefficient))
        return total
