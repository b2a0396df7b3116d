# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes, permutations, broadcasts: the same elements under another shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import never_below
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op


def reshape_to(b: Builder, value: SSAValue, sizes: Sequence[int]) -> SSAValue:
    """`value` reshaped; one size may be -1. Raises QcompError when the element counts differ."""
    shape, known = shape_of(value), prod(size for size in sizes if size != -1)
    if list(sizes).count(-1) == 1 and known != 0 and prod(shape) % known == 0:
        sizes = [prod(shape) // known if size == -1 else size for size in sizes]
    if any(not never_below(size, 0) for size in sizes) or prod(sizes) != prod(shape):
        raise QcompError(f"cannot reshape {list(shape)} to {list(sizes)}", code="malformed-graph")
    return value if tuple(sizes) == shape else b.add(nn.ReshapeOp(value, sizes))


def permute_to(b: Builder, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Dimension i of the result is dims[i] of `value`."""
    dims = [axis_of(axis, len(shape_of(value))) for axis in dims]
    if dims == list(range(len(shape_of(value)))):
        return value
    return b.add(nn.PermuteOp(value, dims))


@op("view.default", "reshape.default", "_unsafe_view.default", "view_copy.default", "_reshape_copy.default")
def view(b: Builder, node: Node) -> Result:
    """The same elements in row-major order."""
    return reshape_to(
        b, b.tensor(node, "self"), b.integers(node, "size" if node.argument("size") is not None else "shape")
    )


@op("view_as.default", "reshape_as.default")
def view_as(b: Builder, node: Node) -> Result:
    """A reshape to the shape of another tensor."""
    return reshape_to(b, b.tensor(node, "self"), shape_of(b.tensor(node, "other")))


@op("flatten.using_ints")
def flatten(b: Builder, node: Node) -> Result:
    """Dimensions start_dim to end_dim become one; a 0-d tensor becomes 1-d."""
    value = b.tensor(node, "self")
    shape = shape_of(value)
    start = axis_of(b.integer(node, "start_dim", 0), len(shape))
    end = axis_of(b.integer(node, "end_dim", -1), len(shape))
    return reshape_to(b, value, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@op("unflatten.int")
def unflatten(b: Builder, node: Node) -> Result:
    """One dimension becomes several."""
    value, sizes = b.tensor(node, "self"), list(b.integers(node, "sizes"))
    shape = shape_of(value)
    axis = axis_of(b.integer(node, "dim"), len(shape))
    if -1 in sizes and (rest := prod(size for size in sizes if size != -1)):
        sizes[sizes.index(-1)] = shape[axis] // rest
    return reshape_to(b, value, (*shape[:axis], *sizes, *shape[axis + 1 :]))


@op("squeeze.default", "squeeze.dim", "squeeze.dims", "squeeze_copy.dim", "squeeze_copy.dims")
def squeeze(b: Builder, node: Node) -> Result:
    """Removes dimensions of size 1: all of them, or those named."""
    value = b.tensor(node, "self")
    shape = shape_of(value)
    named = (
        {axis_of(axis, len(shape)) for axis in b.integers(node, "dim")} if node.argument("dim") is not None else None
    )
    return reshape_to(
        b, value, [size for axis, size in enumerate(shape) if size != 1 or (named is not None and axis not in named)]
    )


@op("unsqueeze.default", "unsqueeze_copy.default")
def unsqueeze(b: Builder, node: Node) -> Result:
    """Inserts a dimension of size 1."""
    value = b.tensor(node, "self")
    shape = shape_of(value)
    axis = axis_of(b.integer(node, "dim"), len(shape) + 1)
    return reshape_to(b, value, (*shape[:axis], 1, *shape[axis:]))


@op("permute.default", "permute_copy.default")
def permute(b: Builder, node: Node) -> Result:
    """A permutation of the dimensions."""
    return permute_to(b, b.tensor(node, "self"), b.integers(node, "dims"))


@op("transpose.int", "transpose_copy.int", "swapaxes.default", "swapdims.default")
def transpose(b: Builder, node: Node) -> Result:
    """Two dimensions exchanged."""
    value = b.tensor(node, "self")
    rank = len(shape_of(value))
    names = ("dim0", "dim1") if node.argument("dim0") is not None else ("axis0", "axis1")
    first, second = (axis_of(b.integer(node, name), rank) for name in names)
    dims = list(range(rank))
    if rank:
        dims[first], dims[second] = second, first
    return permute_to(b, value, dims)


@op("t.default", "numpy_T.default", "mT.default", "t_copy.default")
def matrix_transpose(b: Builder, node: Node) -> Result:
    """The transpose of a matrix (of each, for mT); vectors stay."""
    value = b.tensor(node, "self")
    rank = len(shape_of(value))
    if node.target == "aten.mT.default" and rank > 2:
        return permute_to(b, value, (*range(rank - 2), rank - 1, rank - 2))
    return permute_to(b, value, range(rank)[::-1])


@op("movedim.int", "movedim.intlist")
def movedim(b: Builder, node: Node) -> Result:
    """Dimensions moved to new places, the others in order."""
    value = b.tensor(node, "self")
    rank = len(shape_of(value))
    source = [axis_of(axis, rank) for axis in b.integers(node, "source")]
    target = dict(zip((axis_of(axis, rank) for axis in b.integers(node, "destination")), source, strict=True))
    rest = (axis for axis in range(rank) if axis not in source)
    return permute_to(b, value, [target[axis] if axis in target else next(rest) for axis in range(rank)])


@op("expand.default", "expand_copy.default", "broadcast_to.default")
def expand(b: Builder, node: Node) -> Result:
    """Broadcast to `size`; -1 keeps a dimension."""
    value, sizes = b.tensor(node, "self"), b.integers(node, "size")
    shape = (1,) * (len(sizes) - len(shape_of(value))) + shape_of(value)
    return b.expand(value, [old if size == -1 else size for old, size in zip(shape, sizes, strict=True)])


@op("expand_as.default")
def expand_as(b: Builder, node: Node) -> Result:
    """Broadcast to the shape of another tensor."""
    return b.expand(b.tensor(node, "self"), shape_of(b.tensor(node, "other")))


@op("repeat.default", "tile.default")
def repeat(b: Builder, node: Node) -> Result:
    """The tensor tiled: each dimension [n] becomes [times, n] by broadcast, then one."""
    value, times = b.tensor(node, "self"), b.integers(node, "dims" if "tile" in node.target else "repeats")
    times = (1,) * (len(shape_of(value)) - len(times)) + times
    shape = (1,) * (len(times) - len(shape_of(value))) + shape_of(value)
    single = [size for old in shape for size in (1, old)]
    tiled = [size for count, old in zip(times, shape, strict=True) for size in (count, old)]
    spread = b.expand(reshape_to(b, value, single), tiled)
    return reshape_to(b, spread, [count * old for count, old in zip(times, shape, strict=True)])


@op("pixel_shuffle.default")
def pixel_shuffle(b: Builder, node: Node) -> Result:
    """[..., C r r, H, W] to [..., C, H r, W r]."""
    value, factor = b.tensor(node, "self"), b.integer(node, "upscale_factor")
    *lead, channels, height, width = shape_of(value)
    split = reshape_to(b, value, (*lead, channels // factor**2, factor, factor, height, width))
    rank = len(lead)
    moved = permute_to(b, split, (*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2))
    return reshape_to(b, moved, (*lead, channels // factor**2, height * factor, width * factor))


@op("pixel_unshuffle.default")
def pixel_unshuffle(b: Builder, node: Node) -> Result:
    """[..., C, H r, W r] to [..., C r r, H, W]."""
    value, factor = b.tensor(node, "self"), b.integer(node, "downscale_factor")
    *lead, channels, height, width = shape_of(value)
    split = reshape_to(b, value, (*lead, channels, height // factor, factor, width // factor, factor))
    rank = len(lead)
    moved = permute_to(b, split, (*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3))
    return reshape_to(b, moved, (*lead, channels * factor**2, height // factor, width // factor))


@op("channel_shuffle.default")
def channel_shuffle(b: Builder, node: Node) -> Result:
    """Channels of `groups` groups interleaved."""
    value, groups = b.tensor(node, "self"), b.integer(node, "groups")
    batch, channels, *spatial = shape_of(value)
    split = reshape_to(b, value, (batch, groups, channels // groups, *spatial))
    moved = permute_to(b, split, (0, 2, 1, *range(3, 3 + len(spatial))))
    return reshape_to(b, moved, (batch, channels, *spatial))


@op("unfold.default", "unfold_copy.default")
def unfold(b: Builder, node: Node) -> Result:
    """Windows along one dimension, their elements in a new last dimension."""
    value, size, step = b.tensor(node, "self"), b.integer(node, "size"), b.integer(node, "step")
    shape = shape_of(value)
    if not shape:
        return reshape_to(b, value, (size,))
    axis = axis_of(b.integer(node, "dimension"), len(shape))
    if step < 1 or not 0 <= size <= shape[axis]:
        raise QcompError(f"windows of {size} in steps of {step} over {shape[axis]} elements", code="malformed-graph")
    count = (shape[axis] - size) // step + 1
    places = [window * step + offset for window in range(count) for offset in range(size)]
    split = reshape_to(b, b.add(nn.TakeOp(value, axis, places)), (*shape[:axis], count, size, *shape[axis + 1 :]))
    rest = range(axis + 2, len(shape) + 1)
    return permute_to(b, split, (*range(axis + 1), *rest, axis + 1))


@op("meshgrid.default", "meshgrid.indexing")
def meshgrid(b: Builder, node: Node) -> Result:
    """Each vector spread over the dimensions of the others; with "xy" the first two dimensions are exchanged."""
    values = b.tensors(node, "tensors")
    swapped = len(values) > 1 and b.text(node, "indexing", "ij") == "xy"
    order = [1, 0, *range(2, len(values))] if swapped else list(range(len(values)))
    sizes = [prod(shape_of(value)) for value in values]
    results: list[SSAValue] = []
    for number, value in enumerate(values):
        view = [sizes[other] if other == number else 1 for other in order]
        results.append(b.expand(reshape_to(b, value, view), [sizes[other] for other in order]))
    return results
