# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands at a place of a sort: medians and quantiles."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.indexing import static_shape
from qcomp.frontend.ops.operands import choose, compare, is_float, unary
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _rows(b: Builder, node: Node) -> tuple[SSAValue, int]:
    """(tensor of at least one dimension, axis): of the argument `dim`, or flat without one."""
    value = b.tensor(node, "self")
    shape = shape_of(value)
    if node.argument("dim") is None or not shape:
        return reshape_to(b, value, (prod(static_shape(value)),)), 0
    axis = axis_of(b.integer(node, "dim"), len(shape))
    if is_symbolic(shape[axis]):
        static_shape(value)
    return value, axis


def _known(b: Builder, ordered: SSAValue, axis: int) -> SSAValue:
    """How many elements along `axis` are no NaN, i64, in the place of the axis."""
    truth = compare(b, "eq", ordered, ordered)
    return b.add(nn.SumOp(b.cast(truth, "int64"), (axis,), True))


@op("median.default", "median.dim", "nanmedian.default", "nanmedian.dim")
def median(b: Builder, node: Node) -> Result:
    """The lower one of the middle, and its place; NaN if there is one, or as if there were none."""
    value, axis = _rows(b, node)
    size = shape_of(value)[axis]
    if not size:
        raise QcompError("the median of no elements", code="unsupported-op")
    places = b.add(nn.ArgsortOp(value, axis, False))
    ordered = b.add(nn.GatherOp(value, places, axis))
    shape = tuple(1 if place == axis else have for place, have in enumerate(shape_of(value)))
    middle = b.expand(b.scalar((size - 1) // 2, "int64"), shape)
    if is_float(dtype_of(value)):
        known = _known(b, ordered, axis)
        if "nanmedian" in node.target:
            middle = b.add(nn.MaximumOp(arithmetic.subtract(b, known, 1), b.scalar(0, "int64")))
            middle = b.add(nn.BinaryFunctionOp.of("floor_divide", middle, b.scalar(2, "int64")))
        else:
            middle = choose(b, compare(b, "lt", known, size), known, middle, "int64")
    found = [b.add(nn.GatherOp(item, middle, axis)) for item in (ordered, places)]
    if node.target.endswith(".default"):
        return reshape_to(b, found[0], ())
    whole = shape_of(b.tensor(node, "self"))
    kept = () if not whole else shape if b.flag(node, "keepdim") else (*shape[:axis], *shape[axis + 1 :])
    return [reshape_to(b, item, kept) for item in found]


@op("quantile.default", "quantile.scalar", "nanquantile.default", "nanquantile.scalar")
def quantile(b: Builder, node: Node) -> Result:
    """What a share `q` of the elements lies below, between two neighbours of a sort by `interpolation`.

    A vector of shares is the first dimension of the result. With a NaN the result is NaN, or it is not counted.
    """
    value, axis = _rows(b, node)
    dtype, rank, size = dtype_of(value), len(shape_of(value)), shape_of(value)[axis]
    if not size:
        raise QcompError("the quantile of no elements", code="unsupported-op")
    how = b.text(node, "interpolation", "linear")
    if how not in _INTERPOLATIONS:
        raise QcompError(f"interpolation {how} does not exist", code="malformed-graph")
    scalar = node.target.endswith(".scalar")
    share = b.scalar(b.real(node, "q"), dtype) if scalar else b.tensor(node, "q")
    vector = bool(shape_of(share))
    count = prod(shape_of(share))
    ordered = b.add(nn.GatherOp(value, b.add(nn.ArgsortOp(value, axis, False)), axis))
    ordered = permute_to(b, ordered, (axis, *(place for place in range(rank) if place != axis)))
    rest = shape_of(ordered)[1:]
    known = b.cast(_known(b, ordered, 0), dtype)
    share = reshape_to(b, share, (count, *(1 for _ in rest)))
    rank_of = arithmetic.multiply(b, share, arithmetic.subtract(b, known, 1.0))
    if "nanquantile" not in node.target:
        odd = compare(b, "lt", known, float(size))
        rank_of = choose(b, odd, float(size - 1), arithmetic.multiply(b, share, float(size - 1)), dtype)
    result = _between(b, ordered, b.add(nn.MaximumOp(rank_of, b.scalar(0.0, dtype))), (count, *rest), how)
    if b.flag(node, "keepdim"):
        kept = list(shape_of(b.tensor(node, "self")))
        if node.argument("dim") is None:
            kept = [1] * len(kept)
        elif kept:
            kept[axis] = 1
    else:
        kept = list(rest)
    return reshape_to(b, result, (count, *kept) if vector else kept)


def _between(b: Builder, ordered: SSAValue, place: SSAValue, shape: tuple[int, ...], how: str) -> SSAValue:
    """The elements of dimension 0 at real places."""
    place = b.expand(place, shape)
    if how in ("lower", "higher", "nearest"):
        place = unary(b, {"lower": "floor", "higher": "ceil", "nearest": "round"}[how], place)
    low = b.cast(place, "int64")
    below = b.add(nn.GatherOp(ordered, low, 0))
    if how not in ("linear", "midpoint"):
        return below
    above = b.add(nn.GatherOp(ordered, b.cast(unary(b, "ceil", place), "int64"), 0))
    dtype = dtype_of(ordered)
    weight = arithmetic.subtract(b, place, b.cast(low, dtype)) if how == "linear" else b.scalar(0.5, dtype)
    # torch's lerp: from the nearer end.
    step = arithmetic.subtract(b, above, below)
    rising = arithmetic.add(b, below, arithmetic.multiply(b, weight, step))
    back = arithmetic.multiply(b, step, arithmetic.subtract(b, b.scalar(1.0, dtype), weight))
    return choose(b, compare(b, "lt", weight, 0.5), rising, arithmetic.subtract(b, above, back), dtype)
