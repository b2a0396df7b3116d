# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over axes, in a fixed order, and the average of codes.

Float sums start at 0.0 and add one element after the other in row-major order, in float64; what is made of them is
rounded once. Averages of codes are exact sums of `q - z`, then what torch does to them, in float32:

    q = quantize(float32(sum) * float32(s) / float32(count))

Averages of few codes often lie half way between two codes, where any shorter form picks the other one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.integer_plan import largest_distance
from qcomp.interpreter.reference.quantize import quantize


def ordered_sum(x: Array, axes: Sequence[int]) -> Array:
    """The float64 sum over `axes` (removed), element after element in row-major order."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = np.transpose(x, (*kept, *sorted(axes))).astype(np.float64)
    flat = moved.reshape(*(x.shape[axis] for axis in kept), -1)
    if flat.shape[-1] == 0:
        return np.zeros(flat.shape[:-1])
    return np.add.accumulate(flat, axis=-1)[..., -1] + 0.0


def total(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    """Sum in x's dtype; integers wrap."""
    if x.dtype.kind != "f":
        return np.add.reduce(x, axis=tuple(axes), dtype=x.dtype, keepdims=keepdim)
    return _kept(ordered_sum(x, axes), axes, keepdim).astype(x.dtype)


def mean(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    """Arithmetic mean in x's dtype. Raises QcompError for integers."""
    require_float(x, "mean")
    return _kept(ordered_sum(x, axes) / element_count(x.shape, axes), axes, keepdim).astype(x.dtype)


def largest(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    """Largest element, the first among equals (-0.0 equals 0.0); NaN if there is one."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    flat = np.transpose(x, (*kept, *sorted(axes))).reshape(*(x.shape[axis] for axis in kept), -1)
    if flat.shape[-1] == 0:
        raise QcompError("the largest of no elements", code="shape")
    picked = np.take_along_axis(flat, np.argmax(flat, axis=-1)[..., None], axis=-1)[..., 0]
    return _kept(picked, axes, keepdim)


def sum_codes(codes: Array, axes: Sequence[int], keepdim: bool, source: Encoding) -> Array:
    """The exact sum of `q - zero_point` over `axes`. Raises QcompError "not-integer" when int32 may not hold it."""
    check_average(element_count(codes.shape, axes), source)
    centred = codes.astype(np.int64) - source.zero_point
    return np.add.reduce(centred, axis=tuple(axes), keepdims=keepdim)


def average_codes(sums: Array, count: Array | int, source: Encoding, output: Encoding | None) -> Array:
    """From sums of `q - z` over `count` elements to codes of `output`, or to float32 without one."""
    with np.errstate(over="ignore"):
        real = sums.astype(np.float32) * np.float32(source.scale) / np.asarray(count).astype(np.float32)
    return real if output is None else quantize(real, output)


def check_average(elements: int, source: Encoding) -> None:
    """Raise QcompError "not-integer" unless a sum of that many codes, zero point taken off, fits int32."""
    if elements * largest_distance(source) >= 2**31:
        raise QcompError(
            f"int32 accumulator overflows: {elements} codes of {source.width} bits are summed",
            code="not-integer",
            hint="leave the op between dequantize and quantize",
        )


def element_count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements a reduction over `axes` puts together."""
    return int(np.prod([shape[axis] for axis in axes], dtype=np.int64))


def require_float(x: Array, what: str) -> None:
    """Raise QcompError unless x is a float array."""
    if x.dtype.kind != "f":
        raise QcompError(f"{what} of integers", code="unsupported-type", hint="cast the operand to f32 first")


def _kept(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    return np.expand_dims(x, tuple(axes)) if keepdim else x
