# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization by parameters that are computed: scales, zero points, codes, reals, and linear on such codes.

The steps are those of torch's ``choose_qparams``, ``choose_qparams_per_token`` and torchao's affine ops, each rounded
to float32. torch raises an error for NaN among the values; here the scale is NaN then, and so are all results.
"""

from __future__ import annotations

import numpy as np

from qcomp.interpreter.reference.array import Array

Int32Array = np.ndarray[tuple[int, ...], np.dtype[np.int32]]


def choose_scale(low: Array, high: Array, divisor: float, floor: float, symmetric: bool) -> Array:
    """The scale that maps low to high, with 0 in between, onto `divisor` steps (half of them when symmetric)."""
    below, above = _with_zero(low, high)
    span = np.maximum(-below, above) if symmetric else above - below
    return np.maximum(span / np.float32(divisor), np.float32(floor))


def choose_zero_point(low: Array, high: Array, scale: Array, qmin: int, qmax: int, nearest: bool) -> Int32Array:
    """The code of 0; see `quant.choose_zero_point`."""
    below, above = _with_zero(low, high)
    first, last = np.float32(qmin), np.float32(qmax)
    if not nearest:
        return _whole(np.clip(first - np.rint(below / scale), first, last))
    from_low, from_high = below / scale, above / scale
    nearer = (first + from_low) + (last + from_high) > 0
    return _whole(np.rint(np.clip(np.where(nearer, first - from_low, last - from_high), first, last)))


def _with_zero(low: Array, high: Array) -> tuple[Array, Array]:
    zero = np.float32(0)
    return np.where(low > zero, zero, low), np.where(high < zero, zero, high)


def _whole(values: Array) -> Int32Array:
    """Integral floats as integers; NaN counts as 0."""
    return np.where(np.isnan(values), np.float32(0), values).astype(np.int32)


def quantize_dynamic(
    values: Array, scale: Array, zero_point: Array, qmin: int, qmax: int, dtype: np.dtype[np.generic], wide: bool,
    nan: int,
) -> Array:  # fmt: skip
    """Codes of float32 `values`; `wide` is the per-token form in float64; `nan` is the code of NaN."""
    if wide:
        real = np.rint(values.astype(np.float64) * (1.0 / scale.astype(np.float64)) + zero_point)
    else:
        real = np.rint(values * (np.float32(1.0) / scale)) + zero_point.astype(np.float32)
    real = np.where(np.isnan(real), real.dtype.type(nan), real)
    if max(abs(qmin), abs(qmax)) > 2**24:
        real = real.astype(np.float64)
    return np.trunc(np.clip(real, qmin, qmax)).astype(dtype)


def dequantize_dynamic(codes: Array, scale: Array, zero_point: Array) -> Array:
    """(float(q) - float(zero_point)) * scale."""
    return (codes.astype(np.float32) - zero_point.astype(np.float32)) * scale


def dynamic_linear(
    codes: Array, scale: Array, zero_point: Array, weight: Array, weight_scales: Array, bias: Array | None
) -> Array:
    """Codes [..., K] times weight codes [N, K], transposed; see `nn.dynamic_linear`. weight_scales: [N] or 0-d."""
    centred = codes.astype(np.float64) - zero_point
    total = np.matmul(centred, weight.astype(np.float64).T).astype(np.float32)
    factor = scale.astype(np.float32) * weight_scales.astype(np.float32)
    real = total * factor
    return real if bias is None else real + bias
