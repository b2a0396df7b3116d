# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of grid_sample: places and weights are computed once per pixel, channels lie in the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, LocationAttr, f32, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.transforms.lower_to_loop.access import Seen
from qcomp.transforms.lower_to_loop.buffers import no_border, physical_shape
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.lanes import chunks
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import REALS, lowers
from qcomp.transforms.lower_to_loop.through_reals import real_result, reals_of


@dataclass(frozen=True)
class SamplingKernel:
    """All that the code depends on; input and result lie channels last."""

    source: Seen
    target: Seen
    nearest: bool
    padding_mode: str
    align: bool
    lanes: int


@lowers(nn.GridSampleOp, elements=REALS, symbolic=True)
def lower_grid_sample(lowering: Lowering, op: nn.GridSampleOp) -> None:
    """Weighted sums of the four pixels around a place, or the nearest one."""
    where, plain = op.location, no_border(4)
    source = reals_of(lowering, lowering.channels_last(op.input, plain, where), where)
    grid = reals_of(lowering, lowering.row_major(op.grid, where), where)
    with real_result(lowering, op.result, where) as target:
        spec = SamplingKernel(
            Seen.of(source), Seen.of(target), op.mode.data == "nearest", op.padding_mode.data,
            bool(op.align_corners.value.data), lowering.target.lanes if target.layout.nhwc else 1,
        )  # fmt: skip
        arguments = [source.value, grid.value, target.value]
        lowering.call(spec, "grid_sample", lambda name: _build(spec, name, where), arguments, where)


def _build(spec: SamplingKernel, name: str, where: LocationAttr) -> FuncOp:
    batch, channels, rows, columns = spec.target.sizes
    kinds = [memref_of(f32, physical_shape(seen.sizes, seen.layout)) for seen in (spec.source, spec.target)]
    arguments = [("x", kinds[0]), ("grid", memref_of(f32, (batch, rows, columns, 2))), ("y", kinds[1])]
    func, b, values = kernel(name, arguments, where)
    with b.loop(0, batch) as image, b.loop(0, rows, kind="parallel") as row, b.loop(0, columns) as column:
        place = [image.index, row.index, column.index]
        m = Reals(b, ())
        height, width = spec.source.sizes[2:]
        across = _coordinate(spec, m, b.load(values[1], [*place, 0]), width)
        down = _coordinate(spec, m, b.load(values[1], [*place, 1]), height)
        taps = _nearest(spec, b, down, across) if spec.nearest else _corners(spec, b, down, across)
        for part in chunks(channels, f32, spec.lanes):
            with b.loop(part.start, part.stop, part.step) as channel:
                total = _sum(spec, b, values[0], image.index, channel.index, taps, (part.shape, part.valid))
                logical = [image.index, channel.index, row.index, column.index]
                target = [
                    logical[dim] + start for dim, start in zip(spec.target.order, spec.target.origin, strict=True)
                ]
                b.store(total, values[2], target, (3,) if part.shape else (), None, part.valid)
    return finish(func)


def _coordinate(spec: SamplingKernel, m: Reals, x: SSAValue, size: int) -> SSAValue:
    whole = size - spec.align
    half = m.multiply(_count(m, whole), m.number(0.5)) if is_symbolic(whole) else m.number(whole / 2)
    place = m.multiply(m.add(x, m.number(1.0)), half)
    place = place if spec.align else m.subtract(place, m.number(0.5))
    if spec.padding_mode == "zeros":
        return _between(m, place, -2.0, size + 1)
    if spec.padding_mode == "reflection":
        place = _reflected(spec, m, place, size)
    return _between(m, place, 0.0, size - 1)


def _count(m: Reals, size: int) -> SSAValue:
    """A size as a real."""
    return m.b.real_count(size) if is_symbolic(size) else m.number(float(size))


def _between(m: Reals, x: SSAValue, low: float, high: int) -> SSAValue:
    """Clamped to [low, high]; NaN stays."""
    if not is_symbolic(high):
        return m.clamp(x, low, float(high))
    return m.b.add(loop.MinimumOp(m.clamp(x, low, float("inf")), _count(m, high)))


def _reflected(spec: SamplingKernel, m: Reals, place: SSAValue, size: int) -> SSAValue:
    span, start = (2 * (size - 1), 0.0) if spec.align else (2 * size, 0.5)
    if span == 0:
        return m.number(0.0)
    away = m.absolute(m.add(place, m.number(start)))
    flips = m.clamp(m.divide(away, _count(m, span)), 0.0, 2.0**30)
    flips = m.to_real(m.b.add(loop.TruncateOp(flips, i32)))
    extra = m.subtract(away, m.multiply(flips, _count(m, span)))
    nearer = m.subtract(m.b.add(loop.MinimumOp(extra, m.subtract(_count(m, span), extra))), m.number(start))
    if not is_symbolic(span):
        return nearer
    # Of one element only that one is there.
    return m.select("eq", _count(m, span), 0.0, m.number(0.0), nearer)


Tap = tuple[Index, Index, SSAValue, SSAValue]
"""Row, column, weight, and 1 inside the image or 0: what lies outside counts as 0, whatever stands at the edge."""


def _nearest(spec: SamplingKernel, b: Builder, down: SSAValue, across: SSAValue) -> list[Tap]:
    m = Reals(b, ())
    row, column = (b.add(loop.TruncateOp(m.round(side), i32)) for side in (down, across))
    return [_tap(spec, b, row, column, b.real(1.0))]


def _corners(spec: SamplingKernel, b: Builder, down: SSAValue, across: SSAValue) -> list[Tap]:
    m = Reals(b, ())
    (top, north), (left, west) = (_floor(m, side) for side in (down, across))
    south, east = m.subtract(m.number(1.0), north), m.subtract(m.number(1.0), west)
    one = b.integer(1)
    rows, columns = (top, b.sum(top, one)), (left, b.sum(left, one))
    weights = ((0, 0, east, south), (0, 1, west, south), (1, 0, east, north), (1, 1, west, north))
    return [_tap(spec, b, rows[i], columns[j], m.multiply(first, second)) for i, j, first, second in weights]


def _floor(m: Reals, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The whole number below x, and how far x is from it."""
    b = m.b
    whole = b.add(loop.TruncateOp(x, i32))
    above = b.add(loop.CompareOp("gt", m.to_real(whole), x))
    whole = b.add(loop.SelectOp(above, b.difference(whole, b.integer(1)), whole))
    return whole, m.subtract(x, m.to_real(whole))


def _tap(spec: SamplingKernel, b: Builder, row: SSAValue, column: SSAValue, weight: SSAValue) -> Tap:
    places: list[Index] = []
    inner = b.real(1.0)
    for number, size in zip((row, column), spec.source.sizes[2:], strict=True):
        last = b.count(size - 1, i32)
        inside = b.add(arith.MinSIOp(b.add(arith.MaxSIOp(number, b.integer(0))), last))
        inner = b.add(loop.SelectOp(b.add(loop.CompareOp("eq", inside, number)), inner, b.real(0.0)))
        places.append(Index(((b.add(arith.IndexCastOp(inside, IndexType())), 1),)))
    return places[0], places[1], weight, inner


def _sum(
    spec: SamplingKernel, b: Builder, x: SSAValue, image: Index, channel: Index, taps: Sequence[Tap],
    tile: tuple[tuple[int, ...], int | None],
) -> SSAValue:  # fmt: skip
    shape, valid = tile
    m = Reals(b, shape)
    total: SSAValue | None = None
    for row, column, weight, inner in taps:
        logical = [image, channel, row, column]
        place = [logical[dim] + start for dim, start in zip(spec.source.order, spec.source.origin, strict=True)]
        value = b.load(x, place, shape, (3,) if shape else (), None, valid)
        weight, inner = (b.broadcast(number, shape) if shape else number for number in (weight, inner))
        value = m.select("ne", inner, 0.0, value, m.number(0.0))
        if spec.nearest:
            return value
        part = m.multiply(value, weight)
        total = part if total is None else m.add(total, part)
    assert total is not None
    return total
