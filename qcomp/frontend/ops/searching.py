# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether and where values stand among others."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.frontend.builder import Builder, Result, axis_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import common_dtype, compare, operand, unary
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op


@op("isin.Tensor_Tensor", "isin.Tensor_Scalar", "isin.Scalar_Tensor")
def isin(b: Builder, node: Node) -> Result:
    """Whether each element is among the test elements."""
    value = operand(b, node, "elements" if node.argument("element") is None else "element")
    tested = operand(b, node, "test_elements" if node.argument("test_elements") is not None else "test_element")
    dtype = common_dtype(value, tested)
    wide = b.cast(value, dtype) if isinstance(value, SSAValue) else b.scalar(value, dtype)
    flat = b.cast(tested, dtype) if isinstance(tested, SSAValue) else b.scalar(tested, dtype)
    count = prod(shape_of(flat))
    equal = compare(b, "eq", reshape_to(b, wide, (*shape_of(wide), 1)), reshape_to(b, flat, (count,)))
    axes = (len(shape_of(wide)),)
    found = compare(b, "gt", b.add(nn.SumOp(b.cast(equal, "int32"), axes, False)), 0)
    return unary(b, "bitwise_not", found) if b.flag(node, "invert") else found


@op("bucketize.Tensor", "bucketize.Scalar", "searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(b: Builder, node: Node) -> Result:
    """How many elements of a sorted row are below each value; with `right`, not above it."""
    bucketed = "bucketize" in node.target
    row = b.tensor(node, "boundaries" if bucketed else "sorted_sequence")
    value = operand(b, node, "self")
    right = b.flag(node, "right") or node.argument("side") == "right"
    if node.argument("sorter") is not None:
        order = b.cast(b.tensor(node, "sorter"), "int64")
        row = b.add(nn.GatherOp(row, order, axis_of(-1, len(shape_of(row)))))
    dtype = common_dtype(value, row)
    wide = b.cast(value, dtype) if isinstance(value, SSAValue) else b.scalar(value, dtype)
    row, lead = b.cast(row, dtype), shape_of(row)[:-1]
    if lead:
        row = reshape_to(b, row, (*lead, 1, shape_of(row)[-1]))
    # NaN is above all: what is not at least the value is below it.
    above = compare(b, "gt" if right else "ge", row, reshape_to(b, wide, (*shape_of(wide), 1)))
    below = unary(b, "bitwise_not", above)
    counted = b.add(nn.SumOp(b.cast(below, "int64"), (len(shape_of(below)) - 1,), False))
    return b.cast(counted, "int32" if b.flag(node, "out_int32") else "int64")
