# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolution, linear and matmul: in float, and on codes by an `IntegerPlan` (which states the formula).

Float contractions accumulate in float64, bias included, and round once; integers wrap. A residual is added after that
rounding and the activation comes last, so that an op with a fused residual or activation equals the ops it was made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.convolution import convolve, transpose_convolve
from qcomp.interpreter.reference.elementwise import clamp
from qcomp.interpreter.reference.integer_plan import IntegerPlan

Bounds = tuple[float, float]


def convolution(
    value: Array, weight: Array, bias: Array | None = None, residual: Array | None = None,
    activation: Bounds | None = None, *, stride: Sequence[int], padding: Sequence[tuple[int, int]],
    dilation: Sequence[int], groups: int = 1,
) -> Array:  # fmt: skip
    """[N, C, *spatial] with [C_out, C / groups, *kernel]; padding is (begin, end) per dimension."""
    total = convolve(
        _wide(value), _wide(weight), stride=stride, padding=padding, dilation=dilation, groups=groups
    )  # fmt: skip
    return _finish_float(total, value.dtype, bias, 1, residual, activation)


def transposed_convolution(
    value: Array, weight: Array, bias: Array | None = None, residual: Array | None = None,
    activation: Bounds | None = None, *, stride: Sequence[int], padding: Sequence[int],
    output_padding: Sequence[int], dilation: Sequence[int], groups: int = 1,
) -> Array:  # fmt: skip
    """[N, C, *spatial] with [C_out, C / groups, *kernel], transposed."""
    total = transpose_convolve(
        _wide(value), _wide(weight), stride=stride, padding=padding,
        output_padding=output_padding, dilation=dilation, groups=groups,
    )  # fmt: skip
    return _finish_float(total, value.dtype, bias, 1, residual, activation)


def linear(
    value: Array, weight: Array, bias: Array | None = None, residual: Array | None = None,
    activation: Bounds | None = None,
) -> Array:  # fmt: skip
    """[..., K] times [N, K] transposed."""
    total = np.matmul(_wide(value), _wide(weight).T)
    return _finish_float(total, value.dtype, bias, -1, residual, activation)


def matmul(lhs: Array, rhs: Array) -> Array:
    """[..., M, K] times [..., K, N]. Integers wrap."""
    if lhs.dtype.kind != "f":
        return np.matmul(lhs, rhs)
    return np.matmul(lhs.astype(np.float64), rhs.astype(np.float64)).astype(lhs.dtype)


def _wide(array: Array) -> Array:
    """What sums of products are added up in: float64, but integers in their own type, where they wrap."""
    return array if array.dtype.kind in "iu" else array.astype(np.float64)


def integer_convolution(
    codes: Array, weight: Array, plan: IntegerPlan, residual: Array | None = None, *, stride: Sequence[int],
    padding: Sequence[tuple[int, int]], dilation: Sequence[int], groups: int = 1,
) -> Array:  # fmt: skip
    """Convolution of input codes with weight codes; the border is the input's zero point. Codes, or float32."""
    value, factors = _exact(codes, plan), weight.astype(_exact_dtype(plan))
    total = convolve(value, factors, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return finish(total, plan, 1, residual)


def integer_transposed_convolution(
    codes: Array, weight: Array, plan: IntegerPlan, residual: Array | None = None, *, stride: Sequence[int],
    padding: Sequence[int], output_padding: Sequence[int], dilation: Sequence[int], groups: int = 1,
) -> Array:  # fmt: skip
    """Transposed convolution of input codes with weight codes. Codes, or float32."""
    total = transpose_convolve(
        _exact(codes, plan), weight.astype(_exact_dtype(plan)), stride=stride, padding=padding,
        output_padding=output_padding, dilation=dilation, groups=groups,
    )  # fmt: skip
    return finish(total, plan, 1, residual)


def integer_linear(codes: Array, weight: Array, plan: IntegerPlan, residual: Array | None = None) -> Array:
    """Linear of input codes [..., K] with weight codes [N, K]. Codes, or float32 without an output encoding."""
    total = np.matmul(_exact(codes, plan), weight.astype(_exact_dtype(plan)).T)
    return finish(total, plan, -1, residual)


def integer_matmul(lhs: Array, rhs: Array, plan: IntegerPlan) -> Array:
    """Matmul of codes. Codes, or float32 without an output encoding."""
    right = np.subtract(rhs, np.float64(plan.rhs_zero), dtype=_exact_dtype(plan))
    return finish(np.matmul(_exact(lhs, plan), right), plan, -1)


def finish(total: Array, plan: IntegerPlan, channel_axis: int, residual: Array | None = None) -> Array:
    """From sums of products to the result: bias, residual, activation, quantize. See `integer_plan`.

    total: integers in any dtype that holds them exactly; residual: codes when `plan.residual` is set, else float32.
    """
    view = [1] * total.ndim
    view[channel_axis] = -1
    if plan.start.any():
        total = total + plan.start.astype(np.float64).reshape(view)
    real = total.astype(np.float32)
    real *= plan.multiplier.reshape(view)
    if plan.bias is not None:
        real += plan.bias.reshape(view)
    if residual is not None:
        real += _residual(residual, plan)
    if plan.output is None or plan.inverse is None:
        return real if plan.activation is None else clamp(real, *plan.activation)
    real *= plan.inverse
    zero = plan.output.zero_point
    if plan.output.width > 16:
        real = real.astype(np.float64)
    np.rint(real, out=real)
    np.clip(real, plan.act_min - zero, plan.act_max - zero, out=real)
    real += zero
    return real.astype(plan.output.dtype)


def _residual(residual: Array, plan: IntegerPlan) -> Array:
    if plan.residual is None or plan.residual_multiplier is None:
        if plan.output is not None:
            raise QcompError("a quantized result takes a quantized residual", code="not-integer")
        return residual
    return (residual.astype(np.int32) - plan.residual.zero_point).astype(np.float32) * plan.residual_multiplier


def _exact_dtype(plan: IntegerPlan) -> type[np.float32] | type[np.float64]:
    """A float type in which every partial sum is an exact integer."""
    return np.float32 if int(plan.bound.max(initial=0)) <= 2**24 else np.float64


def _exact(codes: Array, plan: IntegerPlan) -> Array:
    return np.subtract(codes, np.float64(plan.input.zero_point), dtype=_exact_dtype(plan))


def _finish_float(
    total: Array, dtype: np.dtype[np.generic], bias: Array | None, channel_axis: int,
    residual: Array | None, activation: Bounds | None,
) -> Array:  # fmt: skip
    if bias is not None:
        view = [1] * total.ndim
        view[channel_axis] = -1
        total = total + _wide(bias).reshape(view)
    result = total.astype(dtype)
    if residual is not None:
        result = result + residual
    return result if activation is None else clamp(result, *activation)
