# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges of values over calibration samples, and the encodings that follow from them.

A range is found in two passes: the extremes, then a histogram between them. Its ends move inwards while that lowers the
expected square error of rounding and clipping, as torch's HistogramObserver does; from a range to scale and zero point
the formulas are those of torch's observers (affine, 0 included).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from qcomp.dialects.constant import Array
from qcomp.dialects.quant import Encoding

_BINS = 2048
_STRIDE = 8
"""Bins between the ends that are tried."""
_EPS = 2.0**-12
"""The least scale of an activation, as in torch's quantizers."""
_WEIGHT_EPS = float(np.finfo(np.float32).eps)
_ROUNDS = 3
"""How often either end of a range is looked at again."""

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class Streamed(ABC):
    """Samples that need not be in memory together: each pass makes them anew, the same ones."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[Array, ...]]: ...


@dataclass
class Range:
    """The extremes of the finite numbers seen so far, and once these are known how often numbers lie in between."""

    low: float = np.inf
    high: float = -np.inf
    histogram: FloatArray = field(default_factory=lambda: np.zeros(_BINS))

    def extend(self, values: Array) -> None:
        """First pass: take in the extremes of `values`."""
        finite = values[np.isfinite(values)]
        if finite.size:
            self.low, self.high = min(self.low, float(finite.min())), max(self.high, float(finite.max()))

    def count(self, values: Array) -> None:
        """Second pass: count `values`."""
        if self.low < self.high:
            finite = values[np.isfinite(values)].astype(np.float64)
            self.histogram += np.histogram(finite, _BINS, (self.low, self.high))[0]

    def encoding(self, qmin: int = 0, qmax: int = 255, signed: bool = False) -> Encoding:
        """The per-tensor affine encoding; scale 1 for values that were never seen or are all 0."""
        low, high = _best_range(self, qmax - qmin) if self.low < self.high else (self.low, self.high)
        below, above = np.float32(min(low, 0.0)), np.float32(max(high, 0.0))
        if not below < above:
            return Encoding.make(1.0, qmin if not signed else 0, qmin=qmin, qmax=qmax, signed=signed)
        scale = max((above - below) / np.float32(qmax - qmin), np.float32(_EPS))
        zero = int(np.clip(qmin - np.rint(below / scale), qmin, qmax))
        return Encoding.make(float(scale), zero, qmin=qmin, qmax=qmax, signed=signed)


def _best_range(seen: Range, steps: int) -> tuple[float, float]:
    """The ends with the least expected square error when numbers between them are rounded to `steps` steps."""
    edges = np.linspace(seen.low, seen.high, _BINS + 1)
    centres, counts = (edges[:-1] + edges[1:]) / 2, seen.histogram
    candidates = edges[::_STRIDE]
    low, high = seen.low, seen.high
    for _ in range(_ROUNDS):
        highs = candidates[candidates > max(low, 0.0)]
        if highs.size:
            high = highs[int(np.argmin(_errors(centres, counts, np.full_like(highs, low), highs, steps)))]
        lows = candidates[candidates < min(high, 0.0)]
        if lows.size:
            low = lows[int(np.argmin(_errors(centres, counts, lows, np.full_like(lows, high), steps)))]
    return float(low), float(high)


def _errors(centres: FloatArray, counts: FloatArray, lows: FloatArray, highs: FloatArray, steps: int) -> FloatArray:
    """The square error of each candidate range: step^2 / 12 a number inside, the distance to the range outside."""
    step = (np.maximum(highs, 0.0) - np.minimum(lows, 0.0)) / steps
    found = np.zeros(highs.shape)
    for index, (low, high) in enumerate(zip(lows, highs, strict=True)):
        outside = np.maximum(low - centres, 0.0) + np.maximum(centres - high, 0.0)
        inside = outside == 0
        found[index] = counts[inside].sum() * step[index] ** 2 / 12 + float((counts * outside**2).sum())
    return found


def weight_encoding(weight: Array, axis: int) -> Encoding:
    """Symmetric int8 codes -127 to 127, a scale per channel along `axis`."""
    rows = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    largest = np.abs(rows).max(axis=1, initial=0.0).astype(np.float32)
    scales = np.maximum(largest / np.float32(127), np.float32(_WEIGHT_EPS))
    return Encoding.make(scales.astype(np.float64), qmin=-127, qmax=127, axis=axis)
