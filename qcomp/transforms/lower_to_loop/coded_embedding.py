# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of embedding from a table of codes: only the rows that are picked become reals.

Two codes share a byte that lie a register apart, so that each half of a register of bytes is a register of neighbours;
of what is left over at the end of a group the second half follows the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, LocationAttr, f32, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dims import memref_of
from qcomp.errors import QcompError
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Builder, Index, MemRef, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.stored import Storage, decoder, parameter_constants, store


@dataclass(frozen=True)
class CodedEmbeddingKernel:
    """All that the code depends on: a table of `rows`, `count` indices of type `index`."""

    rows: int
    count: int
    index: str
    storage: Storage
    lanes: int


def lower_coded_embedding(lowering: Lowering, op: nn.EmbeddingOp, weight: CodedWeight, target: Buffer) -> bool:
    """Emit the call; False when the table takes no less room in codes than in reals."""
    lanes, where, count = lowering.target.lanes, op.location, math.prod(target.sizes[:-1])
    stored = store(weight[:, None], 1)
    if stored is not None and stored.storage.nibbles:
        stored = store(weight[:, None, _order(stored.storage, lanes)], 1)
    if stored is None:
        return False
    indices = indices_of(lowering, op)
    spec = CodedEmbeddingKernel(len(weight), count, str(indices.element), stored.storage, lanes)
    arguments = [
        lowering.constant(stored.data[:, 0], i8),
        *parameter_constants(lowering, stored, lambda array: array[:, 0]),
        lowering.view(indices, memref_of(indices.element, (count,))),
        lowering.view(target, memref_of(f32, (count, stored.storage.run))),
    ]
    lowering.call(spec, "embedding", lambda name: _build(spec, name, where), arguments, where)
    return True


def indices_of(lowering: Lowering, op: nn.EmbeddingOp) -> Buffer:
    """The buffer of the indices. Raises QcompError for those that are no i32 or i64."""
    indices = lowering.row_major(op.indices, op.location)
    if str(indices.element) not in ("i32", "i64"):
        raise QcompError("indices of embedding must be i32 or i64 to be lowered to loops", code="lower")
    return indices


def clamped_row(b: Builder, number: SSAValue, rows: int) -> Index:
    """A loaded integer as an index that lies in 0..rows-1."""
    low, high = (b.count(edge, number.type) for edge in (0, rows - 1))
    inside = b.add(arith.MinSIOp(b.add(arith.MaxSIOp(number, low)), high))
    return Index(((b.add(arith.IndexCastOp(inside, IndexType())), 1),))


def _order(storage: Storage, lanes: int) -> list[int]:
    """The places of a row in the order in which they share bytes."""
    group: list[int] = []
    for start in range(0, storage.group, 2 * lanes):
        size = min(2 * lanes, storage.group - start)
        first = -(-size // 2)
        group += [start + half * first + place for place in range(first) for half in (0, 1)][:size]
    return [begin + place for begin in range(0, storage.run, storage.group) for place in group]


def _build(spec: CodedEmbeddingKernel, name: str, where: LocationAttr) -> FuncOp:
    held = spec.storage
    arguments: list[tuple[str, MemRef]] = [("weight", memref_of(i8, (spec.rows, held.groups * held.held)))]
    arguments += [(name, memref_of(kind, (spec.rows, held.groups))) for name, kind in held.parameters]
    arguments.append(("indices", memref_of(ELEMENTS[spec.index], (spec.count,))))
    arguments.append(("y", memref_of(f32, (spec.count, held.run))))
    func, b, values = kernel(name, arguments, where)
    use = {hint: value for (hint, _), value in zip(arguments, values, strict=True)}
    with b.loop(0, spec.count, kind="parallel") as nest:
        row = clamped_row(b, b.load(use["indices"], [nest.index]), spec.rows)
        with b.loop(0, held.groups) as group:
            _group(spec, b, use, (nest.index, row, group.index))
    return finish(func)


def _group(
    spec: CodedEmbeddingKernel, b: Builder, use: dict[str, SSAValue], places: tuple[Index, Index, Index]
) -> None:
    """The reals of one group of a row."""
    held, (result, row, group) = spec.storage, places
    scalars = {name: b.load(use[name], [row, group]) for name, _ in held.parameters}
    for part, counts in _parts(held, spec.lanes):
        over = (1,) if part.shape else ()
        with b.loop(part.start, part.stop, part.step) as nest:
            tiles = {name: b.broadcast(scalar, part.shape) for name, scalar in scalars.items()}
            read = decoder(b, held, tiles.__getitem__, None)
            tile = b.load(use["weight"], [row, group * held.held + nest.index], part.shape, over, None, part.valid)
            place = group * held.group + nest.index * (2 if held.nibbles else 1)
            for real, count in zip(read.reals(tile), counts, strict=False):
                b.store(real, use["y"], [result, place], over, None, _valid(part, count))
                place += counts[0]


def _valid(part: Chunk, count: int) -> int | None:
    return None if not part.shape or count == part.shape[0] else count


def _parts(held: Storage, lanes: int) -> Iterator[tuple[Chunk, list[int]]]:
    """The bytes of a group in chunks, and how many reals each register of a chunk becomes, lower halves first."""
    if not held.nibbles:
        for part in chunks(held.group, f32, lanes):
            yield part, [part.valid or part.step]
        return
    size, shape = lanes, (lanes,) if lanes > 1 else ()
    whole, rest = divmod(held.group, 2 * size)
    if whole:
        yield Chunk(0, whole * size, size, shape), [size, size]
    if rest:
        first = -(-rest // 2)
        valid = first if first < size else None
        counts = [first, rest - first] if rest > first else [first]
        yield Chunk(whole * size, whole * size + 1, 1, shape, valid), counts
