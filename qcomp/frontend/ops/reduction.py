# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import choose, compare
from qcomp.frontend.ops.table import op


def _reduce(b: Builder, node: Node, make: type[nn.ReduceOp], value: SSAValue) -> SSAValue:
    """`make` over the argument `dim`; without one, or with an empty one, over all dimensions."""
    rank = len(shape_of(value))
    if not rank:
        return value
    dims = b.integers(node, "dim") if node.argument("dim") is not None else ()
    axes = [axis_of(axis, rank) for axis in dims]
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


@op("nansum.default", "nanmean.default")
def nansum(b: Builder, node: Node) -> Result:
    """Sum or mean of what is no NaN."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    whole = promotion.category(dtype_of(value)) < 2
    value = b.cast(value, dtype or ("int64" if whole else dtype_of(value)))
    if whole:
        return _reduce(b, node, nn.SumOp, value)
    known = compare(b, "eq", value, value)
    result = _reduce(b, node, nn.SumOp, choose(b, known, value, 0.0, dtype_of(value)))
    if "mean" not in node.target:
        return result
    return b.add(nn.DivOp(result, _reduce(b, node, nn.SumOp, b.cast(known, dtype_of(value)))))


@op("amax.default")
def amax(b: Builder, node: Node) -> Result:
    """Largest element."""
    return _reduce(b, node, nn.AmaxOp, b.tensor(node, "self"))


@op("max.default")
def max_(b: Builder, node: Node) -> Result:
    """Largest element of all."""
    return _reduce(b, node, nn.AmaxOp, b.tensor(node, "self"))
