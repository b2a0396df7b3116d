# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of writes into tensors: the part is written over the old value where nothing reads that any more.

So an update of a cache that lives in the state costs the slice that is written. Elsewhere the old value is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Block, BlockArgument, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dims import attribute_size, memref_of
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import finish, kernel
from qcomp.transforms.lower_to_loop.coded_embedding import clamped_row
from qcomp.transforms.lower_to_loop.driver import Lowering, root_of
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS, IN_LANES
from qcomp.transforms.lower_to_loop.lanes import chunks
from qcomp.transforms.lower_to_loop.movement import copy, move
from qcomp.transforms.lower_to_loop.registry import ALL, lowers
from qcomp.transforms.lower_to_loop.through_reals import recoded


def written_over(lowering: Lowering, op: nn.WriteOp) -> Buffer:
    """A row-major buffer for the result of `op` that holds the base: the base's own memory when it may be reused."""
    encoding = encoding_of(op.result.type)
    base = recoded(lowering, lowering.row_major(op.base, op.location), encoding, op.location)
    if _dies(lowering, op, base):
        kind = memref_of(base.element, base.sizes)
        target = Buffer(lowering.view(base, kind), base.sizes, Layout(False), encoding, base.element)
        lowering.buffers[op.result] = target
        return target
    target = lowering.define(op.result, op.location, Layout(False))
    copy(lowering, base, target, op.location)
    return target


def _dies(lowering: Lowering, op: nn.WriteOp, base: Buffer) -> bool:
    """Whether the memory of `base` may be changed, and nothing after `op` reads any tensor that lies in it.

    All those tensors must be defined beside `op`: a loop around it would read one from outside again.
    """
    roots = {root_of(base.value)}
    if op.base in lowering.buffers:
        roots.add(root_of(lowering.buffers[op.base].value))
    if not all(isinstance(root.owner, AllocOp) or root in lowering.own for root in roots):
        return False
    sharing = [value for value, buffer in lowering.buffers.items() if root_of(buffer.value) in roots]
    others = {value for value in op.operands if value is not op.base}
    if any(value in sharing for value in others):
        return False
    return all(_beside(value, op.parent) and lowering.used_up(value, op) for value in sharing)


def _beside(value: SSAValue, block: Block | None) -> bool:
    return (value.block if isinstance(value, BlockArgument) else value.owner.parent_block()) is block  # pyright: ignore


@lowers(nn.InsertSliceOp, elements=ALL, symbolic=True)
def lower_insert_slice(lowering: Lowering, op: nn.InsertSliceOp) -> None:
    """A copy of the source into its place."""
    target = written_over(lowering, op)
    source = recoded(lowering, lowering.operand(op.source), target.encoding, op.location)
    dim, start, step = op.dim.value.data, attribute_size(op.start), op.step.value.data
    rank = len(source.sizes)
    offsets = [start if axis == dim else 0 for axis in range(rank)]
    steps = [step if axis == dim else 1 for axis in range(rank)]
    if 0 not in source.sizes:
        move(
            lowering, source, target, op.location, "insert", source.sizes, range(rank), None, None, offsets, steps
        )  # fmt: skip


@dataclass(frozen=True)
class IndexCopyKernel:
    """All that the code depends on: `outer` blocks of `rows` rows of `size` elements, `count` rows written."""

    outer: int
    rows: int
    size: int
    count: int
    element: str
    index: str
    lanes: int


@lowers(nn.IndexCopyOp, elements=ALL, symbolic=True)
def lower_index_copy(lowering: Lowering, op: nn.IndexCopyOp) -> None:
    """A copy of a row per index, in order; an index beyond either end is taken for that end."""
    where = op.location
    target = written_over(lowering, op)
    source = recoded(lowering, lowering.row_major(op.source, where), target.encoding, where)
    indices = lowering.row_major(op.indices, where)
    if str(indices.element) not in ("i32", "i64"):
        raise QcompError("indices of index_copy must be i32 or i64 to be lowered to loops", code="lower")
    dim = op.dim.value.data
    outer, rows, size = prod(target.sizes[:dim]), target.sizes[dim], prod(target.sizes[dim + 1 :])
    count = source.sizes[dim]
    if 0 in source.sizes:
        return
    lanes = lowering.target.lanes if str(source.element) in IN_LANES else 1
    spec = IndexCopyKernel(outer, rows, size, count, str(source.element), str(indices.element), lanes)
    arguments = [
        lowering.view(source, memref_of(source.element, (outer, count, size))),
        lowering.view(indices, memref_of(indices.element, (count,))),
        lowering.view(target, memref_of(target.element, (outer, rows, size))),
    ]
    lowering.call(spec, "index_copy", lambda name: _build(spec, name, where), arguments, where)


def _build(spec: IndexCopyKernel, name: str, where: LocationAttr) -> FuncOp:
    element = ELEMENTS[spec.element]
    arguments = [
        ("source", memref_of(element, (spec.outer, spec.count, spec.size))),
        ("indices", memref_of(ELEMENTS[spec.index], (spec.count,))),
        ("y", memref_of(element, (spec.outer, spec.rows, spec.size))),
    ]
    func, b, (source, indices, y) = kernel(name, arguments, where)
    with b.loop(0, spec.count) as nest:
        row = clamped_row(b, b.load(indices, [nest.index]), spec.rows)
        with b.loop(0, spec.outer) as outer:
            for part in chunks(spec.size, element, spec.lanes):
                with b.loop(part.start, part.stop, part.step) as column:
                    over = (2,) if part.shape else ()
                    place = [outer.index, nest.index, column.index]
                    tile = b.load(source, place, part.shape, over, None, part.valid)
                    b.store(tile, y, [outer.index, row, column.index], over, None, part.valid)
    return finish(func)
