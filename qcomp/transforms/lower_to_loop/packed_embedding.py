# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embedding from a table that lies as a contraction packs it: an element of a row is a block of channels from the next.

    for n: row = indices[n]; block, channel = divmod(row, B)
      for step: for j: y[n, step * dot + j] = weight[block, step, channel, j]

Where rows of the table are not the channels of the contraction but what it sums over, a row is whole blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from qcomp.dialects.dims import memref_of, sizes_of
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index, MemRef, finish, kernel
from qcomp.transforms.lower_to_loop.coded_embedding import clamped_row
from qcomp.transforms.lower_to_loop.contraction import ContractionKernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.stored import Storage, decoder
from qcomp.transforms.lower_to_loop.tied import PackedTable


@dataclass(frozen=True)
class PackedEmbeddingKernel:
    """All that the code depends on: a table of `rows` x `size`, packed in `block` channels and `dot` neighbours."""

    rows: int
    size: int
    count: int
    element: str
    index: str
    block: int
    dot: int
    across: bool
    storage: Storage | None


def lower_packed_embedding(
    lowering: Lowering, packed: PackedTable, sizes: tuple[int, int], indices: SSAValue, y: SSAValue,
    where: LocationAttr,
) -> None:  # fmt: skip
    """Emit the call. sizes: of the table; indices: [count]; y: [count, size]."""
    spec, (count,) = packed.spec, sizes_of(cast(MemRef, indices.type))
    held = packed.storage
    block, blocks, dot = spec.tile.vectors * spec.lanes, spec.blocks, spec.dot
    element, index = str(_element(y)), str(_element(indices))
    key = PackedEmbeddingKernel(*sizes, count, element, index, block, dot, packed.across, held)
    views = [
        _viewed(lowering, value, (blocks, depth, block, dot) if held is None else (blocks, depth, block))
        for value, depth in zip(packed.buffers, _depths(spec), strict=False)
    ]
    arguments = [*views, indices, y]
    kinds = [cast(MemRef, value.type) for value in arguments]
    lowering.call(key, "embedding", lambda name: _build(key, kinds, name, where), arguments, where)


def fits(packed: PackedTable, y: Buffer) -> bool:
    """Whether an embedding can read its rows from `packed`: they lie in the type of the result, or as codes of it."""
    if packed.spec.storage is not None:
        return not packed.across and y.encoding is None and packed.spec.storage.rows == 1
    return _element(packed.buffers[0]) == y.element


def _depths(spec: ContractionKernel) -> list[int]:
    """What the buffers have for each block."""
    if spec.storage is None:
        return [spec.steps]
    return [spec.storage.groups * spec.storage.held] + [spec.storage.groups] * len(spec.storage.parameters)


def _element(value: SSAValue) -> Attribute:
    return cast(MemRef, value.type).element_type


def _viewed(lowering: Lowering, value: SSAValue, sizes: tuple[int, ...]) -> SSAValue:
    """A constant of a later op in front of all ops, seen in other sizes."""
    lowering.to_front(value)
    element = _element(value)
    buffer = Buffer(value, sizes, Layout(False), None, element)
    return lowering.view(buffer, memref_of(element, sizes))


def _build(spec: PackedEmbeddingKernel, kinds: Sequence[MemRef], name: str, where: LocationAttr) -> FuncOp:
    parameters = [] if spec.storage is None else [hint for hint, _ in spec.storage.parameters]
    hints = ["weight", *parameters, "indices", "y"]
    func, b, values = kernel(name, list(zip(hints, kinds, strict=True)), where)
    use = dict(zip(hints, values, strict=True))
    with b.loop(0, spec.count, kind="parallel") as nest:
        row = clamped_row(b, b.load(use["indices"], [nest.index]), spec.rows)
        if spec.storage is not None:
            _coded_row(spec, spec.storage, b, use, nest.index, row)
        elif spec.across:
            _row_of_blocks(spec, b, use, nest.index, row)
        else:
            _row_of_channels(spec, b, use, nest.index, row)
    return finish(func)


def _divided(b: Builder, row: Index, by: int) -> tuple[Index, Index]:
    """A row's quotient and remainder."""
    if by == 1:
        return row, Index()
    number, divisor = b.value(row), AffineConstantExpr(by)
    return b.apply(AffineExpr.symbol(0) // divisor, [number]), b.apply(AffineExpr.symbol(0) % divisor, [number])


def _row_of_channels(
    spec: PackedEmbeddingKernel, b: Builder, use: dict[str, SSAValue], result: Index, row: Index
) -> None:
    block, channel = _divided(b, row, spec.block)
    whole = spec.size // spec.dot

    def copy(step: Index | int, count: int) -> None:
        for place in range(count):
            element = b.load(use["weight"], [block, step, channel, place])
            b.store(element, use["y"], [result, Index.of(step) * spec.dot + place])

    with b.loop(0, whole) as steps:
        copy(steps.index, spec.dot)
    copy(whole, spec.size % spec.dot)


def _row_of_blocks(
    spec: PackedEmbeddingKernel, b: Builder, use: dict[str, SSAValue], result: Index, row: Index
) -> None:
    step, place = _divided(b, row, spec.dot)
    whole, rest = divmod(spec.size, spec.block)

    def copy(block: Index | int, count: int) -> None:
        with b.loop(0, count) as channels:
            element = b.load(use["weight"], [block, step, channels.index, place])
            b.store(element, use["y"], [result, Index.of(block) * spec.block + channels.index])

    if whole:
        with b.loop(0, whole) as blocks:
            copy(blocks.index, spec.block)
    if rest:
        copy(whole, rest)


def _coded_row(
    spec: PackedEmbeddingKernel, held: Storage, b: Builder, use: dict[str, SSAValue], result: Index, row: Index
) -> None:
    block, channel = _divided(b, row, spec.block)
    codes = 2 if held.nibbles else 1
    with b.loop(0, held.groups) as groups:
        parameters = {name: b.load(use[name], [block, groups.index, channel]) for name, _ in held.parameters}
        read = decoder(b, held, parameters.__getitem__, None)

        def copy(step: Index | int, count: int) -> None:
            byte = b.load(use["weight"], [block, groups.index * held.held + step, channel])
            for place, real in enumerate(read.reals(byte)[:count]):
                b.store(real, use["y"], [result, groups.index * held.group + Index.of(step) * codes + place])

        with b.loop(0, held.group // codes) as steps:
            copy(steps.index, codes)
        if held.group % codes:
            copy(held.held - 1, 1)
