# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations and softmax: every step rounded in the operand's own type, sums in the order of `reduction`."""

from __future__ import annotations

import numpy as np

from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.reduction import mean, ordered_sum
from qcomp.interpreter.reference.transcendental import exp


def batch_norm_factor(var: Array, weight: Array | None, eps: float, dtype: np.dtype[np.generic]) -> Array:
    """weight / sqrt(var + eps) per channel, computed in float64 and rounded once."""
    with np.errstate(all="ignore"):
        scale = 1.0 / np.sqrt(var.astype(np.float64) + eps)
        return (scale if weight is None else weight.astype(np.float64) * scale).astype(dtype)


def batch_norm(x: Array, centre: Array, var: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """``(x - mean) * factor + bias`` per channel of axis 1, the factor by `batch_norm_factor`."""
    view = (1, -1, *(1 for _ in x.shape[2:]))
    result = (x - centre.reshape(view)) * batch_norm_factor(var, weight, eps, x.dtype).reshape(view)
    return result if bias is None else result + bias.reshape(view)


def layer_norm(x: Array, axes: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """``(x - mean) * (1 / sqrt(var + eps)) * weight + bias`` over the last `axes` dimensions, biased variance.

    The mean is `reduction.mean` with a shift: equal elements give exactly the bias.
    """
    lead = x.shape[: x.ndim - axes]
    rows = x.reshape(*lead, int(np.prod(x.shape[x.ndim - axes :], dtype=np.int64)))
    count, last = x.dtype.type(max(rows.shape[-1], 1)), (len(lead),)
    apart = rows - mean(rows, last, True, shifted=True)
    var = ordered_sum(apart * apart, last) / count
    result = apart * (x.dtype.type(1) / np.sqrt(var + x.dtype.type(eps)))[..., None]
    if weight is not None:
        result = result * weight.reshape(-1)
    if bias is not None:
        result = result + bias.reshape(-1)
    return result.reshape(x.shape)


def softmax(x: Array, axis: int) -> Array:
    """``exp(x - max) * (1 / sum(exp(x - max)))`` along `axis`; all -inf gives NaN."""
    if x.shape[axis] == 0:
        return x.copy()
    power = exp(x - x.max(axis=axis, keepdims=True))
    total = np.expand_dims(ordered_sum(power, (axis % x.ndim,)), axis)
    return power * (x.dtype.type(1) / total)
