# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations and softmax: every step in float64, sums in row-major order, one rounding at the end."""

from __future__ import annotations

import numpy as np

from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.reduction import ordered_sum


def batch_norm(x: Array, mean: Array, var: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """``(x - mean) * (weight / sqrt(var + eps)) + bias`` per channel of axis 1."""
    view = (1, -1, *(1 for _ in x.shape[2:]))
    scale = 1.0 / np.sqrt(var.astype(np.float64) + eps)
    if weight is not None:
        scale = weight.astype(np.float64) * scale
    result = (x.astype(np.float64) - mean.astype(np.float64).reshape(view)) * scale.reshape(view)
    if bias is not None:
        result = result + bias.astype(np.float64).reshape(view)
    return result.astype(x.dtype)


def layer_norm(x: Array, axes: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """``(x - mean) * (1 / sqrt(var + eps)) * weight + bias`` over the last `axes` dimensions, biased variance."""
    last = tuple(range(x.ndim - axes, x.ndim))
    count = int(np.prod(x.shape[x.ndim - axes :], dtype=np.int64))
    centred = x.astype(np.float64)
    centred = centred - np.expand_dims(ordered_sum(centred, last) / count, last)
    var = np.expand_dims(ordered_sum(centred * centred, last) / count, last)
    result = centred * (1.0 / np.sqrt(var + eps))
    if weight is not None:
        result = result * weight.astype(np.float64)
    if bias is not None:
        result = result + bias.astype(np.float64)
    return result.astype(x.dtype)


def softmax(x: Array, axis: int) -> Array:
    """``exp(x - max) / sum(exp(x - max))`` along `axis`; all -inf gives NaN."""
    if x.shape[axis] == 0:
        return x.copy()
    wide = x.astype(np.float64)
    power = np.exp(wide - wide.max(axis=axis, keepdims=True))
    return (power / np.expand_dims(ordered_sum(power, (axis % x.ndim,)), axis)).astype(x.dtype)
