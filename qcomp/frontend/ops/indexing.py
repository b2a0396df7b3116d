# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements picked by index tensors. Sizes must not depend on data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import FIX, is_symbolic
from qcomp.dialects.nn.base import broadcast_shapes
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node, Ref
from qcomp.frontend.known_values import known_array
from qcomp.frontend.ops.counting import places
from qcomp.frontend.ops.operands import choose, compare, difference, function, total, unary
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op

MASKS = ("bool", "uint8")
"""Element types of index tensors that say which elements are taken, not where they are."""
Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]



def static_shape(value: SSAValue) -> tuple[int, ...]:
    """The shape. Raises QcompError when a size is symbolic."""
    if any(not isinstance(size, int) or size < 0 for size in shape_of(value)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise QcompError("of symbolic sizes is not supported", code="dynamic-shape", hint=FIX)
    return shape_of(value)


def wrapped(b: Builder, index: SSAValue, size: int) -> SSAValue:
    """Negative indices counted from the end."""
    if is_symbolic(size):
        number = b.cast(index, "int64")
        return choose(b, compare(b, "lt", number, 0), total(b, number, size), number)
    return unary(b, "wrap_index", b.cast(index, "int64"), size)


def at_least_1d(b: Builder, value: SSAValue) -> SSAValue:
    """A number as one element."""
    return value if shape_of(value) else reshape_to(b, value, (1,))


@op("gather.default")
def gather(b: Builder, node: Node) -> Result:
    """input[index[i][j]][j] for dim 0; index may be shorter than input elsewhere."""
    value, index = b.tensor(node, "self"), b.tensor(node, "index")
    sizes = shape_of(index)
    value, picked = at_least_1d(b, value), b.cast(at_least_1d(b, index), "int64")
    dim = axis_of(b.integer(node, "dim"), len(shape_of(value)))
    for axis, size in enumerate(shape_of(picked)):
        if axis != dim and size != shape_of(value)[axis]:
            value = b.add(nn.SliceOp(value, axis, 0, size))
    return reshape_to(b, b.add(nn.GatherOp(value, picked, dim)), sizes)


def pick(b: Builder, value: SSAValue, index: SSAValue, dim: int) -> SSAValue:
    """Elements index[...], which is 1-d, of dimension `dim`."""
    rank = len(shape_of(value))
    spread = reshape_to(b, index, (*(1,) * dim, *shape_of(index), *(1,) * (rank - dim - 1)))
    return b.add(nn.GatherOp(value, spread, dim))


@op("index_select.default")
def index_select(b: Builder, node: Node) -> Result:
    """Elements of one dimension."""
    value = b.tensor(node, "self")
    shape = shape_of(value)
    wide, index = at_least_1d(b, value), b.cast(at_least_1d(b, b.tensor(node, "index")), "int64")
    found = pick(b, wide, index, axis_of(b.integer(node, "dim"), len(shape)))
    return found if shape else reshape_to(b, found, ())


@op("take_along_dim.default")
def take_along_dim(b: Builder, node: Node) -> Result:
    """gather with broadcasting; without a dimension, of the flat tensor."""
    value, index = b.tensor(node, "self"), b.cast(b.tensor(node, "indices"), "int64")
    if node.argument("dim") is None:
        value, index = (reshape_to(b, item, (prod(shape_of(item)),)) for item in (value, index))
        return b.add(nn.GatherOp(value, index, 0))
    dim = axis_of(b.integer(node, "dim"), len(shape_of(value)))
    return b.add(nn.GatherOp(value, wrapped(b, index, shape_of(value)[dim]), dim))


@op("take.default")
def take(b: Builder, node: Node) -> Result:
    """Elements of the flat tensor."""
    value, index = b.tensor(node, "self"), b.tensor(node, "index")
    count, sizes = prod(shape_of(value)), shape_of(index)
    flat = wrapped(b, reshape_to(b, index, (prod(sizes),)), count)
    return reshape_to(b, b.add(nn.GatherOp(reshape_to(b, value, (count,)), flat, 0)), sizes)


def _index_tensors(b: Builder, node: Node) -> dict[int, SSAValue]:
    """The index tensor of each indexed dimension; a mask becomes the places where it is set, which must be known."""
    listed, axis = node.argument("indices"), 0
    found: dict[int, SSAValue] = {}
    for part in listed if isinstance(listed, tuple) else ():
        index = b.plain(b.of(part)) if isinstance(part, Ref) else None
        if index is None or dtype_of(index) not in MASKS:
            found.update({} if index is None else {axis: index})
            axis += 1
            continue
        mask = known_array(b, index)
        if mask is None or not mask.ndim:
            raise QcompError(
                "a mask as index makes a result whose size depends on data", code="data-dependent",
                hint="use torch.where or a product with the mask",
            )  # fmt: skip
        b.room(int(np.count_nonzero(mask)), mask.ndim)
        for set_places in np.nonzero(mask):
            found[axis] = b.constant(set_places.astype(np.int64), "int64")
            axis += 1
    return found


class Indexed:
    """What index tensors do to a tensor: the dimensions they index moved together, and one number for all of them."""

    def __init__(self, b: Builder, node: Node, value: SSAValue):
        found = _index_tensors(b, node)
        shape, axes = shape_of(value), list(found)
        if not found:
            raise QcompError("an index without tensors is not supported", code="unsupported-op")
        adjacent = axes == list(range(axes[0], axes[-1] + 1))
        self.b, self.first = b, axes[0] if adjacent else 0
        rest = [axis for axis in range(len(shape)) if axis not in axes]
        self.order = [*rest[: self.first], *axes, *rest[self.first :]]
        self.sizes = tuple(shape[axis] for axis in self.order)
        self.last = self.first + len(axes)
        self.grid = reduce(broadcast_shapes, map(shape_of, found.values()))
        self.number = self._number([found[axis] for axis in axes], [shape[axis] for axis in axes])

    def _number(self, indices: Sequence[SSAValue], sizes: Sequence[int]) -> SSAValue:
        b, total = self.b, None
        for index, size in zip(indices, sizes, strict=True):
            place = wrapped(b, index, size)
            if total is None:
                total = place
            else:
                total = b.add(nn.AddOp(b.add(nn.MulOp(total, b.scalar(size, "int64"))), place))
        assert total is not None
        flat = reshape_to(b, b.expand(total, self.grid), (prod(self.grid),))
        rank = len(self.sizes) - (self.last - self.first) + 1
        return reshape_to(b, flat, (*(1,) * self.first, prod(self.grid), *(1,) * (rank - self.first - 1)))

    def joined(self, value: SSAValue) -> SSAValue:
        """The value with the indexed dimensions as one, at `first`."""
        moved = permute_to(self.b, value, self.order)
        first, last = self.first, self.last
        return reshape_to(self.b, moved, (*self.sizes[:first], prod(self.sizes[first:last]), *self.sizes[last:]))

    def parted(self, value: SSAValue) -> SSAValue:
        """The inverse of `joined`."""
        moved = reshape_to(self.b, value, self.sizes)
        return permute_to(self.b, moved, [self.order.index(axis) for axis in range(len(self.order))])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is picked."""
        return (*self.sizes[: self.first], *self.grid, *self.sizes[self.last :])


@op("index.Tensor", "_unsafe_index.Tensor")
def index(b: Builder, node: Node) -> Result:
    """Several index tensors, broadcast; None keeps a dimension."""
    value = b.tensor(node, "self")
    found = Indexed(b, node, value)
    return reshape_to(b, b.add(nn.GatherOp(found.joined(value), found.number, found.first)), found.shape)


def reordered(b: Builder, value: SSAValue, places: Places, dim: int) -> SSAValue:
    """Elements of dimension `dim` at constant places."""
    if np.array_equal(places, np.arange(shape_of(value)[dim])):
        return value
    return pick(b, value, b.constant(places.astype(np.int64), "int64"), dim)


@op("flip.default", "fliplr.default", "flipud.default")
def flip(b: Builder, node: Node) -> Result:
    """Dimensions back to front."""
    value = b.tensor(node, "self")
    shape = shape_of(value)
    fixed = {"aten.fliplr.default": (1,), "aten.flipud.default": (0,)}.get(node.target)
    for dim in b.integers(node, "dims") if fixed is None else fixed:
        if shape:
            axis = axis_of(dim, len(shape))
            value = _flipped(b, value, axis)
    return value


def _flipped(b: Builder, value: SSAValue, axis: int) -> SSAValue:
    """One dimension back to front."""
    size = shape_of(value)[axis]
    if is_symbolic(size):
        return pick(b, value, difference(b, size - 1, places(b, size)), axis)
    b.room(size)
    return reordered(b, value, np.arange(size)[::-1], axis)


@op("roll.default")
def roll(b: Builder, node: Node) -> Result:
    """Dimensions turned round; without dims, the flat tensor."""
    value, shifts, dims = b.tensor(node, "self"), b.integers(node, "shifts"), b.integers(node, "dims", ())
    shape = shape_of(value)
    if 0 in shape:
        return value
    if not dims:
        return reshape_to(b, _turned(b, reshape_to(b, value, (prod(shape),)), shifts[0], 0), shape)
    for shift, dim in zip(shifts, dims, strict=True):
        value = _turned(b, value, shift, axis_of(dim, len(shape)))
    return value


def _turned(b: Builder, value: SSAValue, shift: int, axis: int) -> SSAValue:
    size = shape_of(value)[axis]
    if is_symbolic(size) or is_symbolic(shift):
        moved = difference(b, places(b, size), shift)
        return pick(b, value, function(b, "remainder", moved, b.scalar(size, "int64")), axis)
    cut = -shift % size
    if not cut:
        return value
    parts = [b.add(nn.SliceOp(value, axis, start, end)) for start, end in ((cut, size), (0, cut))]
    return b.add(nn.CatOp(parts, axis))


@op("rot90.default")
def rot90(b: Builder, node: Node) -> Result:
    """A plane turned by right angles."""
    value, times = b.tensor(node, "self"), b.integer(node, "k", 1) % 4
    shape = shape_of(value)
    first, second = (axis_of(axis, len(shape)) for axis in b.integers(node, "dims", (0, 1)))
    turned = {1: (second,), 2: (first, second), 3: (first,)}.get(times, ())
    for axis in turned:
        value = _flipped(b, value, axis)
    if times % 2:
        order = list(range(len(shape)))
        order[first], order[second] = second, first
        value = permute_to(b, value, order)
    return value


@op("repeat_interleave.self_int")
def repeat_interleave(b: Builder, node: Node) -> Result:
    """Each element several times in a row; without a dimension, of the flat tensor."""
    value, times = b.tensor(node, "self"), b.integer(node, "repeats")
    if node.argument("dim") is None:
        value = reshape_to(b, value, (prod(shape_of(value)),))
    dim = axis_of(0 if node.argument("dim") is None else b.integer(node, "dim"), len(shape_of(value)))
    shape = shape_of(value)
    single = reshape_to(b, value, (*shape[: dim + 1], 1, *shape[dim + 1 :]))
    spread = b.expand(single, (*shape[: dim + 1], times, *shape[dim + 1 :]))
    return reshape_to(b, spread, (*shape[:dim], shape[dim] * times, *shape[dim + 1 :]))


@op("diag_embed.default", "diag.default")
def diag_embed(b: Builder, node: Node) -> Result:
    """The last dimension as a diagonal of matrices of zeros; of a matrix, for diag, its diagonal."""
    value, name = b.tensor(node, "self"), "diagonal" if "diag." in node.target else "offset"
    offset, shape = b.integer(node, name, 0), static_shape(value)
    if "diag." in node.target and len(shape) == 2:
        b.room(*shape)
        places = np.arange(prod(shape)).reshape(shape).diagonal(offset)
        return reordered(b, reshape_to(b, value, (prod(shape),)), places, 0)
    size = shape[-1] + abs(offset)
    first, second = (
        axis_of(b.integer(node, key, default) if "embed" in node.target else default, len(shape) + 1)
        for key, default in (("dim1", -2), ("dim2", -1))
    )
    b.room(size, size)
    rows, columns = np.arange(size)[:, None], np.arange(size)[None]
    places = np.where(columns - rows == offset, np.minimum(rows, columns), shape[-1]).reshape(-1)
    padded = b.add(nn.PadOp(value, (0,) * len(shape), (*(0,) * (len(shape) - 1), 1), 0.0))
    made = reshape_to(b, reordered(b, padded, places, len(shape) - 1), (*shape[:-1], size, size))
    order = list(range(len(shape) - 1))
    for axis, dim in sorted(((first, len(shape) - 1), (second, len(shape)))):
        order.insert(axis, dim)
    return permute_to(b, made, order)

