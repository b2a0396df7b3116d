# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grid sampling by the formulas of torch's CPU kernel, every step rounded in the element type."""

from __future__ import annotations

import numpy as np

from qcomp.interpreter.reference.array import Array


def coordinates(x: Array, size: int, padding_mode: str, align: bool) -> Array:
    """Grid coordinates along a dimension of `size` as indices that are no whole numbers, padding applied."""
    kind = x.dtype.type
    if align:
        place = (x + kind(1)) * kind((size - 1) / 2)
    else:
        place = (x + kind(1)) * kind(size / 2) - kind(0.5)
    if padding_mode == "zeros":
        return _clamp(place, -2, size + 1)
    if padding_mode == "reflection":
        place = _reflected(place, size, align)
    return _clamp(place, 0, size - 1)


def _clamp(x: Array, low: float, high: float) -> Array:
    kind = x.dtype.type
    x = np.where(x < kind(low), kind(low), x)
    return np.where(x > kind(high), kind(high), x)


def _reflected(place: Array, size: int, align: bool) -> Array:
    kind = place.dtype.type
    span, start = (2 * (size - 1), 0.0) if align else (2 * size, 0.5)
    if span == 0:
        return np.zeros_like(place)
    away = np.abs(place + kind(start))
    flips = np.trunc(np.clip(away / kind(span), 0, 2.0**30)).astype(place.dtype)
    extra = away - flips * kind(span)
    return np.minimum(extra, kind(span) - extra) - kind(start)


def grid_sample(x: Array, grid: Array, mode: str, padding_mode: str, align: bool) -> Array:
    """[N, C, H, W] at grid [N, H_out, W_out, 2]."""
    height, width = x.shape[2:]
    across = coordinates(grid[..., 0], width, padding_mode, align)
    down = coordinates(grid[..., 1], height, padding_mode, align)
    if mode == "nearest":
        return _read(x, np.rint(down).astype(np.int64), np.rint(across).astype(np.int64))
    left, top = np.floor(across), np.floor(down)
    kind = x.dtype.type
    west, north = across - left, down - top
    east, south = kind(1) - west, kind(1) - north
    corners = ((0, 0, east * south), (0, 1, west * south), (1, 0, east * north), (1, 1, west * north))
    result = np.zeros((*x.shape[:2], *grid.shape[1:3]), x.dtype)
    rows, columns = (np.nan_to_num(side).astype(np.int64) for side in (top, left))
    for number, (below, beside, weight) in enumerate(corners):
        part = _read(x, rows + below, columns + beside) * weight[:, None]
        result = part if number == 0 else result + part
    return result


def _read(x: Array, rows: Array, columns: Array) -> Array:
    """[N, C, ...] at integer places, 0 outside."""
    height, width = x.shape[2:]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    batch = np.arange(x.shape[0])[:, None, None]
    values = x[batch, :, rows.clip(0, height - 1), columns.clip(0, width - 1)]
    return np.where(inside[..., None], values, x.dtype.type(0)).transpose(0, 3, 1, 2)
