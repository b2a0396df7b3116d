# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of sum, mean and amax over whole dimensions, in the order of `qcomp.interpreter.reference.reduction`.

16 partial results lie in the lanes of one register when the last reduced dimension is contiguous. When a kept dimension
is, its elements fill the lanes and there is a register for each partial result. Codes need no order: one is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, f32, i8, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.binding import symbol_ranges
from qcomp.dialects.dim import bounds, is_symbolic
from qcomp.dialects.dims import declared_symbols, memref_of
from qcomp.dialects.element import is_integer
from qcomp.errors import QcompError
from qcomp.interpreter.reference.integer_plan import largest_distance
from qcomp.interpreter.reference.reduction import PARTIALS, anchor_of, anchor_places
from qcomp.transforms.lower_to_loop.access import Seen, load_lanes, place, store_lanes
from qcomp.transforms.lower_to_loop.along import reduce_in_order
from qcomp.transforms.lower_to_loop.buffers import Buffer, physical_shape
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS, Codes, quantized
from qcomp.transforms.lower_to_loop.held import plain_element
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.partials import Tiles, halved, in_lanes, in_registers, partial_count
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import INTEGERS, REALS, lowers


@dataclass(frozen=True)
class ReductionKernel:
    """All that the code depends on. axes: reduced dimensions; keep: the input's dimension of each one of the result.

    divisor: of sums; 1 for none. wide: sums of codes are held in 64 bits, one element after the other. shifted: the
    sum is of distances from an anchor, which is added to their mean.
    """

    kind: str
    source: Seen
    target: Seen
    axes: tuple[int, ...]
    keep: tuple[int, ...]
    source_codes: Codes | None
    target_codes: Codes | None
    divisor: int
    lanes: int
    wide: bool = False
    shifted: bool = False

    @property
    def last(self) -> int:
        """The reduced dimension along which partial results alternate."""
        return self.axes[-1]

    @property
    def across(self) -> bool:
        """Whether partial results lie in lanes: the last reduced dimension is contiguous."""
        return self.source.order[-1] == self.last

    @property
    def lane(self) -> int:
        """The kept dimension whose elements lie in lanes."""
        return self.source.order[-1]


@lowers(nn.MeanOp, elements=REALS, symbolic=True)
@lowers(nn.SumOp, elements=REALS | INTEGERS, symbolic=True)
@lowers(nn.AmaxOp, elements=REALS | INTEGERS | {"i1"}, symbolic=True)
def lower_reduce(lowering: Lowering, op: nn.MeanOp | nn.SumOp | nn.AmaxOp) -> None:
    """A reduction over whole dimensions; row-major unless a kept or the last reduced dimension is contiguous."""
    element = plain_element(op.input)
    if element is not None and (not op.axes or is_integer(element)):
        reduce_in_order(lowering, op, "max" if isinstance(op, nn.AmaxOp) else "add")
        return
    source = lowering.operand(op.input)
    if not op.axes:
        raise QcompError("a reduction of a tensor without dimensions is not lowered to loops", code="lower")
    innermost = Seen.of(source).order[-1]
    if innermost in op.axes[:-1]:
        source = lowering.row_major(op.input, op.location)
    kind = "max" if isinstance(op, nn.AmaxOp) else "add"
    target = lowering.define(op.result, op.location)
    count = math.prod([source.sizes[axis] for axis in op.axes])
    wide = _check(lowering, kind, source, target, count)
    keepdim = bool(op.keepdim.value.data)
    keep = tuple(dim for dim in range(len(source.sizes)) if keepdim or dim not in op.axes)
    spec = ReductionKernel(
        kind, Seen.of(source), Seen.of(target), op.axes, keep,
        None if source.encoding is None else Codes.of(source.encoding),
        None if target.encoding is None else Codes.of(target.encoding),
        count if isinstance(op, nn.MeanOp) else 1, 1 if wide else lowering.target.lanes, wide,
        isinstance(op, nn.MeanOp) and op.shifted is not None and source.encoding is None and count != 0,
    )  # fmt: skip
    arguments = [source.value, target.value]
    name = op.name.removeprefix("nn.")
    lowering.call(spec, name, lambda symbol: _build(spec, symbol, op.location), arguments, op.location)


def _check(lowering: Lowering, kind: str, source: Buffer, target: Buffer, count: int) -> bool:
    """Whether sums need 64 bits. Raises QcompError for what is not lowered."""
    if count == 0 and kind == "max":
        raise QcompError("the largest of no elements", code="shape")
    if kind == "max" and source.encoding != target.encoding:
        raise QcompError("amax between different encodings is not lowered", code="lower")
    if kind == "add" and source.encoding is not None:
        most = bounds(count, symbol_ranges(declared_symbols(lowering.source)))[1]
        return most * largest_distance(source.encoding) >= 2**31
    return False


def _build(spec: ReductionKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = [
        memref_of(ELEMENTS[seen.element], physical_shape(seen.sizes, seen.layout))
        for seen in (spec.source, spec.target)
    ]
    func, b, values = kernel(name, list(zip(("x", "y"), kinds, strict=True)), where)
    _Reduction(spec, b, values).emit()
    return finish(func)


class _Reduction:
    def __init__(self, spec: ReductionKernel, b: Builder, values: Sequence[SSAValue]):
        self.spec, self.b = spec, b
        self.x, self.y = values
        self.anchor: SSAValue | None = None

    def emit(self) -> None:
        spec, b = self.spec, self.b
        sizes = spec.target.sizes
        lane = None if spec.across else spec.keep.index(spec.lane)
        with ExitStack() as stack:
            indices: list[Index | int] = [0] * len(sizes)
            for dim in spec.target.order:
                if dim != lane and sizes[dim] != 1:
                    indices[dim] = stack.enter_context(b.loop(0, sizes[dim], kind="parallel")).index
            if lane is None:
                found = (self._one_by_one if spec.wide else self._across)(self._source(indices))
                b.store(self._finish(found), self.y, place(spec.target, indices))
                return
            element = i8 if spec.source_codes is not None and spec.kind == "max" and self._flat(lane) else f32
            for part in chunks(sizes[lane], element, spec.lanes):
                with b.loop(part.start, part.stop, part.step, kind="parallel") as nest:
                    indices[lane] = nest.index
                    source = self._source(indices)
                    result = self._finish(self._one_by_one(source) if spec.wide else self._along(source, part))
                    store_lanes(b, result, self.y, spec.target, indices, lane, part.shape, part.valid)

    def _flat(self, lane: int) -> bool:
        """Whether lanes are contiguous in the result too."""
        return self.spec.target.order[-1] == lane

    def _source(self, indices: Sequence[Index | int]) -> list[Index | int]:
        """The input's index where the reduction starts."""
        found: list[Index | int] = [0] * len(self.spec.source.sizes)
        for own, index in zip(self.spec.keep, indices, strict=True):
            found[own] = 0 if own in self.spec.axes else index
        return found

    def _one_by_one(self, indices: list[Index | int]) -> SSAValue:
        """A sum of codes in 64 bits."""
        spec, b = self.spec, self.b
        codes, size = spec.source_codes, spec.source.sizes[spec.last]
        assert codes is not None

        def inner(acc: Tiles) -> Tiles:
            with b.loop(0, size, carry=acc) as nest:
                indices[spec.last] = nest.index
                code = b.add(loop.ExtendOp(b.load(self.x, place(spec.source, indices)), codes.unsigned))
                nest.carry(b.add(arith.AddiOp(nest.carried[0], b.add(arith.ExtSIOp(code, i64)))))
            return nest.results

        return self._outer(list(spec.axes[:-1]), indices, [b.integer(0, (), i64)], inner)[0]

    def _across(self, indices: list[Index | int]) -> SSAValue:
        """A scalar: partial results in the lanes of one tile, then halved."""
        spec, b = self.spec, self.b
        self.anchor = self._anchor(indices, ())
        size = spec.source.sizes[spec.last]

        def step(acc: SSAValue, index: Index, part: Chunk) -> SSAValue:
            indices[spec.last] = index
            return self._combine(acc, self._load(indices, part))

        def inner(acc: Tiles) -> Tiles:
            return [in_lanes(b, size, acc[0], step)]

        (acc,) = self._outer(list(spec.axes[:-1]), indices, [self._start((PARTIALS,))], inner)
        return b.add(loop.ReduceOp(spec.kind, acc))

    def _along(self, indices: list[Index | int], part: Chunk) -> SSAValue:
        """A tile along a kept dimension: a tile for each partial result, then halved."""
        spec, b = self.spec, self.b
        self.anchor = self._anchor(indices, part.shape, part.valid)
        size = spec.source.sizes[spec.last]
        count = 1 if spec.source_codes is not None else partial_count(size)

        def step(acc: SSAValue, index: Index) -> SSAValue:
            indices[spec.last] = index
            return self._combine(acc, self._load(indices, part))

        def inner(acc: Tiles) -> Tiles:
            return in_registers(b, size, acc, step)

        start = self._start(part.shape)
        acc = self._outer(list(spec.axes[:-1]), indices, [start] * count, inner)
        return halved(acc, self._combine)

    def _outer(self, axes: list[int], indices: list[Index | int], acc: Tiles, inner: Callable[[Tiles], Tiles]) -> Tiles:
        """`inner` for all indices along `axes`, in row-major order."""
        if not axes:
            return inner(acc)
        with self.b.loop(0, self.spec.source.sizes[axes[0]], carry=acc) as nest:
            indices[axes[0]] = nest.index
            nest.carry(*self._outer(axes[1:], indices, nest.carried, inner))
        return nest.results

    def _anchor(self, indices: list[Index | int], shape: tuple[int, ...], valid: int | None = None) -> SSAValue | None:
        """Return the element that distances are measured from; 0 where a symbol makes the reduction empty."""
        spec, b = self.spec, self.b
        if not spec.shifted:
            return None

        def load(sizes: Sequence[int]) -> SSAValue:
            if sizes:
                with b.loop(0, [1, sizes[0]], carry=[b.real(0.0, shape)]) as nest:
                    nest.carry(load(sizes[1:]))
                return nest.results[0]
            return anchor_of(Reals(b, shape), *(self._element(at, shape, valid) for at in elements))

        sizes = [spec.source.sizes[axis] for axis in spec.axes]
        elements: list[list[Index | int]] = []
        for places in anchor_places(sizes):
            at = list(indices)
            for axis, index in zip(spec.axes, places, strict=True):
                at[axis] = index
            elements.append(at)
        return load([size for size in sizes if is_symbolic(size)])

    def _element(self, indices: list[Index | int], shape: tuple[int, ...], valid: int | None) -> SSAValue:
        """A real, or those of a tile along lanes."""
        spec, b = self.spec, self.b
        if spec.across:
            return b.load(self.x, place(spec.source, indices))
        return load_lanes(b, self.x, spec.source, indices, spec.lane, shape, valid)

    def _load(self, indices: Sequence[Index | int], part: Chunk) -> SSAValue:
        """What partial results take in: reals, codes as i32 for sums, bytes for the largest code along lanes."""
        spec, b = self.spec, self.b
        if spec.across:
            over = (len(spec.source.order) - 1,)
            tile = b.load(self.x, place(spec.source, indices), part.shape, over, None, part.valid)
        else:
            tile = load_lanes(b, self.x, spec.source, indices, spec.lane, part.shape, part.valid)
        if spec.source_codes is not None and (spec.kind == "add" or spec.across):
            tile = b.add(loop.ExtendOp(tile, spec.source_codes.unsigned))
        if self.anchor is not None:
            tile = b.add(arith.SubfOp(tile, b.broadcast(self.anchor, part.shape)))
            if spec.across and part.valid is not None:
                tile = b.add(loop.FillOp(tile, part.valid, 0.0))
        if spec.kind == "max" and spec.across and part.valid is not None:
            lowest = -np.inf if spec.source_codes is None else spec.source_codes.low
            tile = b.add(loop.FillOp(tile, part.valid, lowest))
        return tile

    def _start(self, shape: tuple[int, ...]) -> SSAValue:
        codes, b = self.spec.source_codes, self.b
        if self.spec.kind == "add":
            return b.real(0.0, shape) if codes is None else b.integer(0, shape)
        if codes is None:
            return b.real(-np.inf, shape)
        return b.integer(codes.low, shape) if self.spec.across else b.byte(codes.low, shape)

    def _combine(self, acc: SSAValue, tile: SSAValue) -> SSAValue:
        spec, b = self.spec, self.b
        if spec.source_codes is None:
            return b.add(arith.AddfOp(acc, tile) if spec.kind == "add" else loop.MaximumOp(tile, acc))
        if spec.kind == "add":
            return b.add(arith.AddiOp(acc, tile))
        unsigned = spec.source_codes.unsigned and not spec.across
        return b.add((arith.MaxUIOp if unsigned else arith.MaxSIOp)(acc, tile))

    def _finish(self, acc: SSAValue) -> SSAValue:
        """From a sum, zero points included, or the largest element to what is stored."""
        spec, b = self.spec, self.b
        shape = loop.tile_shape(acc.type)
        codes = spec.source_codes
        if spec.kind == "max":
            return b.add(loop.NarrowOp(acc, codes.low, codes.high)) if codes is not None and spec.across else acc
        if codes is not None:
            acc = b.add(loop.ToFloatOp(b.add(arith.SubiOp(acc, self._zeros(codes, shape)))))
            acc = b.add(arith.MulfOp(acc, b.real(codes.scale, shape)))
        if spec.divisor != 1 or codes is not None:
            acc = b.add(arith.DivfOp(acc, b.real_count(spec.divisor, shape)))
        if self.anchor is not None:
            acc = b.add(arith.AddfOp(self.anchor, acc))
        return quantized(b, acc, spec.target_codes)

    def _zeros(self, codes: Codes, shape: tuple[int, ...]) -> SSAValue:
        """The zero points of all that is summed; like the sum it may wrap in 32 bits, their difference does not."""
        spec, b = self.spec, self.b
        count = math.prod([spec.source.sizes[axis] for axis in spec.axes])
        if not is_symbolic(count) and not spec.wide:
            return b.integer((codes.zero_point * count + 2**31) % 2**32 - 2**31, shape)
        zeros = b.add(arith.MuliOp(b.count(count), b.integer(codes.zero_point, (), i64)))
        return zeros if spec.wide else b.broadcast(b.add(arith.TruncIOp(zeros, i32)), shape)
