# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of matmul: with a constant matrix on the right it is a linear; else both sides are read as they lie.

A register tile of rows x columns of the result is accumulated over the inner dimension: a row of the right side is
contiguous, an element of the left side is broadcast. Columns that fill no register are done a few rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, f32, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.dialects.quant import Encoding, encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.integer_plan import IntegerPlan, matmul_plan
from qcomp.transforms.lower_to_loop.buffers import NO_BORDER, Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index, MemRef, finish, kernel
from qcomp.transforms.lower_to_loop.contraction import Geometry, build_contraction, contraction_kernel
from qcomp.transforms.lower_to_loop.driver import Lowering, lowers
from qcomp.transforms.lower_to_loop.epilogue import Epilogue, Operands, apply_epilogue
from qcomp.transforms.lower_to_loop.through_reals import real_result, reals_of
from qcomp.transforms.lower_to_loop.tiles import Tile, choose_tile, nominal, regions
from qcomp.transforms.lower_to_loop.weighted import in_arena, start_values
from qcomp.transforms.lower_to_loop.whole_matmul import lower_whole_matmul

_PLAIN_LANES, _PLAIN_TILE = 4, Tile(1, 2, 1)
"""Columns and rows that plain code accumulates together."""
_ROWS = 8
"""Rows done together where columns fill no register."""
_LARGEST_INNER = 65_000
"""So many products of unsigned and signed bytes surely fit int32, zero points not yet taken off."""


@dataclass(frozen=True)
class MatmulKernel:
    """All that the code depends on. lhs, rhs, result: sizes with equally many batch dimensions, 1 where they broadcast.

    The zero point of the left side of codes is `zero`.
    """

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    epilogue: Epilogue
    unsigned: bool
    zero: int
    multipliers: int
    tile: Tile
    lanes: int


@lowers(nn.MatmulOp, symbolic=True)
def lower_matmul(lowering: Lowering, op: nn.MatmulOp) -> None:
    """Codes times codes in integers, everything else in float32."""
    where = op.location
    lhs, rhs = lowering.row_major(op.lhs, where), lowering.row_major(op.rhs, where)
    if lhs.encoding is not None and rhs.encoding is not None:
        plan = _plan(lhs, rhs, encoding_of(op.result.type))
        _lower(lowering, op, lhs, rhs, lowering.define(op.result, where, Layout(False)), plan)
        return
    if lhs.encoding is None and str(lhs.element) in ("i32", "i64"):
        lower_whole_matmul(lowering, lhs, rhs, lowering.define(op.result, where, Layout(False)), where)
        return
    lhs, rhs = reals_of(lowering, lhs, where), reals_of(lowering, rhs, where)
    if str(lhs.element) != "f32" or str(rhs.element) != "f32":
        raise QcompError("matmul of integers is not lowered to loops", code="lower")
    with real_result(lowering, op.result, where, Layout(False)) as target:
        _lower(lowering, op, lhs, rhs, target, None)


def _plan(lhs: Buffer, rhs: Buffer, output: Encoding | None) -> IntegerPlan:
    assert lhs.encoding is not None and rhs.encoding is not None
    if rhs.encoding.axis is not None and rhs.encoding.axis != len(rhs.sizes) - 1:
        raise QcompError("right side is quantized along another dimension than its last", code="not-integer")
    return matmul_plan(lhs.sizes[-1], lhs.encoding, rhs.encoding, output)


def _lower(
    lowering: Lowering, op: nn.MatmulOp, lhs: Buffer, rhs: Buffer, target: Buffer, plan: IntegerPlan | None
) -> None:
    weight = lowering.array(op.rhs)
    if weight is not None and weight.ndim == 2 and (plan is not None or encoding_of(op.rhs.type) is None):
        _by_constant(lowering, op, lhs, target, plan)
    else:
        _by_tensor(lowering, lhs, rhs, target, plan, op.location)


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
        lowering.target, geometry, epilogue, lhs.unsigned, (1, 1, rows * run), (output, NO_BORDER), None
    )
    x = in_arena(lowering, lhs, run, op.location)
    arguments = [
        lowering.view(x, memref_of(x.element, (1, 1, rows * run))),
        lowering.constant(spec.pack_weight(taps), x.element),
    ]
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
    if plan is not None and left[-1] > _LARGEST_INNER:
        raise QcompError(f"matmul of codes over {left[-1]} elements is not lowered to loops", code="lower")
    lanes = lowering.target.lanes if lowering.target.lanes > 1 else _PLAIN_LANES
    rows, columns, inner = map(nominal, (*result[-2:], left[-1]))
    tile = choose_tile(lowering.target, 1, rows, columns, inner, 4 * inner)
    tile = tile if lowering.target.lanes > 1 else _PLAIN_TILE
    spec = MatmulKernel(
        left, right, result, Epilogue(False) if plan is None else Epilogue.of(plan), lhs.unsigned,
        0 if plan is None else plan.input.zero_point, 0 if plan is None else plan.multiplier.size, tile, lanes,
    )  # fmt: skip
    arguments = [lowering.view(lhs, memref_of(lhs.element, left)), lowering.view(rhs, memref_of(rhs.element, right))]
    if plan is not None:
        arguments.append(lowering.constant(plan.multiplier, f32))
        arguments += spec.epilogue.constants(lowering, plan)
    arguments.append(lowering.view(target, memref_of(target.element, result)))
    lowering.call(spec, "matmul", lambda name: _build(spec, name, where), arguments, where)


def _build(spec: MatmulKernel, name: str, where: LocationAttr) -> FuncOp:
    integer = spec.epilogue.integer
    element = i8 if integer else f32
    arguments: list[tuple[str, MemRef]] = [
        ("x", memref_of(element, spec.lhs)), ("weight", memref_of(element, spec.rhs)),
    ]  # fmt: skip
    if integer:
        arguments.append(("multiplier", memref_of(f32, (spec.multipliers,))))
        arguments += spec.epilogue.arguments()
    arguments.append(("y", memref_of(i8 if spec.epilogue.quantized else f32, spec.result)))
    func, b, values = kernel(name, arguments, where)
    use = {hint: value for (hint, _), value in zip(arguments, values, strict=True)}
    with ExitStack() as stack:
        batch = [
            stack.enter_context(b.loop(0, size, kind="parallel")).index if size != 1 else Index()
            for size in spec.result[:-2]
        ]
        _Body(spec, b, use, batch).emit()
    return finish(func)


class _Body:
    """The loops over one matrix of the result."""

    def __init__(self, spec: MatmulKernel, b: Builder, use: dict[str, SSAValue], batch: Sequence[Index]):
        self.spec, self.b, self.use, self.batch = spec, b, use, batch
        self.rows, self.columns = spec.result[-2:]
        self.epilogue = Operands()
        self.epilogue.load_scalars(b, spec.epilogue, use)

    def emit(self) -> None:
        spec = self.spec
        if is_symbolic(self.columns):
            self._symbolic_columns()
            return
        whole = self.columns // spec.lanes
        vectors = 0 if spec.epilogue.integer else min(spec.tile.vectors, whole)
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
        for count in () if self.spec.epilogue.integer else dict.fromkeys((self.spec.tile.vectors, 1)):
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
        """Columns a register at a time, or what is left of one, a few rows together."""
        b, lanes = self.b, self.spec.lanes
        step = lanes if valid is None or is_symbolic(valid) else last - first
        with b.loop(first, last, step, kind="parallel") as column:
            for region in regions(Tile(1, _ROWS, 1), 1, self.rows):
                with b.loop(region.left, region.right, region.columns, kind="parallel") as row:
                    self._strip(row.index, column.index, region.columns, valid)

    def _strip(self, row: Index, column: Index, rows: int, valid: int | None) -> None:
        spec, b, rank = self.spec, self.b, len(self.spec.result)
        integer, shape = spec.epilogue.integer, (spec.lanes,)
        start = b.integer(0, shape) if integer else b.real(0.0, shape)
        sums = [start] if integer and spec.zero else []
        with b.loop(0, spec.lhs[-1], carry=[start] * rows + sums) as inner:
            right = b.load(self.use["weight"], self._right(inner.index, column), shape, (rank - 1,), None, valid)
            found: list[SSAValue] = []
            for number, acc in enumerate(inner.carried[:rows]):
                left = b.load(self.use["x"], self._left(row + number, inner.index))
                wide = b.broadcast(left, shape)
                found.append(b.add(loop.MultiplyAddOp(acc, wide, right, spec.unsigned and integer)))
            # Sums of columns: multiplied by the zero point they come off in the end.
            for acc in inner.carried[rows:]:
                found.append(b.add(loop.MultiplyAddOp(acc, b.byte(1, shape), right, True)))
            inner.carry(*found)
        for number, acc in enumerate(inner.results[:rows]):
            if sums:
                zeros = b.add(arith.MuliOp(inner.results[rows], b.integer(spec.zero, shape)))
                acc = b.add(arith.SubiOp(acc, zeros))
            if integer:
                acc = self._requantized(acc, column, valid)
            b.store(acc, self.use["y"], [*self.batch, row + number, column], (rank - 1,), None, valid)

    def _requantized(self, acc: SSAValue, column: Index, valid: int | None) -> SSAValue:
        spec, b, shape = self.spec, self.b, (self.spec.lanes,)
        if spec.multipliers > 1:
            self.epilogue.multiplier = b.load(self.use["multiplier"], [column], shape, (0,), None, valid)
        else:
            self.epilogue.multiplier = b.broadcast(b.load(self.use["multiplier"], [0]), shape)
        return apply_epilogue(b, spec.epilogue, acc, self.epilogue)

    def _left(self, row: Index, inner: Index) -> list[Index | int]:
        return [*self._own(self.spec.lhs), row, inner]

    def _right(self, inner: Index, column: Index) -> list[Index | int]:
        return [*self._own(self.spec.rhs), inner, column]

    def _own(self, sizes: tuple[int, ...]) -> list[Index | int]:
        return [0 if size == 1 else index for size, index in zip(sizes[:-2], self.batch, strict=True)]
