# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over axes, in a fixed order, and the average of codes.

A float sum has 16 partial sums, each rounded in the elements' own type: number p starts at 0.0 and takes, in row-major
order, the elements whose index along the last reduced axis is p modulo 16. The second half of the partial sums is then
added to the first, until one is left. So 16 lanes work at a time whichever axis they lie along, and every level gives
the same bits. The largest element is found in the same order. Averages of codes are exact sums of `q - z`, then what
torch does to them, in float32:

    q = quantize(float32(sum) * float32(s) / float32(count))

Averages of few codes often lie half way between two codes, where any shorter form picks the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter.reference.algebra import Algebra, NumpyAlgebra
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.elementwise import maximum
from qcomp.interpreter.reference.quantize import quantize

V = TypeVar("V")

PARTIALS = 16
"""Partial results of a reduction."""


def ordered_sum(x: Array, axes: Sequence[int]) -> Array:
    """The sum over `axes` (removed) in x's dtype, in the order above."""
    partial = np.add.accumulate(_partials(x, axes, 0.0), axis=-2)[..., -1, :] + x.dtype.type(0)
    while partial.shape[-1] > 1:
        half = partial.shape[-1] // 2
        partial = partial[..., :half] + partial[..., half:]
    return partial[..., 0]


def _partials(x: Array, axes: Sequence[int], fill: float) -> Array:
    """[kept..., steps, 16]: what each partial result takes, one step after the other, filled up with `fill`."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = np.transpose(x, (*kept, *sorted(axes))) if axes else x[..., None]
    size = moved.shape[-1]
    steps = max(-(-size // PARTIALS), 1)
    wide = np.full((*moved.shape[:-1], steps * PARTIALS), fill, x.dtype)
    wide[..., :size] = moved
    outer = wide.shape[: len(kept)]
    if not wide.size:
        return np.full((*outer, 1, PARTIALS), fill, x.dtype)
    return wide.reshape(*outer, -1, PARTIALS)


def total(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    """Sum in x's dtype; integers wrap."""
    if x.dtype.kind != "f":
        return np.add.reduce(x, axis=tuple(axes), dtype=x.dtype, keepdims=keepdim)
    return _kept(ordered_sum(x, axes), axes, keepdim)


def mean(x: Array, axes: Sequence[int], keepdim: bool, shifted: bool = False) -> Array:
    """Arithmetic mean in x's dtype. Raises QcompError for integers.

    shifted: ``a + sum(x - a) / n`` with the anchor `a` of `anchor_of`. Equal elements have x - a = 0, so their mean is
    the element itself, whatever its size and their number, where ``sum(x) / n`` rounds on the way and may overflow.
    """
    require_float(x, "mean")
    count = x.dtype.type(element_count(x.shape, axes))
    if not shifted or not axes or count == 0:
        return _kept(ordered_sum(x, axes) / count, axes, keepdim)
    anchor = _anchor(x, axes)
    result = anchor.squeeze(tuple(axes)) + ordered_sum(x - anchor, axes) / count
    return _kept(result, axes, keepdim)


def _anchor(x: Array, axes: Sequence[int]) -> Array:
    """The element that distances are measured from; `axes`, which are not empty, have size 1 in the result."""
    found: list[Array] = []
    for places in anchor_places([x.shape[axis] for axis in axes]):
        where = [slice(None)] * x.ndim
        for axis, place in zip(axes, places, strict=True):
            where[axis] = slice(place, place + 1)
        found.append(x[tuple(where)])
    return anchor_of(NumpyAlgebra(x.dtype), *found)


def anchor_places(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The indices of the three elements along axes of `sizes`, which may depend on symbols: first, middle and last."""
    return [tuple(0 for _ in sizes), tuple(size // 2 for size in sizes), tuple(size - 1 for size in sizes)]


def anchor_of(m: Algebra[V], x: V, y: V, z: V) -> V:
    """The median of three elements where it is further from 0 than they are apart, else 0.

    So equal elements are their own anchor; elements around 0 are summed up as they are; and one outlier is no anchor,
    as distances from it would be rounded to its precision. A row with NaN or infinities has no finite mean anyway.
    """
    low, high = m.select("lt", x, y, x, y), m.select("lt", x, y, y, x)
    below = m.select("lt", z, high, z, high)
    median = m.select("gt", below, low, below, low)
    apart = m.subtract(m.select("gt", z, high, z, high), m.select("lt", z, low, z, low))
    return m.select("gt", m.absolute(median), apart, median, m.number(0.0))


def largest(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    """Largest element; NaN if there is one. Of -0.0 and 0.0 the one that comes first in the order above."""
    if 0 in (x.shape[axis] for axis in axes):
        raise QcompError("the largest of no elements", code="shape")
    if x.dtype.kind != "f":
        return np.max(x, axis=tuple(axes), keepdims=keepdim)
    partial = _partials(x, axes, -np.inf)
    partial = np.take_along_axis(partial, np.argmax(partial, axis=-2)[..., None, :], axis=-2)[..., 0, :]
    while partial.shape[-1] > 1:
        half = partial.shape[-1] // 2
        partial = maximum(partial[..., half:], partial[..., :half])
    return _kept(partial[..., 0], axes, keepdim)


def sum_codes(codes: Array, axes: Sequence[int], keepdim: bool, source: Encoding) -> Array:
    """The exact sum of `q - zero_point` over `axes`, int64."""
    centred = codes.astype(np.int64) - source.zero_point
    return np.add.reduce(centred, axis=tuple(axes), keepdims=keepdim)


def average_codes(sums: Array, count: Array | int, source: Encoding, output: Encoding | None) -> Array:
    """From sums of `q - z` over `count` elements to codes of `output`, or to float32 without one."""
    with np.errstate(over="ignore"):
        real = sums.astype(np.float32) * np.float32(source.scale) / np.asarray(count).astype(np.float32)
    return real if output is None else quantize(real, output)


def element_count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements a reduction over `axes` puts together."""
    return int(np.prod([shape[axis] for axis in axes], dtype=np.int64))


def require_float(x: Array, what: str) -> None:
    """Raise QcompError unless x is a float array."""
    if x.dtype.kind != "f":
        raise QcompError(f"{what} of integers", code="unsupported-type", hint="cast the operand to f32 first")


def _kept(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    return np.expand_dims(x, tuple(axes)) if keepdim else x
