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


def matrix_norm(b: Builder, value: SSAValue, order: float | str, axes: Sequence[int], keep: bool) -> SSAValue:
    """A norm of the matrices along two dimensions: the root of the sum of squares, or the largest (of a negative order,
    the smallest) sum of sizes of a column (1) or row (inf). Of 16-bit floats computed in float32.

    Raises QcompError for norms made of singular values.
    """
    if order == "fro":
        return vector_norm(b, value, 2.0, axes, keep)
    if isinstance(order, str) or (not math.isinf(order) and abs(order) != 1):
        raise QcompError(
            f"a matrix norm of order {order} is not supported", code="unsupported-op",
            hint="it needs singular values; 'fro', 1, -1, inf and -inf are supported",
        )  # fmt: skip
    dtype = dtype_of(value)
    summed, over = axes if abs(order) == 1 else reversed(axes)
    size = b.add(nn.AbsOp(b.cast(value, "float32" if dtype in HALF else dtype)))
    sums = b.add(nn.SumOp(size, (summed,), True))
    result = b.add((nn.AmaxOp if order > 0 else nn.AminOp)(sums, (over,), True))
    kept = [size for axis, size in enumerate(shape_of(result)) if keep or axis not in axes]
    return b.cast(reshape_to(b, result, kept), dtype)


def _order(b: Builder, node: Node, default: float | str | None) -> float | str | None:
    given = node.argument("ord")
    return default if given is None else given if isinstance(given, str) else b.real(node, "ord", 2.0)


@op("linalg_norm.default", "linalg_norm.ord_str", "linalg_matrix_norm.default", "linalg_matrix_norm.str_ord")
def linalg_norm(b: Builder, node: Node) -> Result:
    """`matrix_norm` where an order is given and two dimensions, or a matrix; else `vector_norm`."""
    matrices = "matrix_norm" in node.target
    order, keep = _order(b, node, "fro" if matrices else None), b.flag(node, "keepdim")
    value = b.tensor(node, "self")
    dtype, rank = b.dtype(node) or dtype_of(value), len(shape_of(value))
    value = b.cast(value, "float32" if dtype in HALF else dtype)
    dims = b.integers(node, "dim", ()) if node.argument("dim") is not None else ()
    axes = [axis_of(axis, rank) for axis in dims or ((-2, -1) if matrices else range(rank))]
    if matrices or (order is not None and len(axes) == 2):
        found = matrix_norm(b, value, "fro" if order is None else order, axes, keep)
    else:
        found = vector_norm(b, value, 2.0 if order is None or isinstance(order, str) else order, axes, keep)
    return b.cast(found, dtype)


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
