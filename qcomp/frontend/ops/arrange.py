# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Short names for splitting, joining, broadcasting and placing, made of slices, reshapes and gathers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import broadcast_shapes
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.arithmetic import total
from qcomp.frontend.ops.indexing import pick, static_shape, wrapped
from qcomp.frontend.ops.scattering import scattered
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.split import axis_argument, common, joined, pieces
from qcomp.frontend.ops.table import op


@op("ravel.default")
def ravel(b: Builder, node: Node) -> Result:
    """One dimension."""
    value = b.tensor(node, "self")
    return reshape_to(b, value, (prod(shape_of(value)),))


def at_least(b: Builder, value: SSAValue, rank: int) -> SSAValue:
    """As many dimensions as `rank`: a vector becomes a row, [1, N] or [1, N, 1], a matrix [M, N, 1]."""
    shape = shape_of(value)
    if rank == 1 or not shape:
        return reshape_to(b, value, shape or (1,) * rank)
    if len(shape) == 1:
        return reshape_to(b, value, (1, *shape) if rank == 2 else (1, *shape, 1))
    return reshape_to(b, value, (*shape, 1)) if rank == 3 and len(shape) == 2 else value


def _register_at_least(rank: int) -> None:
    @op(f"atleast_{rank}d.default", f"atleast_{rank}d.Sequence")
    def _(b: Builder, node: Node) -> Result:
        if node.argument("tensors") is None:
            return at_least(b, b.tensor(node, "self"), rank)
        return [at_least(b, value, rank) for value in b.tensors(node, "tensors")]


for _rank in (1, 2, 3):
    _register_at_least(_rank)


@op("hstack.default", "vstack.default", "row_stack.default", "dstack.default", "column_stack.default")
def stacked(b: Builder, node: Node) -> Result:
    """Tensors beside, below or behind one another; column_stack takes vectors as columns."""
    values = common(b, b.tensors(node, "tensors"))
    if "column" in node.target:
        wide = [at_least(b, value, 1) for value in values]
        wide = [reshape_to(b, v, (*shape_of(v), 1)) if len(shape_of(v)) == 1 else v for v in wide]
        return joined(b, wide, 1)
    rank, axis = {"h": (1, 1), "d": (3, 2)}.get(node.target.removeprefix("aten.")[0], (2, 0))
    wide = [at_least(b, value, rank) for value in values]
    return joined(b, wide, min(axis, len(shape_of(wide[0])) - 1))


def _cut(b: Builder, value: SSAValue, axis: int, places: Sequence[int]) -> list[SSAValue]:
    """Pieces between `places`, which are cut to the tensor."""
    size = shape_of(value)[axis]
    ends = [min(max(place + size if place < 0 else place, 0), size) for place in places] + [size]
    starts = [0, *ends[:-1]]
    return [b.add(nn.SliceOp(value, axis, min(a, z), max(min(a, z), z))) for a, z in zip(starts, ends, strict=True)]


def _sections(b: Builder, value: SSAValue, axis: int, count: int) -> list[SSAValue]:
    """`count` pieces, the first ones longer by one where they are not even."""
    size = static_shape(value)[axis]
    if count < 1:
        raise QcompError(f"{count} pieces", code="malformed-graph")
    return pieces(b, value, axis, [size // count + (index < size % count) for index in range(count)])


@op(
    "tensor_split.sections", "tensor_split.indices", "hsplit.int", "hsplit.array", "vsplit.int", "vsplit.array",
    "dsplit.int", "dsplit.array",
)  # fmt: skip
def tensor_split(b: Builder, node: Node) -> Result:
    """So many pieces, or pieces between places."""
    value = b.tensor(node, "self")
    static_shape(value)
    if "tensor_split" in node.target:
        axis = axis_argument(b, node, value)
    else:
        axis = {"h": min(len(shape_of(value)) - 1, 1), "v": 0, "d": 2}[node.target.removeprefix("aten.")[0]]
    if node.argument("sections") is not None:
        return _sections(b, value, axis, b.integer(node, "sections"))
    return _cut(b, value, axis, b.integers(node, "indices"))


@op("sum_to_size.default")
def sum_to_size(b: Builder, node: Node) -> Result:
    """The sum over what a broadcast from `size` would have repeated."""
    value, size = b.tensor(node, "self"), b.integers(node, "size")
    shape = shape_of(value)
    lead = len(shape) - len(size)
    axes = [axis for axis, have in enumerate(shape) if axis < lead or (size[axis - lead] == 1 and have != 1)]
    if axes and dtype_of(value).startswith(("bool", "int", "uint")):
        value = b.cast(value, "int64")
    return reshape_to(b, total(b, value, axes), size)


@op("broadcast_tensors.default")
def broadcast_tensors(b: Builder, node: Node) -> Result:
    """All in their common shape."""
    values = b.tensors(node, "tensors")
    shape: tuple[int, ...] = ()
    for value in values:
        shape = broadcast_shapes(shape, shape_of(value))
    return [b.expand(value, shape) for value in values]


@op("block_diag.default")
def block_diag(b: Builder, node: Node) -> Result:
    """Matrices along the diagonal, zeros elsewhere."""
    values = [at_least(b, value, 2) for value in common(b, b.tensors(node, "tensors"))]
    width, left = sum(static_shape(value)[1] for value in values), 0
    rows: list[SSAValue] = []
    for value in values:
        own = shape_of(value)[1]
        rows.append(b.add(nn.PadOp(value, (0, left), (0, width - left - own), 0.0)))
        left += own
    return joined(b, rows, 0)


@op("cartesian_prod.default")
def cartesian_prod(b: Builder, node: Node) -> Result:
    """All tuples of elements of vectors, one in a row."""
    values = common(b, b.tensors(node, "tensors"))
    sizes = [prod(static_shape(value)) for value in values]
    columns: list[SSAValue] = []
    for axis, value in enumerate(values):
        shape = [1] * len(sizes)
        shape[axis] = sizes[axis]
        columns.append(reshape_to(b, b.expand(reshape_to(b, value, shape), sizes), (prod(sizes), 1)))
    return reshape_to(b, columns[0], (sizes[0],)) if len(columns) == 1 else joined(b, columns, 1)


@op("put.default")
def put(b: Builder, node: Node) -> Result:
    """Elements put, or added, at places of the flat tensor."""
    base, places = b.tensor(node, "self"), b.tensor(node, "index")
    count, source = prod(static_shape(base)), b.cast(b.tensor(node, "source"), dtype_of(base))
    given = (prod(static_shape(places)),)
    index = wrapped(b, reshape_to(b, places, given), count)
    reduce = "add" if b.flag(node, "accumulate") else "none"
    flat = reshape_to(b, base, (count,))
    return reshape_to(b, scattered(b, flat, index, reshape_to(b, source, given), 0, reduce), shape_of(base))


@op("trace.default")
def trace(b: Builder, node: Node) -> Result:
    """The sum of the diagonal; of integers in int64."""
    value = b.tensor(node, "self")
    rows, columns = static_shape(value)
    b.room(min(rows, columns))
    places = np.arange(min(rows, columns), dtype=np.int64) * (columns + 1)
    found = pick(b, reshape_to(b, value, (rows * columns,)), b.constant(places, "int64"), 0)
    whole = dtype_of(value).startswith(("bool", "int", "uint"))
    return total(b, b.cast(found, "int64") if whole else found, [0])


@op("diagflat.default")
def diagflat(b: Builder, node: Node) -> Result:
    """All elements on a diagonal of a matrix of zeros."""
    value, offset = b.tensor(node, "self"), b.integer(node, "offset", 0)
    count = prod(static_shape(value))
    size = count + abs(offset)
    b.room(count)
    steps = np.arange(count, dtype=np.int64)
    places = (steps + max(-offset, 0)) * size + steps + max(offset, 0)
    zeros = b.expand(b.scalar(0, dtype_of(value)), (size * size,))
    put = scattered(b, zeros, b.constant(places, "int64"), reshape_to(b, value, (count,)), 0, "none")
    return reshape_to(b, put, (size, size))


@op("fft_fftshift.default", "fft_ifftshift.default")
def fftshift(b: Builder, node: Node) -> Result:
    """Dimensions turned round by half, so that frequency 0 is in the middle, or back at the start."""
    value = b.tensor(node, "self")
    shape = static_shape(value)
    dims = range(len(shape)) if node.argument("dim") is None else b.integers(node, "dim")
    for dim in dims:
        axis = axis_of(dim, len(shape))
        cut = (shape[axis] + ("ifft" not in node.target)) // 2
        if 0 < cut < shape[axis]:
            ends = (cut, shape[axis]), (0, cut)
            value = b.add(nn.CatOp([b.add(nn.SliceOp(value, axis, start, end)) for start, end in ends], axis))
    return value


@op("adjoint.default", "mH.default", "matrix_H.default")
def adjoint(b: Builder, node: Node) -> Result:
    """The transpose of each matrix; of real numbers."""
    value = b.tensor(node, "self")
    rank = len(shape_of(value))
    return permute_to(b, value, (*range(rank - 2), rank - 1, rank - 2)) if rank > 1 else value
