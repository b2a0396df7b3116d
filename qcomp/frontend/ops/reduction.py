# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op


def _reduce(b: Builder, node: Node, make: type[nn.ReduceOp], value: SSAValue) -> SSAValue:
    """`make` over the argument `dim`; without one, or with an empty one, over all dimensions."""
    rank = len(shape_of(value))
    dims = b.integers(node, "dim") if node.argument("dim") is not None else ()
    axes = [axis_of(axis, rank) for axis in dims] if rank else []
    return b.add(make(value, axes, b.flag(node, "keepdim")))


@op("mean.dim", "mean.default")
def mean(b: Builder, node: Node) -> Result:
    """Arithmetic mean, computed in `dtype` when given."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    return _reduce(b, node, nn.MeanOp, value if dtype is None else b.cast(value, dtype))


@op("sum.dim_IntList", "sum.default")
def sum_(b: Builder, node: Node) -> Result:
    """Sum; of integers and bools in int64."""
    value = b.tensor(node, "self")
    dtype = b.dtype(node) or ("int64" if promotion.category(dtype_of(value)) < 2 else dtype_of(value))
    return _reduce(b, node, nn.SumOp, b.cast(value, dtype))


@op("amax.default")
def amax(b: Builder, node: Node) -> Result:
    """Largest element."""
    return _reduce(b, node, nn.AmaxOp, b.tensor(node, "self"))


@op("max.default")
def max_(b: Builder, node: Node) -> Result:
    """Largest element of all."""
    return b.add(nn.AmaxOp(b.tensor(node, "self"), (), False))
