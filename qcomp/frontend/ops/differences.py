# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Differences of neighbours, areas below points, cross products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import broadcast_shapes
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.arithmetic import total
from qcomp.frontend.ops.indexing import pick
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.split import axis_argument, common, joined
from qcomp.frontend.ops.table import op


@op("trapezoid.dx", "trapz.dx", "trapezoid.x", "trapz.x", "cumulative_trapezoid.dx", "cumulative_trapezoid.x")
def trapezoid(b: Builder, node: Node) -> Result:
    """The area below the points, in all or up to each."""
    from_x, name = node.argument("x") is not None, "y"
    value = b.tensor(node, name)
    axis = axis_argument(b, node, value, -1)
    size = shape_of(value)[axis]
    value = b.cast(value, "float32") if not dtype_of(value).startswith(("float", "bfloat")) else value

    def ends(item: SSAValue, dim: int) -> tuple[SSAValue, SSAValue]:
        length = shape_of(item)[dim]
        return b.add(nn.SliceOp(item, dim, 0, length - 1)), b.add(nn.SliceOp(item, dim, 1, length))

    if size < 2:
        raise QcompError("the area below fewer than two points is not supported", code="unsupported-op")
    first, last = ends(value, axis)
    area = b.add(nn.AddOp(first, last))
    if from_x:
        x = b.cast(b.tensor(node, "x"), dtype_of(value))
        start, end = ends(x, axis if len(shape_of(x)) > 1 else 0)
        steps = b.add(nn.SubOp(end, start))
        if len(shape_of(x)) == 1:
            steps = reshape_to(b, steps, (size - 1, *(1 for _ in shape_of(value)[axis + 1 :])))
        area = b.add(nn.MulOp(area, steps))
        factor = 0.5
    else:
        factor = b.real(node, "dx", 1.0) / 2
    area = b.add(nn.MulOp(area, b.scalar(factor, dtype_of(value))))
    return b.add(nn.ScanOp("add", area, axis)) if "cumulative" in node.target else total(b, area, [axis])


@op("diff.default")
def diff(b: Builder, node: Node) -> Result:
    """Differences of neighbours, several times."""
    value = b.tensor(node, "self")
    axis, kind = axis_argument(b, node, value, -1), dtype_of(value)
    parts = [b.optional(node, "prepend"), value, b.optional(node, "append")]
    value = joined(b, [part for part in parts if part is not None], axis)
    for _ in range(b.integer(node, "n", 1)):
        size = shape_of(value)[axis]
        after = b.add(nn.SliceOp(value, axis, min(1, size), size))
        before = b.add(nn.SliceOp(value, axis, 0, max(size - 1, 0)))
        value = b.add(nn.BinaryFunctionOp.of("xor", after, before) if kind == "bool" else nn.SubOp(after, before))
    return value


@op("cross.default", "linalg_cross.default")
def cross(b: Builder, node: Node) -> Result:
    """The cross product of vectors of three along one dimension, by default the first of size 3."""
    left, right = common(b, [b.tensor(node, "self"), b.tensor(node, "other")])
    shape = broadcast_shapes(shape_of(left), shape_of(right))
    if node.argument("dim") is None:
        axis = -1 if "linalg" in node.target else shape.index(3)
    else:
        axis = b.integer(node, "dim")
    axis = axis_of(axis, len(shape))
    left, right = b.expand(left, shape), b.expand(right, shape)

    def turned(value: SSAValue, places: Sequence[int]) -> SSAValue:
        return pick(b, value, b.constant(np.array(places, np.int64), "int64"), axis)

    plus = b.add(nn.MulOp(turned(left, (1, 2, 0)), turned(right, (2, 0, 1))))
    minus = b.add(nn.MulOp(turned(left, (2, 0, 1)), turned(right, (1, 2, 0))))
    return b.add(nn.SubOp(plus, minus))
