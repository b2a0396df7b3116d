# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.arithmetic import scaled_and_shifted
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op


def _batch_norm(b: Builder, node: Node) -> nn.BatchNormOp:
    if node.argument("running_mean") is None or node.argument("running_var") is None:
        raise QcompError("batch_norm without running statistics", code="unsupported-op")
    if len(shape_of(b.tensor(node, "input"))) < 2:
        raise QcompError("batch_norm of a tensor without channels", code="unsupported-op")
    return nn.BatchNormOp(
        b.tensor(node, "input"),
        b.tensor(node, "running_mean"),
        b.tensor(node, "running_var"),
        b.optional(node, "weight"),
        b.optional(node, "bias"),
        b.real(node, "eps", 1e-5),
    )


@op("batch_norm.default")
def batch_norm(b: Builder, node: Node) -> Result:
    """With running statistics, or those of the batch where there are none; in training mode it is refused."""
    if node.argument("running_mean") is None and node.argument("running_var") is None:
        return _of_batch(b, node)[0]
    if b.flag(node, "training"):
        raise QcompError("batch_norm in training mode", code="training", hint="call model.eval() before exporting")
    return b.add(_batch_norm(b, node))


@op(
    "_native_batch_norm_legit_no_training.default", "native_batch_norm.default", "_native_batch_norm_legit.default",
    "_native_batch_norm_legit_functional.default", "_batch_norm_no_update.default", "cudnn_batch_norm.default",
)  # fmt: skip
def native_batch_norm(b: Builder, node: Node) -> Result:
    """The core ATen forms; the saved statistics of the batch are not offered."""
    if b.flag(node, "training"):
        raise QcompError("batch_norm in training mode", code="training", hint="call model.eval() before exporting")
    # What the batch would have had for statistics is left empty.
    empty = [b.constant(np.zeros(0, np.float32)) if b.reads(node, index) else None for index in (1, 2)]
    return [b.add(_batch_norm(b, node)), *empty, None, None]


@op("layer_norm.default", "native_layer_norm.default")
def layer_norm(b: Builder, node: Node) -> Result:
    """Over the trailing dimensions; the native form's mean and rstd are not offered."""
    normalized = b.integers(node, "normalized_shape")
    default = 1e-5
    result = b.add(
        nn.LayerNormOp(
            b.tensor(node, "input"), normalized, b.optional(node, "weight"), b.optional(node, "bias"),
            b.real(node, "eps", default),
        )
    )  # fmt: skip
    if node.target == "aten.layer_norm.default":
        return result
    rank = len(shape_of(result))
    axes = range(rank - len(normalized), rank)
    return [result, *_statistics(b, b.tensor(node, "input"), axes, True, b.real(node, "eps", default))]


def _statistics(b: Builder, value: SSAValue, axes: Sequence[int], keep: bool, eps: float) -> list[SSAValue]:
    """Mean and 1 / sqrt(variance + eps) over `axes`: further results of torch's native norms, mostly unread."""
    mean = b.add(nn.MeanOp(value, axes, True))
    centred = arithmetic.subtract(b, value, mean)
    variance = b.add(nn.MeanOp(arithmetic.multiply(b, centred, centred), axes, keep))
    mean = mean if keep else b.add(nn.MeanOp(value, axes, False))
    return [mean, b.add(nn.RsqrtOp(arithmetic.add(b, variance, eps)))]


@op("group_norm.default", "native_group_norm.default")
@in_float32
def group_norm(b: Builder, node: Node) -> Result:
    """A layer norm of each group of channels, then factor and shift per channel."""
    value = b.tensor(node, "input")
    native = node.target == "aten.native_group_norm.default"
    groups = b.integer(node, "group" if native else "num_groups")
    channels = shape_of(value)[1]
    if groups < 1 or channels % groups:
        raise QcompError(f"{channels} channels in {groups} groups", code="malformed-graph")
    normal = _normalized(b, value, groups, b.real(node, "eps", 1e-5))
    result = scaled_and_shifted(b, normal, b.optional(node, "weight"), b.optional(node, "bias"))
    if not native:
        return result
    batch, _, *spatial = shape_of(value)
    rows = reshape_to(b, value, (batch, groups, channels // groups * prod(spatial)))
    return [result, *_statistics(b, rows, (2,), False, b.real(node, "eps"))]


def _normalized(b: Builder, value: SSAValue, groups: int, eps: float) -> SSAValue:
    """[N, C, ...] with mean 0 and variance 1 over each of `groups` of channels of each sample."""
    batch, channels, *spatial = shape_of(value)
    size = channels // groups * prod(spatial)
    rows = reshape_to(b, value, (batch, groups, size))
    return reshape_to(b, b.add(nn.LayerNormOp(rows, (size,), None, None, eps)), shape_of(value))


@op("instance_norm.default")
@in_float32
def instance_norm(b: Builder, node: Node) -> Result:
    """A group norm of single channels, or a batch norm when running statistics are used."""
    if not b.flag(node, "use_input_stats", True):
        return b.add(_batch_norm(b, node))
    value = b.tensor(node, "input")
    normal = _normalized(b, value, shape_of(value)[1], b.real(node, "eps", 1e-5))
    return scaled_and_shifted(b, normal, b.optional(node, "weight"), b.optional(node, "bias"))


@op("_native_batch_norm_legit.no_stats")
@in_float32
def batch_statistics(b: Builder, node: Node) -> Result:
    """Statistics of the batch itself: what an instance norm is decomposed to."""
    return _of_batch(b, node)


def _of_batch(b: Builder, node: Node) -> list[SSAValue]:
    """The batch norm with statistics of the batch, its mean and 1 / sqrt(variance + eps)."""
    value = b.tensor(node, "input")
    batch, channels, *spatial = shape_of(value)
    order = (1, 0, *range(2, len(spatial) + 2))
    moved = permute_to(b, value, order)
    rows = reshape_to(b, moved, (channels, batch * prod(spatial)))
    normal = b.add(nn.LayerNormOp(rows, shape_of(rows)[1:], None, None, b.real(node, "eps")))
    back = permute_to(b, reshape_to(b, normal, shape_of(moved)), order)
    result = scaled_and_shifted(b, back, b.optional(node, "weight"), b.optional(node, "bias"))
    return [result, *_statistics(b, rows, (1,), False, b.real(node, "eps"))]


@op("rms_norm.default", "_fused_rms_norm.default")
@in_float32
def rms_norm(b: Builder, node: Node) -> Result:
    """x / sqrt(mean(x * x) + eps) * weight; eps defaults to that of the dtype."""
    value, weight = b.tensor(node, "input"), b.optional(node, "weight")
    axes = range(len(shape_of(value)))[-len(b.integers(node, "normalized_shape")) :]
    limits = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
    eps = limits[dtype_of(value)] if node.argument("eps") is None else b.real(node, "eps")
    square = b.add(nn.MeanOp(arithmetic.multiply(b, value, value), axes, True))
    result = arithmetic.multiply(b, value, b.add(nn.RsqrtOp(arithmetic.add(b, square, eps))))
    result = result if weight is None else arithmetic.multiply(b, result, weight)
    return result if node.target == "aten.rms_norm.default" else [result, None]


@op("softmax.int", "_softmax.default", "special_softmax.default")
def softmax(b: Builder, node: Node) -> Result:
    """exp(x - max) / sum along `dim`, in `dtype` when given."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    dtype = "float32" if b.flag(node, "half_to_float") else dtype
    value = value if dtype is None else b.cast(value, dtype)
    if not shape_of(value):
        return reshape_to(b, b.add(nn.SoftmaxOp(reshape_to(b, value, (1,)), 0)), ())
    return b.add(nn.SoftmaxOp(value, axis_of(b.integer(node, "dim"), len(shape_of(value)))))


@op("log_softmax.int", "_log_softmax.default", "special_log_softmax.default")
@in_float32
def log_softmax(b: Builder, node: Node) -> Result:
    """x - max - log(sum(exp(x - max))) along `dim`, in `dtype` when given."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    value = value if dtype is None else b.cast(value, dtype)
    if 0 in shape_of(value):
        return value
    shape = shape_of(value)
    value = value if shape else reshape_to(b, value, (1,))
    axis = (axis_of(b.integer(node, "dim"), len(shape)),)
    centred = arithmetic.subtract(b, value, b.add(nn.AmaxOp(value, axis, True)))
    total = b.add(nn.SumOp(b.add(nn.ExpOp(centred)), axis, True))
    result = arithmetic.subtract(b, centred, b.add(nn.FunctionOp.of(total, "log")))
    return reshape_to(b, result, shape)
