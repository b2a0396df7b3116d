# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms of vectors, and distances."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import broadcast_shapes
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.indexing import pick, static_shape
from qcomp.frontend.ops.operands import HALF, compare, function
from qcomp.frontend.ops.ordering import axes_of
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op


def vector_norm(b: Builder, value: SSAValue, order: float, axes: Sequence[int], keep: bool) -> SSAValue:
    """The p-norm over `axes`: the p-th root of the sum of p-th powers; the largest or smallest size, or how many are
    not 0. Of 16-bit floats computed in float32.
    """
    dtype = dtype_of(value)
    wide = "float32" if dtype in HALF else dtype
    value = b.cast(value, wide)
    size = b.add(nn.AbsOp(value))
    if not shape_of(value):
        result = b.cast(compare(b, "ne", size, b.scalar(0, wide)), wide) if order == 0 else size
    elif math.isinf(order):
        result = b.add((nn.AmaxOp if order > 0 else nn.AminOp)(size, axes, keep))
    elif order == 0:
        counted = b.cast(compare(b, "ne", size, b.scalar(0, wide)), wide)
        result = b.add(nn.SumOp(counted, axes, keep))
    elif order == 1:
        result = b.add(nn.SumOp(size, axes, keep))
    elif order == 2:
        result = b.add(nn.SqrtOp(b.add(nn.SumOp(b.add(nn.MulOp(value, value)), axes, keep))))
    else:
        powers = function(b, "pow", size, b.scalar(order, wide))
        result = function(b, "pow", b.add(nn.SumOp(powers, axes, keep)), b.scalar(1.0 / order, wide))
    return b.cast(result, dtype)


@op(
    "norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype", "norm.ScalarOpt_dtype",
    "linalg_vector_norm.default",
)  # fmt: skip
def norm(b: Builder, node: Node) -> Result:
    """`vector_norm`, in `dtype` when given."""
    name = "ord" if "linalg" in node.target else "p"
    order = 2.0 if node.argument(name) is None else b.real(node, name, 2.0)
    value = b.tensor(node, "self")
    dtype = b.dtype(node) or dtype_of(value)
    value = b.cast(value, "float32" if dtype in HALF else dtype)
    return b.cast(vector_norm(b, value, order, axes_of(b, node, value), b.flag(node, "keepdim")), dtype)


@op("cosine_similarity.default")
def cosine_similarity(b: Builder, node: Node) -> Result:
    """sum(x1 / max(|x1|, eps) * x2 / max(|x2|, eps)) along `dim`."""
    values = [b.tensor(node, name) for name in ("x1", "x2")]
    rank = max(len(shape_of(value)) for value in values)
    if not rank:
        raise QcompError("cosine similarity of numbers is not supported", code="unsupported-op")
    axis, eps = axis_of(b.integer(node, "dim", 1), rank), b.real(node, "eps", 1e-8)
    sides: list[SSAValue] = []
    shape = broadcast_shapes(*(shape_of(value) for value in values))
    for value in (b.expand(value, shape) for value in values):
        length = vector_norm(b, value, 2.0, (axis,), True)
        sides.append(arithmetic.divide(b, value, b.add(nn.MaximumOp(length, b.scalar(eps, dtype_of(value))))))
    return b.add(nn.SumOp(arithmetic.multiply(b, sides[0], sides[1]), (axis,), False))


@op("pairwise_distance.default")
def pairwise_distance(b: Builder, node: Node) -> Result:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    difference = arithmetic.subtract(b, b.tensor(node, "x1"), b.tensor(node, "x2"))
    moved = arithmetic.add(b, difference, b.real(node, "eps", 1e-6))
    return _last_norm(b, moved, b.real(node, "p", 2.0), b.flag(node, "keepdim"))


@op("cdist.default", "_cdist_forward.default")
def cdist(b: Builder, node: Node) -> Result:
    """The p-norms of all differences of rows of x1 [..., P, M] and x2 [..., R, M]: [..., P, R]."""
    left, right = b.tensor(node, "x1"), b.tensor(node, "x2")
    *lead, rows, size = shape_of(left)
    *other, columns, _ = shape_of(right)
    wide = reshape_to(b, left, (*lead, rows, 1, size)), reshape_to(b, right, (*other, 1, columns, size))
    return _last_norm(b, arithmetic.subtract(b, *wide), b.real(node, "p", 2.0), False)


@op("_weight_norm.default", "_weight_norm_interface.default")
def weight_norm(b: Builder, node: Node) -> Result:
    """v * (g / |v|), with one length for each element of `dim`; -1 for the length of all."""
    value, size, dim = b.tensor(node, "v"), b.tensor(node, "g"), b.integer(node, "dim", 0)
    rank = len(shape_of(value))
    axes = [axis for axis in range(rank) if dim == -1 or axis != axis_of(dim, rank)]
    length = vector_norm(b, value, 2.0, axes, True)
    result = arithmetic.multiply(b, value, arithmetic.divide(b, size, length))
    if "interface" not in node.target:
        return result
    return [result, length if dim != -1 else reshape_to(b, length, ())]


@op("dist.default")
def dist(b: Builder, node: Node) -> Result:
    """The p-norm of the difference of all elements."""
    apart = arithmetic.subtract(b, b.tensor(node, "self"), b.tensor(node, "other"))
    return vector_norm(b, apart, b.real(node, "p", 2.0), range(len(shape_of(apart))), False)


@op("pdist.default", "_pdist_forward.default")
def pdist(b: Builder, node: Node) -> Result:
    """The p-norms of the differences of all pairs of rows, in the order of the upper triangle."""
    value = b.tensor(node, "self")
    sides = np.triu_indices(static_shape(value)[0], 1)
    first, second = (pick(b, value, b.constant(side.astype(np.int64), "int64"), 0) for side in sides)
    return _last_norm(b, arithmetic.subtract(b, first, second), b.real(node, "p", 2.0), False)


def _last_norm(b: Builder, value: SSAValue, order: float, keep: bool) -> SSAValue:
    return vector_norm(b, value, order, (len(shape_of(value)) - 1,), keep)
