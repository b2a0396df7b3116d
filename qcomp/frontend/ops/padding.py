# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding with a constant; negative amounts cut."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op


@op("constant_pad_nd.default", "pad.default")
def pad(b: Builder, node: Node) -> Result:
    """`pad` lists (low, high) from the last dimension backwards."""
    mode = b.text(node, "mode", "constant")
    if mode != "constant":
        raise QcompError(f"padding mode {mode!r} is not supported", code="unsupported-op")
    value, amounts = b.tensor(node, "self"), b.integers(node, "pad")
    rank = len(shape_of(value))
    if len(amounts) % 2 or len(amounts) > 2 * rank:
        raise QcompError(f"padding {list(amounts)} of a tensor of rank {rank}", code="malformed-graph")
    missing = (0,) * (rank - len(amounts) // 2)
    low, high = (*missing, *amounts[-2::-2]), (*missing, *amounts[::-2])
    for axis, (before, after) in enumerate(zip(low, high, strict=True)):
        if before < 0 or after < 0:
            size = shape_of(value)[axis]
            value = b.add(nn.SliceOp(value, axis, max(0, -before), size - max(0, -after)))
    low, high = ([max(0, amount) for amount in side] for side in (low, high))
    if not any((*low, *high)):
        return value
    fill = b.number(node, "value", 0) if node.argument("value") is not None else 0
    if dtype_of(value) == "bool":
        raise QcompError("padding of bool tensors is not supported", code="unsupported-dtype")
    return b.add(nn.PadOp(value, low, high, float(fill)))
