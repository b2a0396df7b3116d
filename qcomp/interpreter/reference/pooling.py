# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools over the last two dimensions, with torch's rules for ceil mode, padding and divisors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qcomp.dialects.nn.pooling import pooled_size
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.convolution import pad_spatial, taps
from qcomp.interpreter.reference.reduction import require_float

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A sliding window over two dimensions."""

    kernel: Pair
    stride: Pair
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    ceil_mode: bool = False

    def output(self, sizes: Sequence[int]) -> Pair:
        """How many windows there are in each dimension."""
        rows, columns = (
            pooled_size(sizes[i], self.kernel[i], self.stride[i], self.padding[i], self.dilation[i], self.ceil_mode)
            for i in range(2)
        )
        return rows, columns

    def borders(self, sizes: Sequence[int]) -> tuple[Pair, Pair]:
        """(begin, end) padding that lets every window be read; in ceil mode the end can exceed `padding`."""
        rows, columns = (
            (self.padding[i], max(0, (count - 1) * self.stride[i] + reach - sizes[i] - self.padding[i]))
            for i, (count, reach) in enumerate(zip(self.output(sizes), self.reach, strict=True))
        )
        return rows, columns

    @property
    def reach(self) -> Pair:
        """From the first to the last element of a window, dilation included."""
        rows, columns = ((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return rows, columns


def max_pool2d(x: Array, window: Window, lowest: float | None = None) -> Array:
    """The largest element of each window, the first among equals; NaN if there is one. Padding is `lowest`.

    lowest: default -inf, or the dtype's smallest integer; for codes pass qmin.
    """
    if lowest is None:
        lowest = -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    sizes = x.shape[-2:]
    out = window.output(sizes)
    result = np.full((*x.shape[:-2], *out), lowest, x.dtype)
    padded = pad_spatial(x, window.borders(sizes), lowest)
    for _, view in taps(padded, window.kernel, window.stride, window.dilation, out):
        np.copyto(result, view, where=(view > result) | np.isnan(view))
    return result


def avg_pool2d(x: Array, window: Window, count_include_pad: bool = True, divisor: int | None = None) -> Array:
    """The mean of each window: elements added one after the other in row-major order, in x's dtype, then divided."""
    require_float(x, "average pool")
    counts = average_counts(x.shape[-2:], window, count_include_pad, divisor)
    return window_sums(x, window) / counts.astype(x.dtype)


def window_sums(x: Array, window: Window) -> Array:
    """The sum of each window in x's dtype, row-major; padding is 0."""
    sizes = x.shape[-2:]
    out = window.output(sizes)
    result = np.zeros((*x.shape[:-2], *out), x.dtype)
    for _, view in taps(pad_spatial(x, window.borders(sizes)), window.kernel, window.stride, (1, 1), out):
        result += view
    return result


def average_counts(
    sizes: Sequence[int], window: Window, count_include_pad: bool = True, divisor: int | None = None
) -> Array:
    """The divisor of each window of an average pool over [H, W], int64 [H_out, W_out].

    Windows that see no element (possible in ceil mode) get 1: their sum is 0.
    """
    out = window.output(sizes)
    if divisor is not None:
        return np.full(out, divisor, np.int64)
    lengths: list[Array] = []
    for i in range(2):
        start = np.arange(out[i]) * window.stride[i] - window.padding[i]
        end = np.minimum(start + window.kernel[i], sizes[i] + window.padding[i])
        inside = np.minimum(end, sizes[i]) - np.maximum(start, 0)
        lengths.append(end - start if count_include_pad else inside)
    return np.maximum(np.multiply.outer(lengths[0], lengths[1]), 1)


def adaptive_windows(size: int, out: int) -> list[Pair]:
    """[floor(i * size / out), ceil((i + 1) * size / out)) for each i below `out`."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def adaptive_avg_pool2d(x: Array, output_size: Pair) -> Array:
    """The mean of each adaptive window: one element added after the other in row-major order, in x's dtype."""
    require_float(x, "average pool")
    result = np.empty((*x.shape[:-2], *output_size), x.dtype)
    for row, column, view in _adaptive(x, output_size):
        flat = view.reshape(*x.shape[:-2], -1)
        total = np.add.accumulate(flat, axis=-1)[..., -1] + x.dtype.type(0)
        result[..., row, column] = total / x.dtype.type(flat.shape[-1])
    return result


def _adaptive(x: Array, output_size: Pair) -> list[tuple[int, int, Array]]:
    rows, columns = (adaptive_windows(x.shape[axis - 2], output_size[axis]) for axis in range(2))
    return [
        (i, j, x[..., top:bottom, left:right])
        for i, (top, bottom) in enumerate(rows)
        for j, (left, right) in enumerate(columns)
    ]
