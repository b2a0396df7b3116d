# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of pools: loops over windows clipped to the input, channels in the lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, LocationAttr, f32, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from qcomp.dialects import loop, nn
from qcomp.dialects.constant import Array
from qcomp.dialects.dim import bounds, is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import integer_range
from qcomp.dialects.nn.base import ints
from qcomp.errors import QcompError
from qcomp.interpreter.reference.pooling import Window, adaptive_windows, average_counts
from qcomp.transforms.lower_to_loop.access import Seen, load_lanes, store_lanes
from qcomp.transforms.lower_to_loop.buffers import Buffer, physical_shape
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS, Codes, dequantized, lane_choice, quantized
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.registry import REALS, lowers


@dataclass(frozen=True)
class Axis:
    """How one input dimension is reduced: by a sliding window, or with `adaptive` by that many windows covering it.

    overhangs: some window reaches outside the input.
    """

    size: int
    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    adaptive: int = 0
    overhangs: bool = False

    def taps(self, b: Builder, position: Index | int) -> tuple[Sequence[Index | int], Sequence[Index | int]]:
        """Bounds of the tap number for the window at `position`: clipped to the input."""
        if self.adaptive == 1:
            return [0], [self.size]
        if self.adaptive:
            at, out = b.value(b.times(position, self.size)), self.adaptive
            end = b.value(Index(((at, 1),)) + self.size)
            symbol = AffineExpr.symbol(0)
            return [b.apply(symbol // out, [at])], [b.apply((symbol + (out - 1)) // out, [end])]
        start = Index.of(position) * self.stride - self.padding
        if not self.overhangs:
            return [0], [self.kernel]
        if self.dilation == 1:
            return [0, start * -1], [self.kernel, start * -1 + self.size]
        # Truncation is as good as rounding down here: a negative bound is below 0 either way.
        low, high = (b.value(start * -1 + end + self.dilation - 1) for end in (0, self.size))
        symbol = AffineExpr.symbol(0) // self.dilation
        return [0, b.apply(symbol, [low])], [self.kernel, b.apply(symbol, [high])]

    def count(self, b: Builder, position: Index | int, include_pad: bool) -> SSAValue:
        """How many elements the window at `position` is said to have, as an index."""
        if self.adaptive:
            (low,), (high,) = self.taps(b, position)
            return b.value(Index.of(high) - low)
        start, border = Index.of(position) * self.stride - self.padding, self.padding if include_pad else 0
        end = b.add(arith.MinSIOp(b.value(start + self.kernel), b.value(Index.of(self.size) + border)))
        first = b.value(start) if include_pad else b.add(arith.MaxSIOp(b.value(start), b.value(0)))
        return b.add(arith.SubiOp(end, first))

    def source(self, position: Index | int, tap: Index) -> Index:
        """The input index of a tap."""
        return tap if self.adaptive else Index.of(position) * self.stride + tap * self.dilation - self.padding


@dataclass(frozen=True)
class ReduceKernel:
    """All that the code of a pool or reduction depends on. axes: reduced logical dimensions of the input.

    keep: for each dimension of the result, the dimension of the input it walks along or slides over.
    """

    kind: str
    source: Seen
    target: Seen
    axes: tuple[tuple[int, Axis], ...]
    keep: tuple[int, ...]
    source_codes: Codes | None
    target_codes: Codes | None
    table: tuple[int, ...]
    lanes: int
    counted: str = ""
    """Sums without a table of divisors: "pad" counts the elements of windows with the padding, "inside" without."""


@lowers(*nn.MAX_POOLS, elements=REALS | {"i32", "i64"}, symbolic=True)
def lower_max_pool(lowering: Lowering, op: nn.MaxPoolOp) -> None:
    """The largest code is the code of the largest number: same encoding in and out."""
    source, target = lowering.operand(op.input), lowering.define(op.result, op.location)
    if source.encoding != target.encoding:
        raise QcompError.at(op, "max pool between different encodings is not lowered", code="lower")
    _pool(lowering, op, "max", source, target, ints(op.dilation), None)


@lowers(*nn.AVG_POOLS, elements=REALS, symbolic=True)
def lower_avg_pool(lowering: Lowering, op: nn.AvgPoolOp) -> None:
    """Sums over clipped windows over a divisor per window."""
    source, target = lowering.operand(op.input), lowering.define(op.result, op.location)
    kernel_size, stride, padding = ints(op.kernel_size), ints(op.stride), ints(op.padding)
    window = Window(kernel_size, stride, padding, (), bool(op.ceil_mode.value.data))
    divisor = None if op.divisor_override is None else op.divisor_override.value.data
    sizes, include = source.sizes[-op.SPATIAL :], bool(op.count_include_pad.value.data)
    counts: Array | str = "pad" if include else "inside"
    if divisor is not None or (include and not window.ceil_mode):
        counts = np.array([math.prod(kernel_size) if divisor is None else divisor])
    elif not any(map(is_symbolic, sizes)):
        counts = average_counts(sizes, window, include, divisor)
    _pool(lowering, op, "sum", source, target, op.dilation_sizes, counts)


def _pool(
    lowering: Lowering, op: nn.PoolOp, kind: str, source: Buffer, target: Buffer,
    dilation: tuple[int, ...], counts: Array | str | None,
) -> None:  # fmt: skip
    rank = len(source.sizes)
    kernel_size, stride, padding = ints(op.kernel_size), ints(op.stride), ints(op.padding)
    axes = tuple(
        (dim, sliding(source.sizes[dim], target.sizes[dim], kernel_size[i], stride[i], padding[i], dilation[i]))
        for i, dim in enumerate(range(rank - op.SPATIAL, rank))
    )
    _reduce(lowering, op.location, op.name, kind, source, target, axes, tuple(range(rank)), counts)


def sliding(size: int, count: int, taps: int, stride: int, padding: int, dilation: int) -> Axis:
    """A window that slides over `size` elements and stops at `count` places."""
    last = (count - 1) * stride - padding + (taps - 1) * dilation
    return Axis(size, taps, stride, padding, dilation, overhangs=padding > 0 or bounds(last - size)[1] >= 0)


@lowers(*nn.ADAPTIVE_AVG_POOLS, elements=REALS, symbolic=True)
def lower_adaptive_avg_pool(lowering: Lowering, op: nn.AdaptiveAvgPoolOp) -> None:
    """Sums over windows that cover the input."""
    source, target = lowering.operand(op.input), lowering.define(op.result, op.location)
    sizes = source.sizes[-op.SPATIAL :]
    if any(map(is_symbolic, sizes)):
        _spread(lowering, op, "sum", source, target, "inside")
        return
    pairs = zip(sizes, ints(op.output_size), strict=True)
    lengths = [np.array([high - low for low, high in adaptive_windows(*pair)]) for pair in pairs]
    _spread(lowering, op, "sum", source, target, reduce(np.multiply.outer, lengths))


@lowers(*nn.ADAPTIVE_MAX_POOLS, elements=REALS | {"i32", "i64"}, symbolic=True)
def lower_adaptive_max_pool(lowering: Lowering, op: nn.AdaptiveMaxPoolOp) -> None:
    """The largest code is the code of the largest number: same encoding in and out."""
    source, target = lowering.operand(op.input), lowering.define(op.result, op.location)
    if source.encoding != target.encoding:
        raise QcompError.at(op, "max pool between different encodings is not lowered", code="lower")
    _spread(lowering, op, "max", source, target, None)


def _spread(
    lowering: Lowering, op: nn.AdaptivePoolOp, kind: str, source: Buffer, target: Buffer, counts: Array | str | None
) -> None:
    rank, size = len(source.sizes), ints(op.output_size)
    first = rank - op.SPATIAL
    axes = tuple((first + i, Axis(source.sizes[first + i], 0, adaptive=size[i])) for i in range(op.SPATIAL))
    _reduce(lowering, op.location, op.name, kind, source, target, axes, tuple(range(rank)), counts)


def _reduce(
    lowering: Lowering, where: LocationAttr, name: str, kind: str, source: Buffer, target: Buffer,
    axes: tuple[tuple[int, Axis], ...], keep: tuple[int, ...], counts: Array | str | None,
) -> None:  # fmt: skip
    source_codes = Codes.of(source.encoding) if source.encoding is not None else None
    target_codes = Codes.of(target.encoding) if target.encoding is not None else None
    divisors = None if isinstance(counts, str) else _divisors(counts)
    spec = ReduceKernel(
        kind, Seen.of(source), Seen.of(target), axes, keep, source_codes, target_codes,
        divisors.shape if divisors is not None else (), lowering.target.lanes,
        counts if isinstance(counts, str) else "",
    )  # fmt: skip
    arguments = [source.value, target.value]
    if divisors is not None:
        arguments.insert(1, lowering.constant(divisors, f32))
    short = name.removeprefix("nn.")
    lowering.call(spec, short, lambda symbol: _build(spec, symbol, where), arguments, where)


def _divisors(counts: Array | None) -> Array | None:
    """What sums are divided by: one per window, or a single one."""
    if counts is None:
        return None
    return (counts.reshape(-1)[:1] if len(np.unique(counts)) == 1 else counts).astype(np.float32)


def _build(spec: ReduceKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = [
        memref_of(ELEMENTS[seen.element], physical_shape(seen.sizes, seen.layout))
        for seen in (spec.source, spec.target)
    ]
    arguments = [("x", kinds[0]), ("y", kinds[1])]
    if spec.table:
        arguments.insert(1, ("divisors", memref_of(f32, spec.table)))
    func, b, values = kernel(name, arguments, where)
    _Reduction(spec, b, dict(zip([hint for hint, _ in arguments], values, strict=True))).emit()
    return finish(func)


class _Reduction:
    def __init__(self, spec: ReduceKernel, b: Builder, use: dict[str, SSAValue]):
        self.spec, self.b, self.use = spec, b, use
        inner = lane_choice(spec.source)
        # Lanes lie along the innermost dimension of the input when that is kept, else the code is scalar.
        self.lane = inner if inner not in [axis for axis, _ in spec.axes] else None

    def emit(self) -> None:
        spec, b = self.spec, self.b
        sizes = spec.target.sizes
        lane = spec.keep.index(self.lane) if self.lane is not None else None
        with ExitStack() as stack:
            indices: list[Index | int] = [0] * len(sizes)
            for dim in spec.target.order:
                if dim != lane and sizes[dim] != 1:
                    indices[dim] = stack.enter_context(b.loop(0, sizes[dim])).index
            if lane is None:
                self._window(indices, Chunk(0, 1, 1, ()))
                return
            byte_wise = spec.kind == "max"
            lanes = 1 if spec.source.element == "i64" else spec.lanes
            for part in chunks(sizes[lane], i8 if spec.source.element == "i8" else f32, lanes, byte_wise):
                with b.loop(part.start, part.stop, part.step) as nest:
                    indices[lane] = nest.index
                    self._window(list(indices), part)

    def _window(self, indices: list[Index | int], part: Chunk) -> None:
        spec, b = self.spec, self.b
        position: dict[int, Index | int] = dict(zip(spec.keep, indices, strict=True))
        spans = {axis: how.taps(b, position.get(axis, 0)) for axis, how in spec.axes}
        acc = self._taps(list(spec.axes), spans, position, dict(position), part, self._start(part.shape))
        lane = spec.keep.index(self.lane) if self.lane is not None else 0
        result = acc if spec.kind == "max" else self._average(acc, position, part)
        store_lanes(b, result, self.use["y"], spec.target, indices, lane, part.shape, part.valid)

    def _start(self, shape: tuple[int, ...]) -> SSAValue:
        spec, b = self.spec, self.b
        if spec.kind == "sum":
            return b.real(0.0, shape)
        if spec.source.element in ("i32", "i64"):
            element = cast(IntegerType, ELEMENTS[spec.source.element])
            return b.integer(integer_range(element)[0], shape, element)
        if spec.source_codes is None:
            return b.real(-np.inf, shape)
        return b.byte(spec.source_codes.low, shape)

    def _taps(
        self, axes: list[tuple[int, Axis]], spans: dict[int, tuple[Sequence[Index | int], Sequence[Index | int]]],
        position: dict[int, Index | int], source: dict[int, Index | int], part: Chunk, acc: SSAValue,
    ) -> SSAValue:  # fmt: skip
        if not axes:
            return self._combine(source, part, acc)
        (axis, how), rest = axes[0], axes[1:]
        with self.b.loop(*spans[axis], carry=[acc]) as nest:
            inner = {**source, axis: how.source(position.get(axis, 0), nest.index)}
            nest.carry(self._taps(rest, spans, position, inner, part, nest.carried[0]))
        return nest.results[0]

    def _combine(self, source: dict[int, Index | int], part: Chunk, acc: SSAValue) -> SSAValue:
        spec, b = self.spec, self.b
        indices = [source.get(dim, 0) for dim in range(len(spec.source.sizes))]
        tile = load_lanes(b, self.use["x"], spec.source, indices, self.lane or 0, part.shape, part.valid)
        if spec.kind == "max":
            if spec.source.element in ("i32", "i64"):
                return b.add(arith.MaxSIOp(tile, acc))
            if spec.source_codes is None:
                return b.add(loop.MaximumOp(tile, acc))
            return b.add((arith.MaxUIOp if spec.source_codes.unsigned else arith.MaxSIOp)(acc, tile))
        # Averages of codes often lie half way between two codes: only torch's own steps round them its way.
        return b.add(arith.AddfOp(acc, dequantized(b, tile, spec.source_codes)))

    def _count(self, position: dict[int, Index | int]) -> Index:
        """The elements of a window, at least 1."""
        spec, b = self.spec, self.b
        lengths = [how.count(b, position.get(axis, 0), spec.counted == "pad") for axis, how in spec.axes]
        total = reduce(lambda one, other: b.add(arith.MuliOp(one, other)), lengths)
        return Index(((b.add(arith.MaxSIOp(total, b.value(1))), 1),))

    def _average(self, acc: SSAValue, position: dict[int, Index | int], part: Chunk) -> SSAValue:
        spec, b = self.spec, self.b
        if spec.counted:
            divisor = b.real_count(self._count(position), part.shape)
            return quantized(b, b.add(arith.DivfOp(acc, divisor)), spec.target_codes)
        where: list[Index | int] = [0] if len(spec.table) == 1 else [position.get(axis, 0) for axis, _ in spec.axes]
        divisor = b.load(self.use["divisors"], where)
        divisor = b.broadcast(divisor, part.shape) if part.shape else divisor
        return quantized(b, b.add(arith.DivfOp(acc, divisor)), spec.target_codes)
