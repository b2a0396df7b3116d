# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What formulas are written in, so that each one is written once: `formulas` over numpy arrays is the reference, over
loop ops (`qcomp.transforms.lower_to_loop.reals`) it is what loops and C do. Every method is one IEEE operation, or one
exact operation on integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from qcomp.interpreter.reference.angle import quadrant, remaining_angle
from qcomp.interpreter.reference.array import Array

V = TypeVar("V")


class Algebra(Protocol[V]):
    """Arithmetic on values of one element type, reals or integers that wrap, and on their bits as integers."""

    @property
    def double(self) -> bool:
        """Whether reals are float64 and their bits int64, not float32 and int32."""
        ...

    def number(self, value: float) -> V: ...
    def whole(self, value: int) -> V:
        """An integer of the type that holds bits."""
        ...

    def add(self, x: V, y: V, /) -> V: ...
    def subtract(self, x: V, y: V, /) -> V: ...
    def multiply(self, x: V, y: V, /) -> V: ...
    def divide(self, x: V, y: V, /) -> V: ...
    def negate(self, x: V, /) -> V: ...
    def absolute(self, x: V, /) -> V: ...
    def square_root(self, x: V, /) -> V: ...
    def round(self, x: V, /) -> V:
        """Half to even, still a float."""
        ...

    def copy_sign(self, size: V, sign: V, /) -> V: ...
    def scale(self, x: V, exponent: V, /) -> V:
        """x * 2^exponent, rounded once; see `loop.scale`."""
        ...

    def clamp(self, x: V, low: float, high: float, /) -> V: ...
    def select(self, predicate: str, x: V, bound: V | float, yes: V, no: V, /) -> V:
        """``x predicate bound ? yes : no``."""
        ...

    def bits(self, x: V, /) -> V:
        """The bit patterns of reals."""
        ...

    def from_bits(self, bits: V, /) -> V: ...
    def add_whole(self, x: V, y: V, /) -> V:
        """Wrapping."""
        ...

    def subtract_whole(self, x: V, y: V, /) -> V: ...
    def multiply_whole(self, x: V, y: V, /) -> V: ...
    def shift_right(self, x: V, count: int, /) -> V:
        """Arithmetic."""
        ...

    def bit_and(self, x: V, y: V, /) -> V: ...
    def bit_or(self, x: V, y: V, /) -> V: ...
    def bit_xor(self, x: V, y: V, /) -> V: ...
    def to_real(self, x: V, /) -> V:
        """From integers."""
        ...

    def quadrant(self, x: V, /) -> V:
        """See `qcomp.interpreter.reference.angle`."""
        ...

    def remaining_angle(self, x: V, /) -> V: ...
    def float_remainder(self, x: V, y: V, /) -> V:
        """C's fmod, exact."""
        ...

    def floor_quotient(self, x: V, y: V, /) -> V:
        """Of integers; 0 for a divisor of 0."""
        ...

    def shift_left_by(self, x: V, y: V, /) -> V:
        """Of integers; counts outside the type's width give 0."""
        ...

    def shift_right_by(self, x: V, y: V, /) -> V:
        """Of integers, arithmetic; counts outside the type's width give 0 or -1."""
        ...

    def polynomial(self, coefficients: Sequence[float], x: V, /) -> V:
        """Horner's scheme, the constant first."""
        ...


_COMPARISONS: dict[str, Callable[[Array, Array | np.generic], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def compare(predicate: str, x: Array, y: Array | np.generic) -> Array:
    """``x predicate y``, as C's operators."""
    return _COMPARISONS[predicate](x, y)


class NumpyAlgebra:
    """Arithmetic on arrays of `dtype`."""

    def __init__(self, dtype: np.dtype[np.generic]):
        self.dtype = dtype
        self.word = np.dtype(np.int64 if dtype == np.float64 else np.int32)

    @property
    def double(self) -> bool:
        return self.dtype == np.float64

    def number(self, value: float) -> Array:
        return np.asarray(value).astype(self.dtype)

    def whole(self, value: int) -> Array:
        return np.asarray(value, self.word)

    def add(self, x: Array, y: Array) -> Array:
        return np.add(x, y)

    def subtract(self, x: Array, y: Array) -> Array:
        return np.subtract(x, y)

    def multiply(self, x: Array, y: Array) -> Array:
        return np.multiply(x, y)

    def divide(self, x: Array, y: Array) -> Array:
        return np.divide(x, y)

    def negate(self, x: Array) -> Array:
        return np.negative(x)

    def absolute(self, x: Array) -> Array:
        return np.abs(x)

    def square_root(self, x: Array) -> Array:
        return np.sqrt(x)

    def round(self, x: Array) -> Array:
        return np.rint(x)

    def copy_sign(self, size: Array, sign: Array) -> Array:
        return np.copysign(size, sign)

    def scale(self, x: Array, exponent: Array) -> Array:
        number = ~np.isnan(exponent)
        result = np.ldexp(x, np.where(number, exponent, self.dtype.type(0)).astype(np.int32))
        return np.where(number, result, exponent)

    def clamp(self, x: Array, low: float, high: float) -> Array:
        x = np.where(x < self.number(low), self.number(low), x)
        return np.where(x > self.number(high), self.number(high), x)

    def select(self, predicate: str, x: Array, bound: Array | float, yes: Array, no: Array) -> Array:
        other = self.number(bound) if isinstance(bound, float | int) else bound
        return np.where(compare(predicate, x, other), yes, no)

    def bits(self, x: Array) -> Array:
        return np.asarray(x).view(self.word)

    def from_bits(self, bits: Array) -> Array:
        return np.asarray(bits).view(self.dtype)

    add_whole, subtract_whole, multiply_whole = add, subtract, multiply

    def shift_right(self, x: Array, count: int) -> Array:
        return np.right_shift(x, self.word.type(count))

    def bit_and(self, x: Array, y: Array) -> Array:
        return np.bitwise_and(x, y)

    def bit_or(self, x: Array, y: Array) -> Array:
        return np.bitwise_or(x, y)

    def bit_xor(self, x: Array, y: Array) -> Array:
        return np.bitwise_xor(x, y)

    def to_real(self, x: Array) -> Array:
        return np.asarray(x).astype(self.dtype)

    def quadrant(self, x: Array) -> Array:
        return quadrant(x)

    def remaining_angle(self, x: Array) -> Array:
        return remaining_angle(x)

    def float_remainder(self, x: Array, y: Array) -> Array:
        return np.fmod(x, y)

    def floor_quotient(self, x: Array, y: Array) -> Array:
        return np.floor_divide(x, y)

    def shift_left_by(self, x: Array, y: Array) -> Array:
        inside = (y >= 0) & (y < 8 * self.dtype.itemsize)
        return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(self.dtype)

    def shift_right_by(self, x: Array, y: Array) -> Array:
        most = 8 * self.dtype.itemsize - 1
        return np.right_shift(x, np.where((y >= 0) & (y <= most), y, most).astype(self.dtype))

    def polynomial(self, coefficients: Sequence[float], x: Array) -> Array:
        total = self.number(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            total = total * x + self.number(coefficient)
        return total
