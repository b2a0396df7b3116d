# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading a dimension at other places, and where torch's resizing reads: indices and weights per result element.

The formulas are those of torch's CPU kernels, coordinates computed in the type that torch computes them in.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array

Real = np.float32 | np.float64
Taps = tuple[Array, Array]
"""Indices int64 [size, taps] and weights [size, taps]."""


def resample(x: Array, indices: Array, weights: Array, axis: int) -> Array:
    """The sum over k of weights[:, k] * x[indices[:, k]] along `axis`, each step rounded in x's dtype."""
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < x.shape[axis]:
        raise QcompError(f"indices outside 0 to {x.shape[axis] - 1}", code="index")
    view = [1] * x.ndim
    view[axis] = -1
    result = np.zeros((*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]), x.dtype)
    for tap in range(indices.shape[1]):
        part = np.take(x, indices[:, tap], axis=axis) * weights[:, tap].astype(x.dtype).reshape(view)
        result = part if tap == 0 else result + part
    return result


def _scale(size: int, out: int, given: float | None, align: bool, kind: type[Real]) -> Real:
    if align:
        return kind(size - 1) / kind(out - 1) if out > 1 else kind(0)
    return kind(1.0 / given) if given is not None and given > 0 else kind(size) / kind(out)


def nearest(size: int, out: int, given: float | None, exact: bool) -> Array:
    """floor(i * scale), or with `exact` floor((i + 1/2) * scale), in float32."""
    scale = _scale(size, out, given, False, np.float32)
    places = np.arange(out).astype(np.float32) + np.float32(0.5 if exact else 0.0)
    return np.minimum(np.floor(places * scale).astype(np.int64), size - 1)


def _sources(size: int, out: int, given: float | None, align: bool, kind: type[Real]) -> Array:
    scale, places = _scale(size, out, given, align, kind), np.arange(out).astype(kind)
    return scale * places if align else scale * (places + kind(0.5)) - kind(0.5)


def linear(size: int, out: int, given: float | None, align: bool, kind: type[Real]) -> Taps:
    """Two neighbours."""
    source = np.maximum(_sources(size, out, given, align, kind), 0)
    first = np.minimum(source.astype(np.int64), size - 1)
    second = np.minimum(first + 1, size - 1)
    share = np.clip(source - first.astype(kind), 0, 1).astype(kind)
    return np.stack([first, second], 1), np.stack([1 - share, share], 1)


def cubic(size: int, out: int, given: float | None, align: bool, kind: type[Real]) -> Taps:
    """Four neighbours, the polynomials of a = -3/4; beyond the ends the last element counts."""
    source = _sources(size, out, given, align, kind)
    first = np.floor(source)
    t, a = np.clip(source - first, 0, 1).astype(kind), kind(-0.75)

    def near(x: Array) -> Array:
        return ((a + kind(2)) * x - (a + kind(3))) * x * x + kind(1)

    def far(x: Array) -> Array:
        return ((a * x - kind(5) * a) * x + kind(8) * a) * x - kind(4) * a

    weights = np.stack([far(t + kind(1)), near(t), near(kind(1) - t), far(kind(2) - t)], 1)
    indices = first.astype(np.int64)[:, None] + np.arange(-1, 3)
    return np.clip(indices, 0, size - 1), weights


def _triangle(x: Array) -> Array:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _smooth(x: Array) -> Array:
    x, a = np.abs(x), -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def smoothed(size: int, out: int, given: float | None, align: bool, kind: type[Real], mode: str) -> Taps:
    """With antialiasing: a triangle or a cubic as wide as the distance of result elements, weights that sum to 1."""
    scale = float(_scale(size, out, given, align, kind))
    function, half = ((_triangle, 1.0), (_smooth, 2.0))[mode == "cubic"]
    return _windows(size, out, scale, half * max(scale, 1.0), function, kind)


def _windows(
    size: int, out: int, scale: float, support: float, function: Callable[[Array], Array], kind: type[Real]
) -> Taps:
    centres = scale * (np.arange(out) + 0.5)
    first = np.maximum((centres - support + 0.5).astype(np.int64), 0)
    last = np.minimum((centres + support + 0.5).astype(np.int64), size)
    taps = np.arange(max(int((last - first).max(initial=1)), 1))
    indices = first[:, None] + taps
    inside = indices < last[:, None]
    weights = np.where(inside, function((indices - centres[:, None] + 0.5) / max(scale, 1.0)), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=weights, where=total != 0)
    return np.where(inside, indices, first[:, None]).clip(0, size - 1), weights.astype(kind)
