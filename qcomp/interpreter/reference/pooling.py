# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools over the last two dimensions, with torch's rules for ceil mode, padding and divisors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from qcomp.dialects.nn.pooling import pooled_size
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.convolution import pad_spatial, taps
from qcomp.interpreter.reference.reduction import require_float

Sizes = tuple[int, ...]
"""One number per spatial dimension."""


@dataclass(frozen=True)
class Window:
    """A sliding window over the last dimensions; padding and dilation default to none."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes = ()
    dilation: Sizes = ()
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "padding", self.padding or (0,) * len(self.kernel))
        object.__setattr__(self, "dilation", self.dilation or (1,) * len(self.kernel))

    def output(self, sizes: Sequence[int]) -> Sizes:
        """How many windows there are in each dimension."""
        every = zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple(pooled_size(*one, self.ceil_mode) for one in every)

    def borders(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """(begin, end) padding that lets every window be read; in ceil mode the end can exceed `padding`."""
        every = zip(sizes, self.output(sizes), self.stride, self.padding, self.reach, strict=True)
        return [
            (padding, max(0, (count - 1) * stride + reach - size - padding))
            for size, count, stride, padding, reach in every
        ]

    @property
    def reach(self) -> Sizes:
        """From the first to the last element of a window, dilation included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))


def max_pool(x: Array, window: Window, lowest: float | None = None) -> Array:
    """The largest element of each window, the first among equals; NaN if there is one. Padding is `lowest`.

    lowest: default -inf, or the dtype's smallest integer; for codes pass qmin.
    """
    if lowest is None:
        lowest = -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    sizes = x.shape[-len(window.kernel) :]
    out = window.output(sizes)
    result = np.full((*x.shape[: -len(out)], *out), lowest, x.dtype)
    padded = pad_spatial(x, window.borders(sizes), lowest)
    for _, view in taps(padded, window.kernel, window.stride, window.dilation, out):
        np.copyto(result, view, where=(view > result) | np.isnan(view))
    return result


def max_pool_indices(x: Array, window: Window) -> Array:
    """The row-major number of the first of the largest elements of each window, or of the last NaN, as torch has it."""
    sizes = x.shape[-len(window.kernel) :]
    out = window.output(sizes)
    borders = window.borders(sizes)
    numbers = pad_spatial(np.arange(int(np.prod(sizes))).reshape(sizes), borders, -1)
    padded = pad_spatial(x, borders)
    best = np.zeros((*x.shape[: -len(out)], *out), x.dtype)
    found = np.full(best.shape, -1, np.int64)
    frame = (window.kernel, window.stride, window.dilation, out)
    for (_, view), (_, number) in zip(taps(padded, *frame), taps(numbers, *frame), strict=True):
        better = (number >= 0) & ((view > best) | np.isnan(view) | (found < 0))
        np.copyto(best, view, where=better)
        np.copyto(found, np.broadcast_to(number, found.shape), where=better)
    return found


def avg_pool(x: Array, window: Window, count_include_pad: bool = True, divisor: int | None = None) -> Array:
    """The mean of each window: elements added one after the other in row-major order, in x's dtype, then divided."""
    require_float(x, "average pool")
    counts = average_counts(x.shape[-len(window.kernel) :], window, count_include_pad, divisor)
    return window_sums(x, window) / counts.astype(x.dtype)


def window_sums(x: Array, window: Window) -> Array:
    """The sum of each window in x's dtype, row-major; padding is 0."""
    sizes = x.shape[-len(window.kernel) :]
    out = window.output(sizes)
    result = np.zeros((*x.shape[: -len(out)], *out), x.dtype)
    for _, view in taps(pad_spatial(x, window.borders(sizes)), window.kernel, window.stride, window.dilation, out):
        result += view
    return result


def average_counts(
    sizes: Sequence[int], window: Window, count_include_pad: bool = True, divisor: int | None = None
) -> Array:
    """The divisor of each window of an average pool over `sizes`, int64 of the size of the output.

    Windows that see no element (possible in ceil mode) get 1: their sum is 0.
    """
    out = window.output(sizes)
    if divisor is not None:
        return np.full(out, divisor, np.int64)
    lengths: list[Array] = []
    for i in range(len(out)):
        start = np.arange(out[i]) * window.stride[i] - window.padding[i]
        end = np.minimum(start + window.kernel[i], sizes[i] + window.padding[i])
        inside = np.minimum(end, sizes[i]) - np.maximum(start, 0)
        lengths.append(end - start if count_include_pad else inside)
    return np.maximum(reduce(np.multiply.outer, lengths), 1)


def adaptive_windows(size: int, out: int) -> list[tuple[int, int]]:
    """[floor(i * size / out), ceil((i + 1) * size / out)) for each i below `out`."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def adaptive_avg_pool(x: Array, output_size: Sizes) -> Array:
    """The mean of each adaptive window: one element added after the other in row-major order, in x's dtype."""
    require_float(x, "average pool")
    result = np.empty((*x.shape[: -len(output_size)], *output_size), x.dtype)
    for place, flat in _adaptive(x, output_size):
        total = np.add.accumulate(flat, axis=-1)[..., -1] + x.dtype.type(0)
        result[(..., *place)] = total / x.dtype.type(flat.shape[-1])
    return result


def adaptive_max_pool(x: Array, output_size: Sizes) -> Array:
    """The largest element of each adaptive window, the first among equals; NaN if there is one."""
    result = np.empty((*x.shape[: -len(output_size)], *output_size), x.dtype)
    for place, flat in _adaptive(x, output_size):
        first = np.argmax(flat, axis=-1)[..., None]
        result[(..., *place)] = np.take_along_axis(flat, first, axis=-1)[..., 0]
    return result


def _adaptive(x: Array, output_size: Sizes) -> Iterator[tuple[Sizes, Array]]:
    """Each place of the result, and the elements of its window in row-major order along the last axis."""
    spatial = len(output_size)
    lead, sizes = x.shape[:-spatial], x.shape[-spatial:]
    windows = [list(enumerate(adaptive_windows(*pair))) for pair in zip(sizes, output_size, strict=True)]
    for chosen in product(*windows):
        part = x[(..., *(slice(*bounds) for _, bounds in chosen))]
        yield tuple(index for index, _ in chosen), part.reshape(*lead, prod(part.shape[len(lead) :]))
