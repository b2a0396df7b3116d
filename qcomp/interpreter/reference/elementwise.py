# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unary and binary arithmetic, in the dtype of the operands, with torch's treatment of NaN, -0.0 and integers.

All functions here are compositions of IEEE operations, so they equal torch's in bits; those that are not are in
`qcomp.interpreter.reference.transcendental`.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array


def relu(x: Array) -> Array:
    """max(x, 0) that keeps NaN and -0.0."""
    return np.where(x < _zero(x), _zero(x), x)


def clamp(x: Array, low: float, high: float) -> Array:
    """``x < low ? low : x``, then ``x > high ? high : x``: keeps NaN and -0.0; low > high gives high.

    The bounds are rounded to x's dtype; for integers they must be integers or infinite.
    """
    if low > -math.inf:
        bound = _bound(low, x)
        x = np.where(x < bound, bound, x)
    if high < math.inf:
        bound = _bound(high, x)
        x = np.where(x > bound, bound, x)
    return x


def leaky_relu(x: Array, slope: float) -> Array:
    """``x > 0 ? x : x * slope``, the slope rounded to x's dtype."""
    return np.where(x > 0, x, np.multiply(x, x.dtype.type(slope)))


def hardsigmoid(x: Array) -> Array:
    """``min(max(x + 3, 0), 6) / 6``, each step rounded."""
    return clamp(x + x.dtype.type(3), 0.0, 6.0) / x.dtype.type(6)


def hardswish(x: Array) -> Array:
    """``x * min(max(x + 3, 0), 6) / 6``, each step rounded."""
    return x * clamp(x + x.dtype.type(3), 0.0, 6.0) / x.dtype.type(6)


def neg(x: Array) -> Array:
    """-x."""
    return np.negative(x)


def absolute(x: Array) -> Array:
    """|x|."""
    return np.abs(x)


def sqrt(x: Array) -> Array:
    """Square root; NaN below zero."""
    return np.sqrt(x)


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x), both rounded."""
    return x.dtype.type(1) / np.sqrt(x)


def add(a: Array, b: Array) -> Array:
    """a + b; integers wrap."""
    return np.add(a, b)


def subtract(a: Array, b: Array) -> Array:
    """a - b; integers wrap."""
    return np.subtract(a, b)


def multiply(a: Array, b: Array) -> Array:
    """a * b; integers wrap."""
    return np.multiply(a, b)


def divide(a: Array, b: Array) -> Array:
    """a / b in floats. Raises QcompError for integers, whose true quotient is a float."""
    if a.dtype.kind != "f":
        raise QcompError("division of integers", code="unsupported-type", hint="cast the operands to f32 first")
    return np.divide(a, b)


def maximum(a: Array, b: Array) -> Array:
    """``a > b ? a : b``, NaN if either is."""
    return np.where((a > b) | np.isnan(a), a, b)


def minimum(a: Array, b: Array) -> Array:
    """``a < b ? a : b``, NaN if either is."""
    return np.where((a < b) | np.isnan(a), a, b)


def cast_to(x: Array, dtype: np.dtype[np.generic]) -> Array:
    """x in another dtype, as torch's ``.to``: floats truncate towards zero, integers wrap, bool means not 0.

    Where C leaves a float's conversion undefined (out of range, NaN) it saturates, and NaN is 0.
    """
    if dtype.kind == "b":
        return x != 0
    if x.dtype.kind != "f" or dtype.kind == "f":
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    limits = np.iinfo(cast("np.dtype[np.signedinteger]", dtype))
    whole = np.trunc(np.where(np.isnan(x), x.dtype.type(0), x)).astype(np.float64)
    inside = (whole >= limits.min) & (whole < float(limits.max) + 1)
    edges = np.where(whole < 0, dtype.type(limits.min), dtype.type(limits.max))
    return np.where(inside, np.where(inside, whole, 0.0).astype(dtype), edges)


def bitcast(x: Array, dtype: np.dtype[np.generic]) -> Array:
    """The bits of `x` as elements of `dtype`; narrower ones are in the order from the lowest bits on."""
    source = np.ascontiguousarray(x, x.dtype.newbyteorder("<")).reshape(x.shape)
    return source.view(dtype.newbyteorder("<")).astype(dtype)


def _zero(x: Array) -> np.generic:
    return x.dtype.type(0)


def _bound(value: float, x: Array) -> np.generic:
    if x.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return x.dtype.type(value)
    if not math.isinf(value) and value != int(value):
        raise QcompError(f"clamp of integers to {value}", code="unsupported-type", hint="cast the operand to f32 first")
    if x.dtype == np.bool_:
        return np.bool_(value >= 1)
    limits = np.iinfo(cast("np.dtype[np.signedinteger]", x.dtype))
    low, high = int(limits.min), int(limits.max)
    return x.dtype.type(min(max(value, low), high) if math.isinf(value) else min(max(int(value), low), high))
