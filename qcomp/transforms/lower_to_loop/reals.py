# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The algebra of formulas over tiles of one shape: constants are splats, every call is one op."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop
from qcomp.transforms.lower_to_loop.builder import Builder, real_type


class Reals:
    """`qcomp.interpreter.reference.algebra` over tiles of `shape` (() for scalars), appended to `b`.

    element: f32 or f64, by default `real_type`.
    """

    def __init__(self, b: Builder, shape: Sequence[int], element: Attribute | None = None):
        self.b = b
        self.shape = tuple(shape)
        self.element = real_type() if element is None else element

    @property
    def double(self) -> bool:
        return self.element == f64

    @property
    def word(self) -> IntegerType:
        """The type of bits."""
        return i64 if self.double else i32

    def number(self, value: float) -> SSAValue:
        """A constant."""
        return self.b.number(value, self.shape, self.element)

    def whole(self, value: int) -> SSAValue:
        """A constant of the type of bits."""
        return self.b.integer(value, self.shape, self.word)

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
        if self.element == f32:
            return self.b.add(loop.ClampOp(x, low, high))
        x = self.select("lt", x, low, self.number(low), x)
        return self.select("gt", x, high, self.number(high), x)

    def larger(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """torch's maximum."""
        return self.b.add(loop.MaximumOp(x, y))

    def smaller(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """torch's minimum."""
        return self.b.add(loop.MinimumOp(x, y))

    def select(self, predicate: str, x: SSAValue, bound: SSAValue | float, yes: SSAValue, no: SSAValue) -> SSAValue:
        """``x predicate bound ? yes : no``."""
        other = self.number(bound) if isinstance(bound, float | int) else bound
        return self.b.add(loop.SelectOp(self.b.add(loop.CompareOp(predicate, x, other)), yes, no))

    def bits(self, x: SSAValue) -> SSAValue:
        """The bit patterns."""
        return self.b.add(arith.BitcastOp(x, loop.tile_like(x.type, self.word)))

    def from_bits(self, bits: SSAValue) -> SSAValue:
        """The floats of bit patterns."""
        return self.b.add(arith.BitcastOp(bits, loop.tile_like(bits.type, self.element)))

    def add_whole(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.AddiOp(x, y))

    def subtract_whole(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.SubiOp(x, y))

    def multiply_whole(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.MuliOp(x, y))

    def shift_right(self, x: SSAValue, count: int) -> SSAValue:
        """i32, arithmetic."""
        return self.b.add(arith.ShRSIOp(x, self.whole(count)))

    def bit_and(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.AndIOp(x, y))

    def bit_or(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.OrIOp(x, y))

    def bit_xor(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.XOrIOp(x, y))

    def to_real(self, x: SSAValue) -> SSAValue:
        """From integers."""
        return self.b.add(loop.ToFloatOp(x, self.element))

    def quadrant(self, x: SSAValue) -> SSAValue:
        return self.b.add(loop.AngleOp("quadrant", x))

    def remaining_angle(self, x: SSAValue) -> SSAValue:
        return self.b.add(loop.AngleOp("rest", x))

    def float_remainder(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(loop.RemainderOp(x, y))

    def floor_quotient(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.FloorDivSIOp(x, y))

    def shift_left_by(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Of integers; see `Wholes`."""
        return self.b.add(arith.ShLIOp(x, y))

    def shift_right_by(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Of integers; see `Wholes`."""
        return self.b.add(arith.ShRSIOp(x, y))

    def polynomial(self, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
        """Horner's scheme, the constant first."""
        total = self.number(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            total = self.add(self.multiply(total, x), self.number(coefficient))
        return total


class Wholes(Reals):
    """The same over integers held in i32 or i64: they wrap. width: bits of the type they are stored in."""

    def __init__(self, b: Builder, shape: Sequence[int], element: Attribute, width: int):
        super().__init__(b, shape, element)
        self.width = width

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.AddiOp(x, y))

    def subtract(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.SubiOp(x, y))

    def multiply(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.MuliOp(x, y))

    def negate(self, x: SSAValue) -> SSAValue:
        return self.subtract(self.number(0), x)

    def absolute(self, x: SSAValue) -> SSAValue:
        return self.select("lt", x, 0, self.negate(x), x)

    def larger(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.MaxSIOp(x, y))

    def smaller(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.add(arith.MinSIOp(x, y))

    def clamp(self, x: SSAValue, low: float, high: float) -> SSAValue:
        x = self.b.add(arith.MaxSIOp(x, self.number(low)))
        return self.b.add(arith.MinSIOp(x, self.number(high)))

    def shift_left_by(self, x: SSAValue, y: SSAValue) -> SSAValue:
        inside = self.select("lt", y, 0, self.number(0), self.select("ge", y, self.width, self.number(0), y))
        shifted = self.b.add(arith.ShLIOp(x, inside))
        return self.select("eq", inside, y, shifted, self.number(0))

    def shift_right_by(self, x: SSAValue, y: SSAValue) -> SSAValue:
        most = self.number(self.width - 1)
        count = self.select("lt", y, 0, most, self.select("ge", y, self.width, most, y))
        return self.b.add(arith.ShRSIOp(x, count))
