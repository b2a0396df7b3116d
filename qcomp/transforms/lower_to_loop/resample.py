# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of take and resample: places of the input are read from a table, lanes lie along another dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, LocationAttr, f32, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import FIX, is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn.base import ints
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.access import Seen, load_lanes, store_lanes
from qcomp.transforms.lower_to_loop.buffers import physical_shape
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel, real_type
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import (
    ELEMENTS,
    IN_LANES,
    Codes,
    codes_in,
    in_reals,
    iterate,
    lane_choice,
)
from qcomp.transforms.lower_to_loop.lanes import Chunk
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import ALL, REALS, lowers
from qcomp.transforms.lower_to_loop.through_reals import recoded


@dataclass(frozen=True)
class ResampleKernel:
    """All that the code depends on: which dimension is read elsewhere, and how many taps are weighted (0: a copy)."""

    source: Seen
    target: Seen
    dim: int
    taps: int
    lanes: int
    source_codes: Codes | None = None
    target_codes: Codes | None = None


@lowers(nn.TakeOp, elements=ALL, symbolic=True)
def lower_take(lowering: Lowering, op: nn.TakeOp) -> None:
    """A copy."""
    source = recoded(lowering, lowering.operand(op.input), encoding_of(op.result.type), op.location)
    target = lowering.define(op.result, op.location)
    table = np.array(ints(op.indices), np.int32)
    dim = op.dim.value.data
    spec = ResampleKernel(Seen.of(source), Seen.of(target), dim, 0, _lanes(lowering, Seen.of(target), dim))
    arguments = [source.value, lowering.constant(table, i32), target.value]
    lowering.call(spec, "take", lambda name: _build(spec, name, op.location), arguments, op.location)


@lowers(nn.ResampleOp, elements=REALS, symbolic=True)
def lower_resample(lowering: Lowering, op: nn.ResampleOp) -> None:
    """Weighted sums."""
    where, dim = op.location, op.dim.value.data
    indices, weights = lowering.array(op.indices), lowering.array(op.weights)
    if indices is None or weights is None or weights.dtype != numpy_dtype(real_type()):
        raise QcompError("indices and weights of resample must be constants, these of its own type", code="lower")
    source = lowering.operand(op.input)
    if is_symbolic(source.sizes[dim]):
        raise QcompError("resampling of a symbolic size is not lowered to loops", code="lower", hint=FIX)
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < source.sizes[dim]:
        raise QcompError("an index of resample is outside its input", code="lower")
    target = lowering.define(op.result, where)
    seen, taps = Seen.of(target), int(indices.shape[1])
    spec = ResampleKernel(
        Seen.of(source), seen, dim, taps, _lanes(lowering, seen, dim), codes_in(source), codes_in(target)
    )  # fmt: skip
    arguments = [source.value, lowering.constant(indices.astype(np.int32), i32)]
    arguments += [lowering.constant(weights, f32), target.value]
    lowering.call(spec, "resample", lambda name: _build(spec, name, where), arguments, where)


def _lanes(lowering: Lowering, target: Seen, dim: int) -> int:
    """1 where the lanes would lie along the dimension that is read at places from a table."""
    wide = target.element in IN_LANES
    return lowering.target.lanes if wide and lane_choice(target) != dim else 1


def _build(spec: ResampleKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = [
        memref_of(ELEMENTS[seen.element], physical_shape(seen.sizes, seen.layout))
        for seen in (spec.source, spec.target)
    ]
    size = spec.target.sizes[spec.dim]
    arguments = [("x", kinds[0]), ("indices", memref_of(i32, (size, spec.taps) if spec.taps else (size,)))]
    if spec.taps:
        arguments.append(("weights", memref_of(f32, (size, spec.taps))))
    func, b, values = kernel(name, [*arguments, ("y", kinds[1])], where)
    in_reals(b, values[0], spec.source_codes)
    in_reals(b, values[-1], spec.target_codes)
    # Tiles of bytes that are no neighbours go a register's worth of lanes at a time.
    lane = lane_choice(spec.target)
    beside = all(lane is None or seen.order[-1] == lane for seen in (spec.source, spec.target))
    element = ELEMENTS[spec.target.element] if beside and not spec.taps else f32
    for indices, lane, part in iterate(b, spec.target, spec.lanes, element):
        place = indices[spec.dim]
        if spec.taps:
            tile = _weighted(spec, b, values, indices, lane, part)
        else:
            tile = _read(spec, b, values[0], indices, _place(b, values[1], [place]), lane, part)
        store_lanes(b, tile, values[-1], spec.target, indices, lane, part.shape, part.valid)
    return finish(func)


def _place(b: Builder, table: SSAValue, where: Sequence[Index | int]) -> Index:
    return Index(((b.add(arith.IndexCastOp(b.load(table, where), IndexType())), 1),))


def _read(
    spec: ResampleKernel, b: Builder, x: SSAValue, indices: Sequence[Index | int], place: Index, lane: int, part: Chunk
) -> SSAValue:
    moved = list(indices)
    moved[spec.dim] = place
    return load_lanes(b, x, spec.source, moved, lane, part.shape, part.valid)


def _weighted(
    spec: ResampleKernel, b: Builder, values: Sequence[SSAValue], indices: Sequence[Index | int], lane: int, part: Chunk
) -> SSAValue:
    m, place = Reals(b, part.shape), indices[spec.dim]

    def product(tap: Index | int) -> SSAValue:
        tile = _read(spec, b, values[0], indices, _place(b, values[1], [place, tap]), lane, part)
        weight = b.load(values[2], [place, tap])
        return m.multiply(tile, b.broadcast(weight, part.shape) if part.shape else weight)

    with b.loop(1, spec.taps, carry=[product(0)], kind="unroll" if spec.taps <= _UNROLLED else None) as nest:
        nest.carry(m.add(nest.carried[0], product(nest.index)))
    return nest.results[0]


_UNROLLED = 4
"""Taps up to which the loop over them is unrolled."""
