# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which element is the largest, the next largest, and so on; running sums and products.

All of it without a loop over data: a place is told by comparison, places are float32 numbers, which hold them exactly.
Where elements are equal the first comes first; NaN counts as larger than everything, as in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.arithmetic import exchanged
from qcomp.frontend.ops.operands import choose, compare, function, is_float
from qcomp.frontend.ops.places import MAX_ELEMENTS, fixed_shape, flat
from qcomp.frontend.ops.shape import permute_to, reshape_to


def _negated(b: Builder, value: SSAValue) -> SSAValue:
    """The order turned round: -x, or -1 - x of integers, which never overflows."""
    if is_float(dtype_of(value)):
        return b.add(nn.NegOp(value))
    return b.add(nn.SubOp(b.scalar(-1, dtype_of(value)), value))


def _along(b: Builder, size: int, axis: int, rank: int, numbers: Sequence[int]) -> SSAValue:
    """`numbers` along one dimension, broadcast over the others."""
    shape = [size if other == axis else 1 for other in range(rank)]
    return b.constant(np.array(numbers, np.float32).reshape(shape))


def extreme(b: Builder, value: SSAValue, axis: int, largest: bool, keep: bool) -> tuple[SSAValue, SSAValue]:
    """(the largest or smallest along `axis`, the place of the first of them as int64)."""
    if dtype_of(value) == "bool":
        raise QcompError("the largest of truth values", code="unsupported-dtype", hint="cast to int first")
    size = fixed_shape(value)[axis]
    if not 0 < size < MAX_ELEMENTS:
        raise QcompError(f"the largest of {size} elements", code="unsupported-op")
    turned = value if largest else _negated(b, value)
    best = b.add(nn.AmaxOp(turned, (axis,), True))
    hit = function(b, "or", compare(b, "eq", turned, best), compare(b, "ne", turned, turned))
    left = _along(b, size, axis, len(shape_of(value)), range(size, 0, -1))
    first = b.add(nn.AmaxOp(choose(b, hit, left, 0.0, "float32"), (axis,), keep))
    place = b.cast(b.add(nn.SubOp(b.scalar(float(size), "float32"), first)), "int64")
    best = best if largest else _negated(b, best)
    return (best if keep else reshape_to(b, best, shape_of(place))), place


def _one_place(b: Builder, node: Node, largest: bool) -> SSAValue:
    value = b.tensor(node, "self")
    shape = fixed_shape(value)
    if node.argument("dim") is None or not shape:
        _, place = extreme(b, flat(b, value), 0, largest, False)
        return reshape_to(b, place, [1] * len(shape) if b.flag(node, "keepdim") else ())
    return extreme(b, value, axis_of(b.integer(node, "dim"), len(shape)), largest, b.flag(node, "keepdim"))[1]


def argmax(b: Builder, node: Node) -> Result:
    """The place of the largest, along `dim` or of all elements in order."""
    return _one_place(b, node, True)


def argmin(b: Builder, node: Node) -> Result:
    """The place of the smallest."""
    return _one_place(b, node, False)


def _with_place(b: Builder, node: Node, largest: bool) -> Result:
    value = b.tensor(node, "self")
    shape = shape_of(value)
    if not shape:
        return [value, b.scalar(0, "int64")]
    return list(extreme(b, value, axis_of(b.integer(node, "dim"), len(shape)), largest, b.flag(node, "keepdim")))


def max_dim(b: Builder, node: Node) -> Result:
    """The largest along `dim`, and its place."""
    return _with_place(b, node, True)


def min_dim(b: Builder, node: Node) -> Result:
    """The smallest along `dim`, and its place."""
    return _with_place(b, node, False)


def _ranked(b: Builder, value: SSAValue, axis: int, count: int, descending: bool) -> list[SSAValue]:
    """The first `count` elements along `axis` in order, and their places."""
    shape = fixed_shape(value)
    size, rank = shape[axis], len(shape)
    if prod(shape) * size > MAX_ELEMENTS or dtype_of(value) == "bool" or not size:
        raise QcompError(f"the order of {size} {dtype_of(value)} elements in {list(shape)}", code="unsupported-op")
    order = [*(other for other in range(rank) if other != axis), axis]
    last = permute_to(b, value, order)
    before = _precedes(b, last, size, descending)
    places = b.add(nn.SumOp(b.cast(before, "float32"), (-1,), False))
    wanted = b.constant(np.arange(count, dtype=np.float32)[:, None])
    column = (*shape_of(last)[:-1], 1, size)
    pick = compare(b, "eq", reshape_to(b, places, column), wanted)
    zero = b.scalar(0, dtype_of(value))
    chosen = b.add(nn.SumOp(choose(b, pick, reshape_to(b, last, column), zero), (-1,), False))
    numbers = b.constant(np.arange(size, dtype=np.float32))
    where = b.add(nn.SumOp(choose(b, pick, numbers, 0.0, "float32"), (-1,), False))
    back = list(np.argsort(order))
    return [permute_to(b, chosen, back), permute_to(b, b.cast(where, "int64"), back)]


def _precedes(b: Builder, last: SSAValue, size: int, descending: bool) -> SSAValue:
    """[..., i, j]: whether element j comes before element i."""
    rows, columns = (reshape_to(b, last, (*shape_of(last)[:-1], *ends)) for ends in ((size, 1), (1, size)))
    above = compare(b, "gt", columns, rows)
    if is_float(dtype_of(last)):
        odd, even = compare(b, "ne", columns, columns), compare(b, "eq", rows, rows)
        above = function(b, "or", above, function(b, "and", odd, even))
    below = exchanged(b, above)
    equal = compare(b, "eq", above, below)
    earlier = b.constant(np.arange(size)[None, :] < np.arange(size)[:, None])
    return function(b, "or", above if descending else below, function(b, "and", equal, earlier))


def topk(b: Builder, node: Node) -> Result:
    """The `k` largest or smallest along `dim` in order, and their places."""
    value, count = b.tensor(node, "self"), b.integer(node, "k")
    if not shape_of(value):
        return [value, b.scalar(0, "int64")]
    axis = axis_of(b.integer(node, "dim", -1), len(shape_of(value)))
    return _ranked(b, value, axis, count, b.flag(node, "largest", True))


def _sorted(b: Builder, node: Node) -> list[SSAValue]:
    value = b.tensor(node, "self")
    if not shape_of(value):
        return [value, b.scalar(0, "int64")]
    axis = axis_of(b.integer(node, "dim", -1), len(shape_of(value)))
    return _ranked(b, value, axis, shape_of(value)[axis], b.flag(node, "descending"))


def sort(b: Builder, node: Node) -> Result:
    """All elements along `dim` in order, and their places."""
    return _sorted(b, node)


def argsort(b: Builder, node: Node) -> Result:
    """The places alone."""
    return _sorted(b, node)[1]


def _running(b: Builder, node: Node, make: type[nn.AddOp] | type[nn.MulOp], neutral: int) -> SSAValue:
    """Prefixes in log2(size) steps: each adds what stands 1, 2, 4 ... places before."""
    value = b.tensor(node, "self")
    dtype = b.dtype(node) or (dtype_of(value) if is_float(dtype_of(value)) else "int64")
    value = b.cast(value, dtype)
    shape = fixed_shape(value)
    if not shape or 0 in shape:
        return value
    axis, apart = axis_of(b.integer(node, "dim"), len(shape)), 1
    while apart < shape[axis]:
        head = b.expand(b.scalar(neutral, dtype), (*shape[:axis], apart, *shape[axis + 1 :]))
        tail = b.add(nn.SliceOp(value, axis, 0, shape[axis] - apart))
        value = b.add(make(value, b.add(nn.CatOp([head, tail], axis))))
        apart *= 2
    return value


def cumsum(b: Builder, node: Node) -> Result:
    """Running sums; of integers in int64."""
    return _running(b, node, nn.AddOp, 0)


def cumprod(b: Builder, node: Node) -> Result:
    """Running products; of integers in int64."""
    return _running(b, node, nn.MulOp, 1)
