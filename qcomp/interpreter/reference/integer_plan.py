# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything an integer contraction needs to know before it sees an activation.

Formula (numerics profile `float`); xq input codes, wq weight codes, sx sw sy sr scales, zx zy zr zero points:

    acc = sum((xq - zx) * wq)                                     exact, proved to fit int32
    t   = float32((acc << k) + bias_k[c]) * multiplier[c]         bias_k = round_half_even(bias * 2**k / (sx * sw[c]))
    t   = t + float32(rq - zr) * residual_multiplier              with a residual
    q   = clamp(round_half_even(t) + zy, act_min, act_max)

    multiplier = float32(sx * sw[c] / (2**k * sy))                computed in float64, rounded once; sy = 1 for a
    residual_multiplier = float32(sr / sy)                        float result, which is t itself under the activation

Products and sums of t are each rounded to float32: no fused multiply-add. k is the largest of 0..12 for which
``(sum(|wq|) * max|xq - zx| << k) + |bias_k| < 2**31`` holds in every channel; 0 without a bias, where k changes no bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.quantize import code_of

Int32Array = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
Int64Array = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Float32Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
Float64Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

MAX_SHIFT = 12
"""With 8, rounding the biases of MobileNetV2's short depthwise sums flips 6 codes in a million and costs up to 4 dB
end to end against the float graph; with 12 it is 1 in a million, no more than float accumulation itself does."""
LIMIT = 2**31


@dataclass(frozen=True, eq=False)
class IntegerPlan:
    """Constants of one integer contraction. C is the number of output channels; per-tensor weights repeat theirs.

    bound: int64 [C], the largest |acc| possible; shift: k; bias: int32 [C], bias_k; multiplier: float32 [C];
    output, residual: encodings, or None for a float result, no residual or a float one (float results only);
    act_min, act_max: the codes that the result is clamped to (0, 0 for a float result);
    activation: real bounds, used for a float result.
    """

    input: Encoding
    output: Encoding | None
    residual: Encoding | None
    bound: Int64Array
    shift: int
    bias: Int32Array
    multiplier: Float32Array
    residual_multiplier: np.float32 | None
    act_min: int
    act_max: int
    activation: tuple[float, float] | None


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
    rows = np.abs(weight.astype(np.int64)).reshape(weight.shape[0], -1)
    bound: Int64Array = rows.sum(axis=1) * largest_distance(input_encoding)
    unit = np.broadcast_to(input_encoding.scale * weight_encoding.scales, bound.shape)
    if bias_encoding is not None and bias is not None:
        shift, held = _coded_bias(bound, unit, bias, bias_encoding)
    else:
        shift, held = _float_bias(bound, unit, bias)
    return _plan(input_encoding, output_encoding, residual_encoding, bound, shift, held, unit, activation)


def matmul_plan(
    inner: int, lhs_encoding: Encoding, rhs_encoding: Encoding, output_encoding: Encoding | None
) -> IntegerPlan:
    """The plan of [..., M, inner] times [..., inner, N] whose right side is known by its encoding only.

    rhs_encoding: per tensor, then C = 1, or per channel along N. Raises QcompError "not-integer" as `integer_plan`.
    """
    _require(not rhs_encoding.blocks, "right side is quantized in blocks")
    _require(not rhs_encoding.zero_points.any(), "right side has a zero point that is not 0")
    _require_per_tensor(lhs_encoding, output_encoding, None)
    unit = np.atleast_1d(lhs_encoding.scale * rhs_encoding.scales)
    bound = np.full(
        unit.shape, inner * largest_distance(lhs_encoding) * max(rhs_encoding.qmax, -rhs_encoding.qmin), np.int64
    )
    shift, held = _float_bias(bound, unit, None)
    return _plan(lhs_encoding, output_encoding, None, bound, shift, held, unit, None)


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
    source: Encoding, output: Encoding | None, residual: Encoding | None, bound: Int64Array, shift: int,
    bias: Int32Array, unit: Float64Array, activation: tuple[float, float] | None,
) -> IntegerPlan:  # fmt: skip
    scale = 1.0 if output is None else output.scale
    low, high = (0, 0) if output is None else activation_codes(output, activation)
    return IntegerPlan(
        source, output, residual, bound, shift, bias, _factor(unit / (2**shift * scale)),
        None if residual is None else np.float32(_factor(np.float64(residual.scale / scale))), low, high, activation,
    )  # fmt: skip


def _float_bias(bound: Int64Array, unit: Float64Array, bias: Array | None) -> tuple[int, Int32Array]:
    real = np.zeros(bound.shape) if bias is None else bias.astype(np.float64)
    _require(bool(np.isfinite(real).all()), "bias is not finite")
    for shift in range(MAX_SHIFT if real.any() else 0, -1, -1):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            held = np.rint(real * 2.0**shift / unit)
        if (bound * 2**shift + np.abs(held) < LIMIT).all():
            return shift, held.astype(np.int32)
    _require(bool((bound < LIMIT).all()), f"int32 accumulator overflows: |acc| can reach {int(bound.max())}")
    worst = int(np.argmax(bound + np.abs(real / unit)))
    raise _refusal(f"bias {real[worst]:g} of channel {worst} does not fit int32 at scale {unit[worst]:g}")


def _coded_bias(bound: Int64Array, unit: Float64Array, codes: Array, encoding: Encoding) -> tuple[int, Int32Array]:
    scales = np.broadcast_to(encoding.scales, bound.shape)
    _require(not encoding.zero_points.any(), "bias has a zero point that is not 0")
    if not (np.abs(scales - unit) <= 2.0**-22 * unit).all():
        return _float_bias(bound, unit, codes.astype(np.float64) * scales)
    held = codes.astype(np.int64)
    _require(bool((bound + np.abs(held) < LIMIT).all()), "int32 accumulator overflows with the quantized bias")
    return 0, held.astype(np.int32)


def _factor(value: Float64Array | np.float64) -> Float32Array:
    factor = np.asarray(value).astype(np.float32)
    normal = np.isfinite(factor) & (factor >= np.finfo(np.float32).tiny)
    _require(bool(normal.all()), "ratio of the scales is outside float32's normal range")
    return factor


def _require_per_tensor(source: Encoding, output: Encoding | None, residual: Encoding | None) -> None:
    for role, encoding in (("input", source), ("result", output), ("residual", residual)):
        _require(encoding is None or encoding.per_tensor, f"{role} is not quantized per tensor")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _refusal(reason)


def _refusal(reason: str) -> QcompError:
    return QcompError(reason, code="not-integer", hint="leave the op between dequantize and quantize")
