# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch and instance normalization: with running statistics, or with those of the batch, which update the former."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node, Ref, TensorMeta
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.arithmetic import scaled_and_shifted
from qcomp.frontend.ops.norm import normalized, standardized, statistics
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op


def _by_running(b: Builder, node: Node) -> SSAValue:
    """With running statistics."""
    if len(shape_of(b.tensor(node, "input"))) < 2:
        raise QcompError("batch_norm of a tensor without channels", code="unsupported-op")
    names = ("input", "running_mean", "running_var")
    value, mean, variance = (b.tensor(node, name) for name in names)
    weight, bias = (b.optional(node, name) for name in ("weight", "bias"))
    return b.add(nn.BatchNormOp(value, mean, variance, weight, bias, b.real(node, "eps", 1e-5)))


def _by_batch(b: Builder, node: Node) -> list[SSAValue]:
    """With statistics of the batch; their mean and 1 / sqrt(variance + eps)."""
    value, eps = b.tensor(node, "input"), b.real(node, "eps", 1e-5)
    batch, channels, *spatial = shape_of(value)
    order = (1, 0, *range(2, len(spatial) + 2))
    moved = permute_to(b, value, order)
    rows = reshape_to(b, moved, (channels, batch * prod(spatial)))
    normal = standardized(b, rows, eps)
    back = permute_to(b, reshape_to(b, normal, shape_of(moved)), order)
    result = scaled_and_shifted(b, back, b.optional(node, "weight"), b.optional(node, "bias"))
    return [result, *statistics(b, rows, (1,), False, eps)]


def _updated(b: Builder, node: Node) -> list[SSAValue]:
    """The running statistics after the batch: (1 - momentum) * old + momentum * new, the variance unbiased."""
    value, momentum = b.tensor(node, "input"), b.real(node, "momentum", 0.1)
    axes = (0, *range(2, len(shape_of(value))))
    count = prod(shape_of(value)[axis] for axis in axes)
    mean, apart = arithmetic.centred(b, value, axes)
    total = b.add(nn.SumOp(arithmetic.multiply(b, apart, apart), axes, False))
    variance = arithmetic.divide(b, total, b.scalar(count - 1, dtype_of(value)))
    found: list[SSAValue] = []
    for name, new in (("running_mean", reshape_to(b, mean, shape_of(total))), ("running_var", variance)):
        old = b.tensor(node, name)
        part = arithmetic.multiply(b, b.cast(new, dtype_of(old)), momentum)
        found.append(arithmetic.add(b, arithmetic.multiply(b, old, 1.0 - momentum), part))
    return found


def _trained(b: Builder, node: Node) -> list[SSAValue | None]:
    """In float32 where the input or the statistics are 16 bits wide; each result is rounded to its type at the end."""

    def wide() -> list[SSAValue | None]:
        kept = b.reads(node, 3) or b.reads(node, 4)
        return [*_by_batch(b, node), *(_updated(b, node) if kept else (None, None))]

    found, _ = b.widened(wide)
    types = [dtype_of(b.tensor(node, "input"))] * 3
    running = ("running_mean", "running_var")
    types += [dtype_of(b.tensor(node, name)) if found[3] is not None else "" for name in running]
    return [
        value if value is None else b.cast(value, _type_of(b, node, index) or types[index])
        for index, value in enumerate(found)
    ]


def _type_of(b: Builder, node: Node, index: int) -> str | None:
    """What the export says of the type of a result."""
    ref = node.outputs[index] if index < len(node.outputs) else None
    meta = b.graph.values.get(ref.name) if isinstance(ref, Ref) else None
    return meta.dtype if isinstance(meta, TensorMeta) else None


def _trains(b: Builder, node: Node) -> bool:
    return b.flag(node, "training") or node.argument("running_mean") is None


@op("batch_norm.default")
def batch_norm(b: Builder, node: Node) -> Result:
    """With running statistics; in training mode, or where there are none, with those of the batch."""
    if not _trains(b, node):
        return _by_running(b, node)
    return _trained(b, node)


@op(
    "_native_batch_norm_legit_no_training.default", "native_batch_norm.default", "_native_batch_norm_legit.default",
    "_native_batch_norm_legit_functional.default", "_batch_norm_no_update.default", "cudnn_batch_norm.default",
)  # fmt: skip
def native_batch_norm(b: Builder, node: Node) -> Result:
    """The result, mean and 1 / sqrt(variance + eps) of the batch, and the running statistics after it.

    Without training the statistics are empty.
    """
    if _trains(b, node):
        return _trained(b, node)
    empty = b.constant(np.zeros(0, np.float32))
    kinds = [_type_of(b, node, index) or "float32" if b.reads(node, index) else None for index in (1, 2)]
    return [_by_running(b, node), *(b.cast(empty, kind) if kind else None for kind in kinds), None, None]


@op("_native_batch_norm_legit.no_stats")
@in_float32
def batch_statistics(b: Builder, node: Node) -> Result:
    """With statistics of the batch: what an instance norm is decomposed to."""
    return _by_batch(b, node)


@op("instance_norm.default")
@in_float32
def instance_norm(b: Builder, node: Node) -> Result:
    """A group norm of single channels, or a batch norm when running statistics are used."""
    if not b.flag(node, "use_input_stats", True):
        return _by_running(b, node)
    value = b.tensor(node, "input")
    normal = normalized(b, value, shape_of(value)[1], b.real(node, "eps", 1e-5))
    return scaled_and_shifted(b, normal, b.optional(node, "weight"), b.optional(node, "bias"))
