# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of matmul: with a constant matrix on the right it is a linear; else both sides are read as they lie.

A register tile of rows x columns of the result is accumulated over the inner dimension: a row of the right side is
contiguous, an element of the left side is broadcast. Columns that fill no register are done a few rows at a time.
Codes on both sides are the matter of `coded_matmul`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from xdsl.dialects.builtin import LocationAttr, f32, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import largest_size, memref_of
from qcomp.dialects.element import is_integer
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import Encoding, encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.integer_plan import IntegerPlan, matmul_plan
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.buffers import NO_BORDER, Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.coded_matmul import lower_coded_matmul
from qcomp.transforms.lower_to_loop.contraction import Geometry, build_contraction, contraction_kernel
from qcomp.transforms.lower_to_loop.convolution import call_contraction, packed_weight
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.epilogue import Epilogue
from qcomp.transforms.lower_to_loop.halves import half_of
from qcomp.transforms.lower_to_loop.matrices import batch_loops, own_batch, strips
from qcomp.transforms.lower_to_loop.registry import INTEGERS, REALS, lowers
from qcomp.transforms.lower_to_loop.through_reals import real_result, reals_of
from qcomp.transforms.lower_to_loop.tiles import Tile, choose_tile, nominal, regions
from qcomp.transforms.lower_to_loop.weighted import Task, in_arena, start_values
from qcomp.transforms.lower_to_loop.whole_matmul import lower_whole_matmul

_PLAIN_LANES, _PLAIN_TILE = 4, Tile(1, 2, 1)
"""Columns and rows that plain code accumulates together."""


@dataclass(frozen=True)
class MatmulKernel:
    """All that the code depends on: sizes with equally many batch dimensions, 1 where they broadcast."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    tile: Tile
    lanes: int


@lowers(nn.MatmulOp, elements=REALS | INTEGERS, symbolic=True)
def lower_matmul(lowering: Lowering, op: nn.MatmulOp) -> None:
    """Codes times codes in integers, everything else in reals."""
    where, held = op.location, lowering.coded(op.rhs)
    if held is not None and held.ndim == 2:
        _by_codes(lowering, op, held)
        return
    if half_of(lowering, op.rhs) is not None and len(shape(op.rhs)) == 2:
        lhs = reals_of(lowering, lowering.row_major(op.lhs, where), where)
        with real_result(lowering, op.result, where, Layout(False)) as target:
            _by_constant(lowering, op, lhs, target, None)
        return
    lhs, rhs = lowering.row_major(op.lhs, where), lowering.row_major(op.rhs, where)
    if lhs.encoding is not None and rhs.encoding is not None:
        plan = _plan(lowering, lhs, rhs, encoding_of(op.result.type))
        _lower(lowering, op, lhs, rhs, lowering.define(op.result, where, Layout(False)), plan)
        return
    element = tensor(op.lhs).element_type
    if lhs.encoding is None and is_integer(element):
        lower_whole_matmul(lowering, lhs, rhs, lowering.define(op.result, where, Layout(False)), element, where)
        return
    lhs, rhs = reals_of(lowering, lhs, where), reals_of(lowering, rhs, where)
    with real_result(lowering, op.result, where, Layout(False)) as target:
        _lower(lowering, op, lhs, rhs, target, None)


def _plan(lowering: Lowering, lhs: Buffer, rhs: Buffer, output: Encoding | None) -> IntegerPlan:
    assert lhs.encoding is not None and rhs.encoding is not None
    if rhs.encoding.axis is not None and rhs.encoding.axis != len(rhs.sizes) - 1:
        raise QcompError("right side is quantized along another dimension than its last", code="not-integer")
    inner = largest_size(lhs.sizes[-1], lowering.source)
    if inner == math.inf:
        raise QcompError("the number of products is not bounded", code="not-integer", hint="give the symbol a range")
    return matmul_plan(int(inner), lhs.encoding, rhs.encoding, output)


def _lower(
    lowering: Lowering, op: nn.MatmulOp, lhs: Buffer, rhs: Buffer, target: Buffer, plan: IntegerPlan | None
) -> None:
    weight, encoding = lowering.array(op.rhs), encoding_of(op.rhs.type)
    packed = encoding is None if plan is None else not (rhs.unsigned or plan.rhs_zero)
    if weight is not None and weight.ndim == 2 and packed:
        _by_constant(lowering, op, lhs, target, plan)
    else:
        _by_tensor(lowering, lhs, rhs, target, plan, op.location)


def _by_codes(lowering: Lowering, op: nn.MatmulOp, weight: CodedWeight) -> None:
    """The kernel of a linear in float that makes reals of a matrix of codes as it reads."""
    where = op.location
    lhs = reals_of(lowering, lowering.row_major(op.lhs, where), where)
    run, channels = weight.shape
    rows = math.prod(lhs.sizes[:-1])
    geometry = Geometry(1, 1, rows, channels, 1, 1, 1, run, 0, 0, (1, 1), run, 0, (0, 0))
    with real_result(lowering, op.result, where, Layout(False)) as target:
        task = Task(None, Epilogue(False), weight, None, target, False, source=op.rhs)
        place = ((1, 1, rows, channels), NO_BORDER, (1, 0))
        taps, source = weight.transpose(1, 0)[:, None], (lhs, (1, 1, rows * run))
        call_contraction(lowering, task, geometry, taps, source, [(target, place)], "matmul", where)


def _by_constant(lowering: Lowering, op: nn.MatmulOp, lhs: Buffer, target: Buffer, plan: IntegerPlan | None) -> None:
    """The kernel of a linear: rows of the left side are pixels, columns of the right side output channels."""
    weight = lowering.array(op.rhs)
    assert weight is not None
    taps = np.ascontiguousarray(weight.T)[:, None, :]
    run, channels = int(weight.shape[0]), int(weight.shape[1])
    rows = math.prod(lhs.sizes[:-1])
    epilogue = Epilogue(False) if plan is None else Epilogue.of(plan)
    geometry = Geometry(1, 1, rows, channels, 1, 1, 1, run, 0, 0, (1, 1), run, 0, (0, 0))
    output = (1, 1, rows, channels)
    spec = contraction_kernel(
        lowering.target, geometry, epilogue, lhs.unsigned, (1, 1, rows * run), (output, NO_BORDER), None,
        packed=partial(lowering.tied.vectors, op.rhs),
    )  # fmt: skip
    spec = replace(spec, half=half_of(lowering, op.rhs))
    x = in_arena(lowering, lhs, run, op.location)
    packed = packed_weight(lowering, spec, taps, x.element)
    lowering.tied.note(op.rhs, spec, [packed])
    arguments = [lowering.view(x, memref_of(x.element, (1, 1, rows * run))), packed]
    if plan is None:
        arguments.append(lowering.constant(spec.pack_channels(np.zeros(channels, np.float32)), f32))
    else:
        multiplier = np.broadcast_to(plan.multiplier, (channels,))
        wide = replace(plan, multiplier=multiplier, start=np.zeros(channels, np.int32))
        arguments.append(lowering.constant(spec.pack_channels(start_values(wide, taps)), i32))
        arguments.append(lowering.constant(spec.pack_channels(wide.multiplier), f32))
        arguments += epilogue.constants(lowering, plan)
    arguments.append(lowering.view(target, memref_of(target.element, output)))
    where = op.location
    lowering.call(spec, "matmul", lambda name: build_contraction(spec, name, where), arguments, where)


def _by_tensor(
    lowering: Lowering, lhs: Buffer, rhs: Buffer, target: Buffer, plan: IntegerPlan | None, where: LocationAttr
) -> None:
    batch = target.sizes[:-2]
    if math.prod(rhs.sizes[:-2]) == 1:
        # One right side for all: the batch is more rows.
        rows = math.prod(lhs.sizes[:-1])
        batch, left, right = (), (rows, lhs.sizes[-1]), rhs.sizes[-2:]
        result: tuple[int, ...] = (rows, rhs.sizes[-1])
    else:
        left, right = ((1,) * (len(batch) + 2 - len(side.sizes)) + side.sizes for side in (lhs, rhs))
        result = target.sizes
    if plan is not None:
        lower_coded_matmul(lowering, (left, right, result), lhs, rhs, target, plan, where)
        return
    lanes = lowering.target.lanes if lowering.target.lanes > 1 else _PLAIN_LANES
    rows, columns, inner = map(nominal, (*result[-2:], left[-1]))
    tile = choose_tile(lowering.target, 1, rows, columns, inner, 4 * inner)
    tile = tile if lowering.target.lanes > 1 else _PLAIN_TILE
    spec = MatmulKernel(left, right, result, tile, lanes)
    arguments = [lowering.view(lhs, memref_of(f32, left)), lowering.view(rhs, memref_of(f32, right))]
    arguments.append(lowering.view(target, memref_of(f32, result)))
    lowering.call(spec, "matmul", lambda name: _build(spec, name, where), arguments, where)


def _build(spec: MatmulKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = zip(("x", "weight", "y"), (spec.lhs, spec.rhs, spec.result), strict=True)
    func, b, values = kernel(name, [(hint, memref_of(f32, sizes)) for hint, sizes in kinds], where)
    with ExitStack() as stack:
        batch = batch_loops(b, stack, spec.result[:-2])
        _Body(spec, b, dict(zip(("x", "weight", "y"), values, strict=True)), batch).emit()
    return finish(func)


class _Body:
    """The loops over one matrix of the result."""

    def __init__(self, spec: MatmulKernel, b: Builder, use: dict[str, SSAValue], batch: Sequence[Index]):
        self.spec, self.b, self.use, self.batch = spec, b, use, batch
        self.rows, self.columns = spec.result[-2:]

    def emit(self) -> None:
        spec = self.spec
        if is_symbolic(self.columns):
            self._symbolic_columns()
            return
        whole = self.columns // spec.lanes
        vectors = min(spec.tile.vectors, whole)
        done = 0
        for count in (vectors, whole - whole // vectors * vectors) if vectors else ():
            if count:
                stop = done + (whole - done) // count * count
                self._tiles(done * spec.lanes, stop * spec.lanes, count)
                done = stop
        if done < whole:
            self._strips(done * spec.lanes, whole * spec.lanes, None)
        if self.columns > whole * spec.lanes:
            self._strips(whole * spec.lanes, self.columns, self.columns - whole * spec.lanes)

    def _symbolic_columns(self) -> None:
        """As `emit`, where how many columns there are depends on symbols: each part may be empty."""
        lanes, done = self.spec.lanes, 0
        for count in dict.fromkeys((self.spec.tile.vectors, 1)):
            stop = self.columns // (count * lanes) * (count * lanes)
            self._tiles(done, stop, count)
            done = stop
        whole = self.columns // lanes * lanes
        if done != whole:
            self._strips(done, whole, None)
        if self.columns != whole:
            self._strips(whole, self.columns, self.columns - whole)

    def _tiles(self, first: int, last: int, vectors: int) -> None:
        """Columns in whole registers, `vectors` at a time, by `loop.contract`."""
        spec, b = self.spec, self.b
        with b.loop(first, last, vectors * spec.lanes, kind="parallel") as column:
            for region in regions(Tile(1, spec.tile.columns, vectors), 1, self.rows):
                with b.loop(region.left, region.right, region.columns, kind="parallel") as row:
                    self._tile(row.index, column.index, (region.columns, vectors, spec.lanes))

    def _tile(self, row: Index, column: Index, shape: tuple[int, int, int]) -> None:
        b, rank = self.b, len(self.spec.result)
        rows, vectors, lanes = shape
        with b.loop(0, self.spec.lhs[-1], carry=[b.real(0.0, shape)]) as inner:
            left = b.load(self.use["x"], self._left(row, inner.index), (rows, 1), (rank - 2, rank - 1))
            place = self._right(inner.index, column)
            right = b.load(
                self.use["weight"], place, (vectors, lanes, 1), (rank - 1, rank - 1, rank - 2), (lanes, 1, 1)
            )
            inner.carry(b.add(loop.ContractOp(inner.carried[0], left, right)))
        over, steps = (rank - 2, rank - 1, rank - 1), (1, lanes, 1)
        b.store(inner.results[0], self.use["y"], [*self.batch, row, column], over, steps)

    def _strips(self, first: int, last: int, valid: int | None) -> None:
        strips(self.b, self.spec.lanes, self.rows, (first, last), valid, self._strip)

    def _strip(self, row: Index, column: Index, rows: int, valid: int | None) -> None:
        spec, b, rank = self.spec, self.b, len(self.spec.result)
        shape = (spec.lanes,)
        with b.loop(0, spec.lhs[-1], carry=[b.real(0.0, shape)] * rows) as inner:
            right = b.load(self.use["weight"], self._right(inner.index, column), shape, (rank - 1,), None, valid)
            found: list[SSAValue] = []
            for number, acc in enumerate(inner.carried):
                left = b.broadcast(b.load(self.use["x"], self._left(row + number, inner.index)), shape)
                found.append(b.add(loop.MultiplyAddOp(acc, left, right)))
            inner.carry(*found)
        for number, acc in enumerate(inner.results):
            b.store(acc, self.use["y"], [*self.batch, row + number, column], (rank - 1,), None, valid)

    def _left(self, row: Index, inner: Index) -> list[Index | int]:
        return [*own_batch(self.spec.lhs[:-2], self.batch), row, inner]

    def _right(self, inner: Index, column: Index) -> list[Index | int]:
        return [*own_batch(self.spec.rhs[:-2], self.batch), inner, column]
