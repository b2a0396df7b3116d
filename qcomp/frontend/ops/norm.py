# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer, group and rms normalization, softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.arithmetic import scaled_and_shifted
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op


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
    return [result, *statistics(b, b.tensor(node, "input"), axes, True, b.real(node, "eps", default))]


def statistics(b: Builder, value: SSAValue, axes: Sequence[int], keep: bool, eps: float) -> list[SSAValue]:
    """Mean and 1 / sqrt(variance + eps) over `axes`: further results of torch's native norms, mostly unread."""
    mean, apart = arithmetic.centred(b, value, axes)
    variance = b.add(nn.MeanOp(arithmetic.multiply(b, apart, apart), axes, keep))
    mean = mean if keep else reshape_to(b, mean, shape_of(variance))
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
    normal = normalized(b, value, groups, b.real(node, "eps", 1e-5))
    result = scaled_and_shifted(b, normal, b.optional(node, "weight"), b.optional(node, "bias"))
    if not native:
        return result
    batch, _, *spatial = shape_of(value)
    rows = reshape_to(b, value, (batch, groups, channels // groups * prod(spatial)))
    return [result, *statistics(b, rows, (2,), False, b.real(node, "eps"))]


def normalized(b: Builder, value: SSAValue, groups: int, eps: float) -> SSAValue:
    """[N, C, ...] with mean 0 and variance 1 over each of `groups` of channels of each sample."""
    batch, channels, *spatial = shape_of(value)
    size = channels // groups * prod(spatial)
    rows = reshape_to(b, value, (batch, groups, size))
    return reshape_to(b, standardized(b, rows, eps), shape_of(value))


def standardized(b: Builder, rows: SSAValue, eps: float) -> SSAValue:
    """`rows` with mean 0 and variance 1 along their last dimension, whose size may depend on symbols."""
    last = len(shape_of(rows)) - 1
    if not is_symbolic(shape_of(rows)[last]):
        return b.add(nn.LayerNormOp(rows, shape_of(rows)[last:], None, None, eps))
    _, apart = arithmetic.centred(b, rows, (last,))
    variance = b.add(nn.MeanOp(arithmetic.multiply(b, apart, apart), (last,), True))
    return arithmetic.multiply(b, apart, b.add(nn.RsqrtOp(arithmetic.add(b, variance, eps))))


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
    return log_softmax_along(b, value, b.integer(node, "dim"))


def log_softmax_along(b: Builder, value: SSAValue, dim: int) -> SSAValue:
    """x - max - log(sum(exp(x - max))) along `dim`."""
    if 0 in shape_of(value):
        return value
    shape = shape_of(value)
    value = value if shape else reshape_to(b, value, (1,))
    axis = (axis_of(dim, len(shape)),)
    centred = arithmetic.subtract(b, value, b.add(nn.AmaxOp(value, axis, True)))
    total = b.add(nn.SumOp(b.add(nn.ExpOp(centred)), axis, True))
    result = arithmetic.subtract(b, centred, b.add(nn.FunctionOp.of(total, "log")))
    return reshape_to(b, result, shape)
