# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of softmax: the largest element, powers written to the result, their sum, then one factor for all.

A result of codes cannot hold powers; they are computed twice then.

The sum has the order of `qcomp.interpreter.reference.reduction`. When the reduced dimension is contiguous its elements
fill the lanes, else those of the innermost one do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.dims import memref_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.reduction import PARTIALS
from qcomp.transforms.lower_to_loop.access import Seen, place
from qcomp.transforms.lower_to_loop.buffers import physical_shape, static_shape
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS, Codes, codes_in, in_reals
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.partials import (
    halved,
    in_lanes,
    in_registers,
    kept,
    largest_in_lanes,
    partial_count,
    sum_in_lanes,
)
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import REALS, lowers
from qcomp.transforms.lower_to_loop.transcendental import exp


@dataclass(frozen=True)
class SoftmaxKernel:
    """All that the code depends on: `axis` is a logical dimension; source and target lie alike but for borders."""

    source: Seen
    target: Seen
    axis: int
    lanes: int
    source_codes: Codes | None
    target_codes: Codes | None


@lowers(nn.SoftmaxOp, elements=REALS, symbolic=True)
def lower_softmax(lowering: Lowering, op: nn.SoftmaxOp) -> None:
    """Row by row where the result lies as its readers want it; the operand is laid alike."""
    sizes = static_shape(op.input)
    if not sizes:
        raise QcompError("softmax of a tensor without dimensions is not lowered to loops", code="lower")
    target = lowering.define(op.result, op.location)
    source = lowering.like(op.input, target, op.location)
    axis = op.dim.value.data % len(sizes)
    spec = SoftmaxKernel(
        Seen.of(source), Seen.of(target), axis, lowering.target.lanes, codes_in(source), codes_in(target)
    )  # fmt: skip
    alike = target.encoding is None and source.type == target.type and source.layout == target.layout
    arguments = [source.value, target.value]
    lowering.call(
        spec, "softmax", lambda name: _build(spec, name, op.location), arguments, op.location, [(1, 0)] if alike else []
    )  # fmt: skip


def _build(spec: SoftmaxKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = [
        memref_of(ELEMENTS[seen.element], physical_shape(seen.sizes, seen.layout))
        for seen in (spec.source, spec.target)
    ]
    func, b, (x, y) = kernel(name, list(zip(("x", "y"), kinds, strict=True)), where)
    in_reals(b, x, spec.source_codes)
    in_reals(b, y, spec.target_codes)
    order = spec.target.order
    across = order[-1] == spec.axis
    lane = spec.axis if across else order[-1]
    with ExitStack() as stack:
        indices: list[Index | int] = [0] * len(order)
        for dim in order:
            if dim not in (spec.axis, lane) and spec.target.sizes[dim] != 1:
                indices[dim] = stack.enter_context(b.loop(0, spec.target.sizes[dim], kind="parallel")).index
        row = _Row(spec, b, x, y, indices)
        if across:
            row.across()
        else:
            for part in chunks(spec.target.sizes[lane], f32, spec.lanes):
                with b.loop(part.start, part.stop, part.step, kind="parallel") as nest:
                    indices[lane] = nest.index
                    row.along(part)
    return finish(func)


class _Row:
    """One row, or with lanes along another dimension a register of rows."""

    def __init__(self, spec: SoftmaxKernel, b: Builder, x: SSAValue, y: SSAValue, indices: list[Index | int]):
        self.spec, self.b, self.x, self.y, self.indices = spec, b, x, y, indices
        self.size = spec.target.sizes[spec.axis]
        self.kept = spec.target_codes is None
        """Whether powers are kept in the result."""

    def across(self) -> None:
        b, size = self.b, self.size
        largest = largest_in_lanes(b, size, lambda index, part: self._load(self.x, self.spec.source, index, part))
        if self.spec.lanes == PARTIALS:
            wide = b.broadcast(largest, (PARTIALS,))

            def step(acc: SSAValue, index: Index, part: Chunk) -> SSAValue:
                power = self._power(index, part, wide)
                return b.add(arith.AddfOp(acc, kept(b, power, part, 0.0)))

            acc = in_lanes(b, size, b.real(0.0, (PARTIALS,)), step)
            total = b.add(loop.ReduceOp("add", acc))
        else:
            if self.kept:
                self._each(lambda index, part: self._power(index, part, largest))
            total = sum_in_lanes(b, size, lambda index, part: self._again(index, part, largest))
        factor = b.add(arith.DivfOp(b.real(1.0), total))
        self._each(lambda index, part: self._scale(index, part, b.broadcast(factor, part.shape), largest))

    def along(self, part: Chunk) -> None:
        b, size = self.b, self.size
        with b.loop(0, size, carry=[b.real(-np.inf, part.shape)]) as nest:
            tile = self._load(self.x, self.spec.source, nest.index, part)
            nest.carry(b.add(loop.MaximumOp(tile, nest.carried[0])))
        (largest,) = nest.results
        if self.kept:
            with b.loop(0, size) as row:
                self._power(row.index, part, largest)
        m = Reals(b, part.shape)
        start = [m.number(0.0)] * partial_count(size)
        acc = in_registers(b, size, start, lambda old, index: m.add(old, self._again(index, part, largest)))
        factor = m.divide(m.number(1.0), halved(acc, m.add))
        with b.loop(0, size) as row:
            self._scale(row.index, part, factor, largest)

    def _each(self, act: Callable[[Index, Chunk], object]) -> None:
        for part in chunks(self.size, f32, self.spec.lanes):
            with self.b.loop(part.start, part.stop, part.step) as nest:
                act(nest.index, part)

    def _power(self, index: Index, part: Chunk, largest: SSAValue) -> SSAValue:
        """exp(x - largest), also written to the result where that keeps it."""
        m = Reals(self.b, part.shape)
        distance = m.subtract(self._load(self.x, self.spec.source, index, part), self.b.broadcast(largest, m.shape))
        value = exp(m, distance)
        if self.kept:
            self._store(value, index, part)
        return value

    def _again(self, index: Index, part: Chunk, largest: SSAValue) -> SSAValue:
        """exp(x - largest) once more."""
        return self._load(self.y, self.spec.target, index, part) if self.kept else self._power(index, part, largest)

    def _scale(self, index: Index, part: Chunk, factor: SSAValue, largest: SSAValue) -> None:
        value = self._again(index, part, largest)
        self._store(self.b.add(arith.MulfOp(value, factor)), index, part)

    def _place(self, seen: Seen, index: Index) -> tuple[list[Index | int], Sequence[int]]:
        self.indices[self.spec.axis] = index
        return place(seen, self.indices), (len(seen.order) - 1,)

    def _load(self, memref: SSAValue, seen: Seen, index: Index, part: Chunk) -> SSAValue:
        where, over = self._place(seen, index)
        return self.b.load(memref, where, part.shape, over if part.shape else (), None, part.valid)

    def _store(self, value: SSAValue, index: Index, part: Chunk) -> None:
        where, over = self._place(self.spec.target, index)
        self.b.store(value, self.y, where, over if part.shape else (), None, part.valid)
