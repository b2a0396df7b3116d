# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that accumulate 16 partial results, in the order of `qcomp.interpreter.reference.reduction`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from qcomp.dialects import loop
from qcomp.dialects.dim import is_symbolic
from qcomp.interpreter.reference.reduction import PARTIALS
from qcomp.transforms.lower_to_loop.builder import Builder, Index
from qcomp.transforms.lower_to_loop.lanes import Chunk

Tiles = Sequence[SSAValue]
LaneStep = Callable[[SSAValue, Index, Chunk], SSAValue]
"""(accumulator, index of the first element, chunk) -> accumulator."""


def lane_chunks(size: int) -> list[Chunk]:
    """`size` elements as tiles of 16, the last one possibly cut."""
    whole = size - size % PARTIALS
    parts = [Chunk(0, whole, PARTIALS, (PARTIALS,))] if whole != 0 else []
    if size != whole:
        parts.append(Chunk(whole, size, PARTIALS, (PARTIALS,), size - whole))
    return parts


def in_lanes(b: Builder, size: int, acc: SSAValue, step: LaneStep) -> SSAValue:
    """Partial results in the lanes of one tile."""
    for part in lane_chunks(size):
        with b.loop(part.start, part.stop, part.step, carry=[acc]) as nest:
            nest.carry(step(nest.carried[0], nest.index, part))
        acc = nest.results[0]
    return acc


def in_registers(b: Builder, size: int, acc: Tiles, step: Callable[[SSAValue, Index], SSAValue]) -> Tiles:
    """A tile for each partial result; there may be fewer than 16 when there are no more elements."""
    count = len(acc)
    whole = size - size % count

    def steps(old: Tiles, first: Index | int) -> list[SSAValue]:
        return [step(tile, Index.of(first) + number) for number, tile in enumerate(old)]

    with b.loop(0, whole, count, carry=acc) as nest:
        nest.carry(*steps(nest.carried, nest.index))
    rest = size - whole
    if is_symbolic(rest):
        return [_if_there(b, tile, whole + number, size, step) for number, tile in enumerate(nest.results)]
    return [*steps(nest.results[:rest], whole), *nest.results[rest:]]


def _if_there(
    b: Builder, tile: SSAValue, place: int, size: int, step: Callable[[SSAValue, Index], SSAValue]
) -> SSAValue:
    """`step` with the element at `place` if there is one."""
    with b.loop(place, [place + 1, size], carry=[tile]) as nest:
        nest.carry(step(nest.carried[0], nest.index))
    return nest.results[0]


def partial_count(size: int) -> int:
    """The partial results that `size` elements give."""
    return PARTIALS if is_symbolic(size) else min(PARTIALS, max(size, 1))


def halved(tiles: Tiles, combine: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """What `loop.reduce` does with 16 elements, of which only the first ones exist."""
    found, half = list(tiles), PARTIALS // 2
    while len(found) > 1:
        pairs = zip(found[:half], found[half:], strict=False)
        found[: max(len(found) - half, 0)] = [combine(one, other) for one, other in pairs]
        found, half = found[:half], half // 2
    return found[0]


def sum_in_lanes(b: Builder, size: int, load: Callable[[Index, Chunk], SSAValue]) -> SSAValue:
    """The sum of `size` floats; what `load` returns beyond the last one does not count."""

    def step(acc: SSAValue, index: Index, part: Chunk) -> SSAValue:
        return b.add(arith.AddfOp(acc, kept(b, load(index, part), part, 0.0)))

    return b.add(loop.ReduceOp("add", in_lanes(b, size, b.real(0.0, (PARTIALS,)), step)))


def largest_in_lanes(b: Builder, size: int, load: Callable[[Index, Chunk], SSAValue]) -> SSAValue:
    """The largest of `size` floats."""

    def step(acc: SSAValue, index: Index, part: Chunk) -> SSAValue:
        return b.add(loop.MaximumOp(kept(b, load(index, part), part, -np.inf), acc))

    return b.add(loop.ReduceOp("max", in_lanes(b, size, b.real(-np.inf, (PARTIALS,)), step)))


def kept(b: Builder, tile: SSAValue, part: Chunk, neutral: float) -> SSAValue:
    """The tile with `neutral` beyond the last element."""
    return tile if part.valid is None else b.add(loop.FillOp(tile, part.valid, neutral))
