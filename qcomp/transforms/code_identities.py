# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts about single encodings, shown by trying every code."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import Float32Type

from qcomp.dialects.quant import Encoding, Recipe

MAX_WIDTH = 16
"""The widest codes that float32 arithmetic rounds and shifts exactly."""
MODERATE = 2.0**60
"""Sums, differences and products of real numbers below this are finite in float32."""


def largest_real(encoding: Encoding) -> float:
    """The largest magnitude that codes of `encoding` stand for."""
    reach = np.maximum(encoding.qmax - encoding.zero_points, encoding.zero_points - encoding.qmin)
    return float((reach * encoding.scales).max())


@lru_cache(maxsize=4096)
def is_identity_on_codes(encoding: Encoding, recipe: Recipe | None) -> bool:
    """Whether quantize(dequantize(q)) is q for every code: shown by trying them all."""
    from qcomp.interpreter.reference.quantize import dequantize, quantize

    if encoding.width > MAX_WIDTH or encoding.blocks or not isinstance(encoding.expressed, Float32Type):
        return False
    codes = np.arange(encoding.qmin, encoding.qmax + 1).astype(encoding.dtype)
    if encoding.axis is not None:
        codes = np.broadcast_to(codes, (encoding.scales.size, codes.size))
        encoding = encoding.with_axis(0)
    return bool((quantize(dequantize(codes, encoding), encoding, recipe) == codes).all())


def is_shift_of_codes(source: Encoding, target: Encoding, recipe: Recipe | None) -> bool:
    """Whether requantizing adds the difference of the zero points to every code, by trying them all."""
    from qcomp.interpreter.reference.quantize import requantize

    if not (source.per_tensor and target.per_tensor) or max(source.width, target.width) > MAX_WIDTH:
        return False
    codes = np.arange(source.qmin, source.qmax + 1).astype(source.dtype)
    expected = codes.astype(np.int64) + (target.zero_point - source.zero_point)
    return bool((requantize(codes, source, target, recipe) == expected).all())
