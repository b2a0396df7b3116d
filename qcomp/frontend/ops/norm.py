# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations and softmax."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op


def _batch_norm(b: Builder, node: Node) -> nn.BatchNormOp:
    if node.argument("running_mean") is None or node.argument("running_var") is None:
        raise QcompError("batch_norm without running statistics", code="unsupported-op")
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
    """With running statistics; in training mode it is refused."""
    if b.flag(node, "training"):
        raise QcompError("batch_norm in training mode", code="training", hint="call model.eval() before exporting")
    return b.add(_batch_norm(b, node))


@op("_native_batch_norm_legit_no_training.default")
def native_batch_norm(b: Builder, node: Node) -> Result:
    """The core ATen form; the saved statistics of the batch are not offered."""
    return [b.add(_batch_norm(b, node)), None, None]


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
    return result if node.target == "aten.layer_norm.default" else [result, None, None]


@op("softmax.int", "_softmax.default", "special_softmax.default")
def softmax(b: Builder, node: Node) -> Result:
    """exp(x - max) / sum along `dim`, in `dtype` when given."""
    if b.flag(node, "half_to_float"):
        raise QcompError("softmax from half to float is not supported", code="unsupported-op")
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    value = value if dtype is None else b.cast(value, dtype)
    return b.add(nn.SoftmaxOp(value, axis_of(b.integer(node, "dim"), len(shape_of(value)))))
