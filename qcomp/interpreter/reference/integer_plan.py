# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything an integer contraction needs to know before it sees an activation.

Formula (numerics profile `float`); xq input codes, wq weight codes, sx sw sy sr scales, zx zy zr zero points:

    acc  = sum((xq - zx) * wq) + start[c]                        exact, proved to fit int32
    real = float32(acc) * multiplier[c] + bias[c]                without a bias nothing is added
    real = real + float32(rq - zr) * residual_multiplier         with a residual
    q    = clamp(round_half_even(real * inverse) + zy, act_min, act_max)

    multiplier = float32(sx * sw[c])                             computed in float64, rounded once
    residual_multiplier = float32(sr)
    inverse = 1 / sy by torch's recipe; a float result is `real` under the activation

These are the steps of torch's graph, dequantize, contraction, add, quantize, each product and sum rounded to float32
(no fused multiply-add): only the sum of the contraction itself is exact here and rounded there. Folding the scales
into one factor and the bias into the accumulator costs as many instructions and rounds elsewhere than torch does:
MobileNetV1 lost 6 dB end to end against the float graph that way, and loses 0.5 dB this way.

start is 0 but for a bias that is quantized at sx * sw[c]: its codes are added as they are, if int32 holds the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.quantize import code_of, dequantize, reciprocal

Int32Array = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
Int64Array = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
_WIDENED = 1 << 16
"""Codes that are summed as int64 at once."""
Float32Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
Float64Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LIMIT = 2**31


@dataclass(frozen=True, eq=False)
class IntegerPlan:
    """Constants of one integer contraction. C is the number of output channels; per-tensor weights repeat theirs.

    bound: int64 [C], the largest |acc| possible; start: int32 [C]; bias: float32 [C], or None where all are 0;
    multiplier: float32 [C]; inverse: None for a float result;
    output, residual: encodings, or None for a float result, no residual or a float one (float results only);
    act_min, act_max: the codes that the result is clamped to (0, 0 for a float result);
    activation: real bounds, used for a float result. rhs_zero: the zero point of a matmul's right side.
    """

    input: Encoding
    output: Encoding | None
    residual: Encoding | None
    bound: Int64Array
    start: Int32Array
    bias: Float32Array | None
    multiplier: Float32Array
    inverse: np.float32 | None
    residual_multiplier: np.float32 | None
    act_min: int
    act_max: int
    activation: tuple[float, float] | None
    rhs_zero: int = 0


def integer_plan(
    weight: Array,
    input_encoding: Encoding,
    weight_encoding: Encoding,
    output_encoding: Encoding | None,
    *,
    bias: Array | None = None,
    bias_encoding: Encoding | None = None,
    residual_encoding: Encoding | None = None,
    activation: tuple[float, float] | None = None,
) -> IntegerPlan:
    """The plan of a convolution or linear whose weight codes are `weight` [C, ...].

    bias: float [C], or int32 codes [C] when `bias_encoding` is given. activation: (min, max) over the reals.
    Raises QcompError with code "not-integer" and the reason when the op has no integer form.
    """
    _require(weight_encoding.axis in (None, 0) and not weight_encoding.blocks, "weight is not quantized per channel")
    _require(not weight_encoding.zero_points.any(), "weight has a zero point that is not 0")
    _require_per_tensor(input_encoding, output_encoding, residual_encoding)
    bound = channel_sums(weight, absolute=True) * largest_distance(input_encoding)
    unit = np.broadcast_to(input_encoding.scale * weight_encoding.scales, bound.shape)
    start, real = _bias(bound, unit, bias, bias_encoding)
    bound = bound + np.abs(start)
    return _plan(input_encoding, output_encoding, residual_encoding, bound, start, real, unit, activation)


def channel_sums(codes: Array, absolute: bool = False) -> Int64Array:
    """Return the sums of `codes` [C, ...], or of their absolute values, for each channel.

    A few channels are widened at a time: all at once take eight bytes for each code.
    """
    rows = codes.reshape(codes.shape[0], -1)
    found = np.zeros(len(rows), np.int64)
    band = max(1, _WIDENED // max(rows.shape[1], 1))
    for begin in range(0, len(rows), band):
        wide = rows[begin : begin + band].astype(np.int64)
        found[begin : begin + band] = (np.abs(wide, out=wide) if absolute else wide).sum(axis=1)
    return found


def matmul_plan(
    inner: int, lhs_encoding: Encoding, rhs_encoding: Encoding, output_encoding: Encoding | None
) -> IntegerPlan:
    """The plan of [..., M, inner] times [..., inner, N] whose right side is known by its encoding only.

    rhs_encoding: per tensor, then C = 1 and acc = sum((lq - zl) * (rq - zr)), or per channel along N with zero points
    0. Raises QcompError "not-integer" as `integer_plan`.
    """
    _require(not rhs_encoding.blocks, "right side is quantized in blocks")
    plain = rhs_encoding.per_tensor or not rhs_encoding.zero_points.any()
    _require(plain, "right side is quantized per channel with a zero point that is not 0")
    _require_per_tensor(lhs_encoding, output_encoding, None)
    unit = np.atleast_1d(lhs_encoding.scale * rhs_encoding.scales)
    zero = rhs_encoding.zero_point if rhs_encoding.per_tensor else 0
    reach = max(rhs_encoding.qmax - zero, zero - rhs_encoding.qmin)
    bound = np.full(unit.shape, inner * largest_distance(lhs_encoding) * reach, np.int64)
    plan = _plan(lhs_encoding, output_encoding, None, bound, np.zeros(unit.shape, np.int64), None, unit, None)
    return replace(plan, rhs_zero=zero)


def activation_codes(encoding: Encoding, activation: tuple[float, float] | None) -> tuple[int, int]:
    """The codes that a quantized result is clamped to: its range, tightened by the activation's bounds."""
    if activation is None:
        return encoding.qmin, encoding.qmax
    low, high = (code_of(bound, encoding) for bound in activation)
    return min(low, high), high


def largest_distance(encoding: Encoding) -> int:
    """The largest |code - zero_point| of a per-tensor encoding."""
    return max(encoding.qmax - encoding.zero_point, encoding.zero_point - encoding.qmin)


def _plan(
    source: Encoding, output: Encoding | None, residual: Encoding | None, bound: Int64Array, start: Int64Array,
    bias: Float32Array | None, unit: Float64Array, activation: tuple[float, float] | None,
) -> IntegerPlan:  # fmt: skip
    _require(bool((bound < LIMIT).all()), f"int32 accumulator overflows: |acc| can reach {int(bound.max(initial=0))}")
    low, high = (0, 0) if output is None else activation_codes(output, activation)
    return IntegerPlan(
        source, output, residual, bound, start.astype(np.int32), bias, _factor(unit),
        None if output is None else np.float32(_factor(reciprocal(output).astype(np.float64).reshape(()))),
        None if residual is None else np.float32(_factor(np.float64(residual.scale))), low, high, activation,
    )  # fmt: skip


def _bias(
    bound: Int64Array, unit: Float64Array, bias: Array | None, encoding: Encoding | None
) -> tuple[Int64Array, Float32Array | None]:
    """What is added to the accumulator, and what to the real number that it stands for."""
    start: Int64Array = np.zeros(unit.shape, np.int64)
    if bias is None:
        return start, None
    if encoding is not None:
        scales = np.broadcast_to(encoding.scales, unit.shape)
        _require(not encoding.zero_points.any(), "bias has a zero point that is not 0")
        codes = bias.astype(np.int64)
        if (np.abs(scales - unit) <= 2.0**-22 * unit).all() and (bound + np.abs(codes) < LIMIT).all():
            return codes, None
        bias = dequantize(bias, encoding)
    real = bias.astype(np.float32)
    _require(bool(np.isfinite(real).all()), "bias is not finite")
    return start, real if real.any() else None


def _factor(value: Float64Array | np.float64) -> Float32Array:
    factor = np.asarray(value).astype(np.float32)
    normal = np.isfinite(factor) & (factor >= np.finfo(np.float32).tiny)
    _require(bool(normal.all()), "a product or reciprocal of the scales is outside float32's normal range")
    return factor


def _require_per_tensor(source: Encoding, output: Encoding | None, residual: Encoding | None) -> None:
    for role, encoding in (("input", source), ("result", output), ("residual", residual)):
        _require(encoding is None or encoding.per_tensor, f"{role} is not quantized per tensor")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _refusal(reason)


def _refusal(reason: str) -> QcompError:
    return QcompError(reason, code="not-integer", hint="leave the op between dequantize and quantize")
