# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools and reductions. Per-tensor codes are averaged exactly; the largest is found among the codes themselves."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.dialects.nn.base import ints
from qcomp.dialects.quant import Encoding, encoding_of
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import pooling, reduction
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.pooling import Window

Averaging = nn.AvgPoolOp | nn.AdaptiveAvgPoolOp | nn.MeanOp | nn.SumOp


def window_of(op: nn.PoolOp) -> Window:
    """The window that a pool slides."""
    sizes = (ints(op.kernel_size), ints(op.stride), ints(op.padding), op.dilation_sizes)
    return Window(*sizes, bool(op.ceil_mode.value.data))


def averaged_encodings(op: Averaging) -> tuple[Encoding, Encoding | None] | None:
    """Encodings of operand and result when the op has an integer form: quantized per tensor; None otherwise."""
    source, output = encoding_of(op.input.type), encoding_of(op.result.type)
    if source is None or not source.per_tensor or (output is not None and not output.per_tensor):
        return None
    return source, output


def same_codes(op: nn.MaxPoolOp | nn.AdaptiveMaxPoolOp | nn.AmaxOp) -> Encoding | None:
    """The one per-tensor encoding of operand and result, or None."""
    source, output = encoding_of(op.input.type), encoding_of(op.result.type)
    return source if source is not None and source.per_tensor and source == output else None


def _coded_max_pool(op: nn.MaxPoolOp, arrays: Arrays) -> Array | None:
    encoding = same_codes(op)
    return None if encoding is None else pooling.max_pool(arrays[0], window_of(op), encoding.qmin)


@meaning(*nn.MAX_POOLS, coded=_coded_max_pool)
def _max_pool(op: nn.MaxPoolOp, arrays: Arrays) -> Array:
    return pooling.max_pool(arrays[0], window_of(op))


@meaning(*nn.MAX_POOL_INDICES)
def _max_pool_indices(op: nn.MaxPoolIndicesOp, arrays: Arrays) -> Array:
    return pooling.max_pool_indices(arrays[0], window_of(op))


def divisor_of(op: nn.AvgPoolOp) -> tuple[bool, int | None]:
    """(count_include_pad, divisor_override)."""
    override = op.divisor_override
    return bool(op.count_include_pad.value.data), None if override is None else override.value.data


@meaning(*nn.AVG_POOLS)
def _avg_pool(op: nn.AvgPoolOp, arrays: Arrays) -> Array:
    return pooling.avg_pool(arrays[0], window_of(op), *divisor_of(op))


@meaning(*nn.ADAPTIVE_AVG_POOLS)
def _adaptive(op: nn.AdaptiveAvgPoolOp, arrays: Arrays) -> Array:
    return pooling.adaptive_avg_pool(arrays[0], ints(op.output_size))


def _coded_adaptive_max(op: nn.AdaptiveMaxPoolOp, arrays: Arrays) -> Array | None:
    return None if same_codes(op) is None else pooling.adaptive_max_pool(arrays[0], ints(op.output_size))


@meaning(*nn.ADAPTIVE_MAX_POOLS, coded=_coded_adaptive_max)
def _adaptive_max(op: nn.AdaptiveMaxPoolOp, arrays: Arrays) -> Array:
    return pooling.adaptive_max_pool(arrays[0], ints(op.output_size))


def _coded_sum(op: nn.MeanOp | nn.SumOp, arrays: Arrays) -> Array | None:
    encodings = averaged_encodings(op)
    if encodings is None:
        return None
    sums = reduction.sum_codes(arrays[0], op.axes, _keepdim(op), encodings[0])
    count = reduction.element_count(arrays[0].shape, op.axes) if isinstance(op, nn.MeanOp) else 1
    return reduction.average_codes(sums, count, *encodings)


@meaning(nn.MeanOp, coded=_coded_sum)
def _mean(op: nn.MeanOp, arrays: Arrays) -> Array:
    return reduction.mean(arrays[0], op.axes, _keepdim(op), op.shifted is not None)


@meaning(nn.SumOp, coded=_coded_sum)
def _sum(op: nn.SumOp, arrays: Arrays) -> Array:
    return reduction.total(arrays[0], op.axes, _keepdim(op))


def _coded_amax(op: nn.AmaxOp, arrays: Arrays) -> Array | None:
    return None if same_codes(op) is None else reduction.largest(arrays[0], op.axes, _keepdim(op))


@meaning(nn.AmaxOp, coded=_coded_amax)
def _amax(op: nn.AmaxOp, arrays: Arrays) -> Array:
    return reduction.largest(arrays[0], op.axes, _keepdim(op))


def _keepdim(op: nn.ReduceOp) -> bool:
    return bool(op.keepdim.value.data)
