# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Picking and writing by indices, orders and running totals, each in a fixed order, in the dtype of the operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qcomp.errors import QcompError
from qcomp.interpreter.reference.algebra import NumpyAlgebra
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.elementwise import maximum, minimum
from qcomp.interpreter.reference.functions import logaddexp


def check_inside(indices: Array, size: int) -> None:
    """Raise QcompError for indices outside 0..size-1."""
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise QcompError(f"indices outside 0 to {size - 1}", code="index")


def gather(x: Array, indices: Array, axis: int) -> Array:
    """take_along_axis with broadcasting. Raises QcompError for indices outside."""
    check_inside(indices, x.shape[axis])
    shape = np.broadcast_shapes((*x.shape[:axis], 1, *x.shape[axis + 1 :]), indices.shape)
    wide = np.broadcast_to(x, (*shape[:axis], x.shape[axis], *shape[axis + 1 :]))
    return np.take_along_axis(wide, np.broadcast_to(indices, shape), axis)


_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "mul": np.multiply, "max": maximum, "min": minimum,
}  # fmt: skip


def scatter(x: Array, indices: Array, source: Array, axis: int, reduce: str) -> Array:
    """`x` with the elements of `source` put or combined in one after the other. Raises QcompError for indices outside.

    Sums, products and extremes of truth values are or, and, or, and.
    """
    check_inside(indices, x.shape[axis])
    result = x.copy()
    grids: list[Array] = list(np.indices(source.shape, sparse=True))
    grids[axis] = np.broadcast_to(indices, source.shape)
    where = tuple(np.broadcast_to(grid, source.shape).reshape(-1) for grid in grids)
    values = source.reshape(-1)
    if reduce == "none":
        result[where] = values
        return result
    combine = _COMBINE[reduce]
    # Elements that share a place take turns, in order.
    turn = _turns(np.ravel_multi_index(where, x.shape) if values.size else np.zeros(0, np.int64))
    for number in range(int(turn.max(initial=-1)) + 1):
        now = turn == number
        place = tuple(grid[now] for grid in where)
        result[place] = combine(result[place], values[now])
    return result


def _turns(places: Array) -> Array:
    """How many earlier elements have the same place."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if places.size else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(places.size), 0))
    turns = np.empty(places.size, np.int64)
    turns[order] = np.arange(places.size) - starts
    return turns


def argsort(x: Array, axis: int, descending: bool) -> Array:
    """Stable; NaN counts as the largest."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype(np.int64)
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis).astype(np.int64)


def scan(x: Array, axis: int, kind: str) -> Array:
    """Running totals, from the first element on; those of sums from 0.0 on, which -0.0 does not change."""
    if not x.size:
        return x.astype(np.int64) if kind.startswith("arg") else x
    if kind in ("add", "logaddexp") and x.dtype.kind == "f":
        x = x + x.dtype.type(0)
    if kind in ("add", "mul"):
        return (np.add if kind == "add" else np.multiply).accumulate(x, axis=axis, dtype=x.dtype)
    lines = np.moveaxis(x, axis, 0)
    found = np.empty(lines.shape, np.int64 if kind.startswith("arg") else x.dtype)
    best, place = lines[0], np.zeros(lines.shape[1:], np.int64)
    found[0] = place if kind.startswith("arg") else best
    for index, line in enumerate(lines[1:], 1):
        if kind == "logaddexp":
            best = logaddexp(NumpyAlgebra(x.dtype), best, line)
        else:
            taken = (line >= best if kind.endswith("max") else line <= best) | (line != line)
            taken &= (best == best) | (line != line)
            best, place = np.where(taken, line, best), np.where(taken, index, place)
        found[index] = place if kind.startswith("arg") else best
    return np.moveaxis(found, 0, axis)


def _lines(x: Array, axes: Sequence[int]) -> Array:
    """[kept..., elements]: what is reduced in row-major order."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = np.transpose(x, (*kept, *sorted(axes)))
    count = int(np.prod(moved.shape[len(kept) :], dtype=np.int64))
    return moved.reshape(*moved.shape[: len(kept)], count)


def product(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    """One element after the other; 1 of no elements."""
    lines = _lines(x, axes)
    ones = np.ones((*lines.shape[:-1], 1), x.dtype)
    result = np.multiply.accumulate(np.concatenate([ones, lines], -1), axis=-1, dtype=x.dtype)[..., -1]
    return np.expand_dims(result, tuple(axes)) if keepdim else result


def smallest(x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    """Smallest element; NaN if there is one; the first one of 0.0 and -0.0."""
    lines = _lines(x, axes)
    if 0 in (x.shape[axis] for axis in axes):
        raise QcompError("the smallest of no elements", code="shape")
    result = np.take_along_axis(lines, np.argmin(lines, axis=-1)[..., None], -1)[..., 0]
    return np.expand_dims(result, tuple(axes)) if keepdim else result


def place_of(x: Array, axis: int, keepdim: bool, largest: bool) -> Array:
    """Where the first largest or smallest element is; NaN counts as it."""
    if x.shape[axis] == 0:
        raise QcompError("the place of one of no elements", code="shape")
    return np.asarray((np.argmax if largest else np.argmin)(x, axis=axis, keepdims=keepdim)).astype(np.int64)
