# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data movement. Works on any dtype; results may be views of their operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array


def reshape(x: Array, sizes: Sequence[int]) -> Array:
    """The same elements in row-major order; one size may be -1, for what is left."""
    if list(sizes).count(-1) > 1:
        raise QcompError("reshape to more than one unknown size", code="shape", hint="give the sizes with --dim")
    return x.reshape(tuple(sizes))


def permute(x: Array, dims: Sequence[int]) -> Array:
    """Dimension i of the result is dimension dims[i] of x."""
    return np.transpose(x, tuple(dims))


def expand(x: Array, sizes: Sequence[int]) -> Array:
    """Broadcast to `sizes`; a size of -1 keeps that of x."""
    kept = (1,) * (len(sizes) - x.ndim) + x.shape
    return np.broadcast_to(x, tuple(b if a == -1 else a for a, b in zip(sizes, kept, strict=True)))


def cut(x: Array, axis: int, start: int, end: int, step: int) -> Array:
    """Elements start, start + step, ... below end along `axis`."""
    return x[(*(slice(None) for _ in range(axis)), slice(start, end, step))]


def concatenate(arrays: Sequence[Array], axis: int) -> Array:
    """The arrays one after another along `axis`."""
    return np.concatenate(arrays, axis=axis)


def pad(x: Array, low: Sequence[int], high: Sequence[int], value: float) -> Array:
    """`low` and `high` elements of `value`, rounded to x's dtype, before and after each dimension."""
    if x.dtype.kind in "iu" and value != int(value):
        raise QcompError(f"padding of integers with {value}", code="unsupported-type")
    sizes = [size + before + after for size, before, after in zip(x.shape, low, high, strict=True)]
    result = np.full(sizes, value, x.dtype)
    result[tuple(slice(before, before + size) for size, before in zip(x.shape, low, strict=True))] = x
    return result


def take(x: Array, axis: int, indices: Sequence[int]) -> Array:
    """Elements `indices` of `axis`."""
    return np.take(x, np.array(indices, np.int64), axis=axis)


def embedding(weight: Array, indices: Array) -> Array:
    """Rows of `weight` picked by `indices`. Raises QcompError for indices outside 0..V-1."""
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < weight.shape[0]:
        raise QcompError(f"indices outside 0 to {weight.shape[0] - 1}", code="index")
    return weight[indices]


def insert_slice(base: Array, source: Array, axis: int, start: int, step: int) -> Array:
    """`base` with the elements start, start + step, ... along `axis` replaced by those of `source`."""
    result = base.copy()
    end = start + source.shape[axis] * step
    result[(*(slice(None) for _ in range(axis)), slice(start, end, step))] = source
    return result


def index_copy(base: Array, indices: Array, source: Array, axis: int) -> Array:
    """`base` with element indices[i] along `axis` replaced by element i of `source`, in order of i.

    Raises QcompError for indices outside 0..size-1.
    """
    size = base.shape[axis]
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise QcompError(f"indices outside 0 to {size - 1}", code="index")
    result = base.copy()
    moved, parts = np.moveaxis(result, axis, 0), np.moveaxis(source, axis, 0)
    for place, part in zip(indices, parts, strict=True):
        moved[int(place)] = part
    return result
