# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of a matmul on codes for dot instructions: the right side is packed at run time, then read tile by tile.

Packed, four rows of a column lie in one word, in the order in which `loop.contract` reads them:
[batch, blocks, steps, vectors, lanes, 4]. Rows that only fill up the last word hold 0 where the products are signed.
Dot instructions take signed bytes on the right: unsigned ones have their top bit flipped, which moves the zero point.
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

from qcomp.dialects import loop
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import memref_of
from qcomp.interpreter.reference.integer_plan import IntegerPlan
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Builder, Index, MemRef, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.epilogue import Operands, apply_epilogue
from qcomp.transforms.lower_to_loop.matrices import batch_loops, flat, own_batch
from qcomp.transforms.lower_to_loop.row_sums import CodedMatmul, lower_row_sums
from qcomp.transforms.lower_to_loop.tiles import Tile, choose_tile, regions
from qcomp.transforms.lower_to_loop.weighted import in_arena

GROUP = 4


@dataclass(frozen=True)
class PackKernel:
    """All that the code depends on: `batch` matrices of rows x columns bytes; summed: columns are summed up.

    Sums are those of the bytes as packed, times `zero`.
    """

    batch: int
    rows: int
    columns: int
    flip: bool
    zero: int
    vectors: int
    lanes: int

    @property
    def steps(self) -> int:
        """Words that hold a column."""
        return -(-self.rows // GROUP)

    @property
    def blocks(self) -> int:
        """Blocks of `vectors` registers of columns, the last one possibly cut."""
        return -(-self.columns // (self.vectors * self.lanes))

    @property
    def packed(self) -> tuple[int, ...]:
        """The shape of the packed words."""
        return (self.batch, self.blocks, self.steps, self.vectors, self.lanes)

    @property
    def sums(self) -> tuple[int, ...]:
        """The shape of the sums of columns."""
        return (self.batch, self.blocks, self.vectors, self.lanes)


@dataclass(frozen=True)
class PackedKernel:
    """All that the code of the product depends on."""

    matmul: CodedMatmul
    tile: Tile


def lower_packed(
    lowering: Lowering, spec: CodedMatmul, lhs: Buffer, rhs: Buffer, target: Buffer, plan: IntegerPlan,
    where: LocationAttr,
) -> None:  # fmt: skip
    """Emit the calls: pack, sum up rows where the right side has a zero point, multiply."""
    spec = replace(spec, rhs_zero=spec.rhs_zero - 128 if spec.rhs_unsigned else spec.rhs_zero, lanes=16)
    rows, columns = spec.result[-2:]
    tile = choose_tile(lowering.target, 1, rows, columns, -(-spec.inner // GROUP), spec.inner)
    pack = PackKernel(
        math.prod(spec.rhs[:-2]), spec.inner, columns, spec.rhs_unsigned, spec.zero, tile.vectors, spec.lanes
    )
    words, sums = _pack(lowering, pack, rhs, where)
    lhs = in_arena(lowering, lhs, spec.inner, where)
    arguments = [lowering.view(lhs, memref_of(i8, (math.prod(spec.lhs),))), words]
    if spec.zero:
        arguments.append(sums)
    if spec.rhs_zero:
        arguments.append(lower_row_sums(lowering, spec, lhs, where))
    arguments.append(lowering.constant(_laid(pack, plan.multiplier), f32))
    arguments += spec.epilogue.constants(lowering, plan)
    arguments.append(lowering.view(target, memref_of(target.element, spec.result)))
    # What is left of the zero points is in the sums.
    bare = replace(spec, zero=int(spec.zero != 0), rhs_zero=int(spec.rhs_zero != 0), rhs_unsigned=False)
    whole = PackedKernel(bare, tile)
    lowering.call(whole, "matmul", lambda name: _Product(whole, pack, name, where).build(), arguments, where)


def _laid(pack: PackKernel, multiplier: Array) -> Array:
    """Multipliers per column laid out as the columns are; a single one stays."""
    if multiplier.size == 1:
        return multiplier
    padded = np.zeros(math.prod(pack.sums[1:]), np.float32)
    padded[: pack.columns] = multiplier
    return padded.reshape(pack.sums[1:])


def _pack(lowering: Lowering, spec: PackKernel, rhs: Buffer, where: LocationAttr) -> tuple[SSAValue, SSAValue]:
    """The packed right side, seen as bytes, and the sums of its columns; a buffer of one element when not wanted."""
    words = lowering.allocate(memref_of(i32, spec.packed), where)
    sums = lowering.allocate(memref_of(i32, spec.sums if spec.zero else (1,)), where)
    arguments = [lowering.view(rhs, memref_of(i8, (spec.batch, spec.rows, spec.columns))), words]
    arguments += [sums] if spec.zero else []
    lowering.call(spec, "pack", lambda name: _build_pack(spec, name, where), arguments, where)
    view = loop.ViewOp(words, 0, memref_of(i8, (*spec.packed, GROUP)))
    lowering.block.add_op(view)
    return view.result, sums


def _build_pack(spec: PackKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds: list[tuple[str, MemRef]] = [
        ("x", memref_of(i8, (spec.batch, spec.rows, spec.columns))), ("y", memref_of(i32, spec.packed)),
    ]  # fmt: skip
    if spec.zero:
        kinds.append(("sums", memref_of(i32, spec.sums)))
    func, b, values = kernel(name, kinds, where)
    with ExitStack() as stack:
        batch = stack.enter_context(b.loop(0, spec.batch)).index if spec.batch != 1 else Index()
        for piece in pieces(spec.columns, spec.vectors, spec.lanes):
            with b.loop(piece.block, piece.block + piece.count) as block:
                for vector in range(piece.first, piece.first + piece.vectors):
                    _Register(spec, b, values, (batch, block.index, vector), piece.valid).emit()
    return finish(func)


@dataclass(frozen=True)
class Piece:
    """`vectors` registers of columns from register `first` on of `count` blocks; of the only one, `valid` columns."""

    block: int
    count: int
    first: int
    vectors: int
    valid: int | None = None


def pieces(columns: int, vectors: int, lanes: int) -> list[Piece]:
    """All columns: full blocks, full registers of the last block, and the register that is not full."""
    whole, rest = divmod(columns, vectors * lanes)
    full, cut = divmod(rest, lanes)
    found = [Piece(0, whole, 0, vectors)] if whole else []
    found += [Piece(whole, 1, 0, full)] if full else []
    return found + ([Piece(whole, 1, full, 1, cut)] if cut else [])


class _Register:
    """Packs a register of columns. place: batch, block, register."""

    def __init__(
        self, spec: PackKernel, b: Builder, values: Sequence[SSAValue], place: tuple[Index, Index, int],
        valid: int | None,
    ):  # fmt: skip
        self.spec, self.b, self.valid = spec, b, valid
        self.batch, self.block, self.vector = place
        self.x, self.y, *self.sums = values

    def emit(self) -> None:
        spec, b = self.spec, self.b
        whole, rest = divmod(spec.rows, GROUP)
        with b.loop(0, whole, carry=[b.integer(0, (spec.lanes,)) for _ in self.sums]) as step:
            step.carry(*self._word(step.index, GROUP, step.carried))
        totals = step.results
        if rest:
            totals = self._word(Index.of(whole), rest, totals)
        for total, sums in zip(totals, self.sums, strict=True):
            zeros = b.add(arith.MuliOp(total, b.integer(spec.zero, (spec.lanes,))))
            b.store(zeros, sums, [self.batch, self.block, self.vector, 0], (3,))

    def _word(self, step: Index, rows: int, totals: Sequence[SSAValue]) -> list[SSAValue]:
        """Pack `rows` rows of bytes, and take them into the sums."""
        spec, b, shape = self.spec, self.b, (self.spec.lanes,)
        column = self.block * (spec.vectors * spec.lanes) + self.vector * spec.lanes
        word, found = b.integer(0, shape), list(totals)
        for row in range(rows):
            tile = b.load(self.x, [self.batch, step * GROUP + row, column], shape, (2,), None, self.valid)
            wide = b.add(loop.ExtendOp(tile, spec.flip))
            if spec.flip:
                wide = b.difference(wide, b.integer(128, shape))
            found = [b.add(arith.AddiOp(total, wide)) for total in found]
            byte = b.add(arith.AndIOp(wide, b.integer(255, shape)))
            word = b.add(arith.OrIOp(word, b.add(arith.ShLIOp(byte, b.integer(8 * row, shape)))))
        b.store(word, self.y, [self.batch, self.block, step, self.vector, 0], (4,))
        return found


class _Product:
    """The loops over rows and columns of the result."""

    def __init__(self, spec: PackedKernel, pack: PackKernel, name: str, where: LocationAttr):
        self.spec, self.matmul, self.tile, self.pack = spec, spec.matmul, spec.tile, pack
        kinds = self._arguments()
        self.func, self.b, values = kernel(name, kinds, where)
        self.use = {hint: value for (hint, _), value in zip(kinds, values, strict=True)}
        self.epilogue = Operands()
        self.batch: list[Index] = []

    def _arguments(self) -> list[tuple[str, MemRef]]:
        m, pack = self.matmul, self.pack
        found: list[tuple[str, MemRef]] = [
            ("x", memref_of(i8, (math.prod(m.lhs),))), ("weight", memref_of(i8, (*pack.packed, GROUP))),
        ]  # fmt: skip
        found += [("sums", memref_of(i32, pack.sums))] if m.zero else []
        found += [("rows", memref_of(i32, m.rows))] if m.rhs_zero else []
        found.append(("multiplier", memref_of(f32, (1,) if m.multipliers == 1 else pack.sums[1:])))
        found += m.epilogue.arguments()
        return [*found, ("y", memref_of(i8 if m.epilogue.quantized else f32, m.result))]

    def build(self) -> FuncOp:
        m, b = self.matmul, self.b
        self.epilogue.load_scalars(b, m.epilogue, self.use)
        with ExitStack() as stack:
            self.batch = batch_loops(b, stack, m.result[:-2])
            for piece in pieces(m.result[-1], self.tile.vectors, m.lanes):
                with b.loop(piece.block, piece.block + piece.count, kind="parallel") as block:
                    for region in regions(Tile(1, self.tile.columns, piece.vectors), 1, m.result[-2]):
                        with b.loop(region.left, region.right, region.columns) as row:
                            self._tile(row.index, block.index, region.columns, piece)
        return finish(self.func)

    def _tile(self, row: Index, block: Index, rows: int, piece: Piece) -> None:
        m, b, rank = self.matmul, self.b, len(self.matmul.result)
        shape = (rows, piece.vectors, m.lanes)
        right = flat(m.rhs[:-2], self.batch)
        first = flat(m.lhs[:-2], self.batch) * (m.lhs[-2] * m.inner) + row * m.inner
        with b.loop(0, self.pack.steps, carry=[b.integer(0, shape)]) as step:
            left = b.load(self.use["x"], [first + step.index * GROUP], (rows, GROUP), (0, 0), (m.inner, 1))
            place = [right, block, step.index, piece.first, 0, 0]
            words = b.load(self.use["weight"], place, (*shape[1:], GROUP), (3, 4, 5))
            step.carry(b.add(loop.ContractOp(step.carried[0], left, words, True)))
        acc = self._corrected(step.results[0], row, [right, block, piece.first, 0], shape)
        if m.multipliers == 1:
            self.epilogue.multiplier = b.load(self.use["multiplier"], [0])
        else:
            self.epilogue.multiplier = b.load(self.use["multiplier"], [block, piece.first, 0], shape[1:], (1, 2))
        result = apply_epilogue(b, m.epilogue, acc, self.epilogue)
        column = block * (self.tile.vectors * m.lanes) + piece.first * m.lanes
        over, steps = (rank - 2, rank - 1, rank - 1), (1, m.lanes, 1)
        b.store(result, self.use["y"], [*self.batch, row, column], over, steps, piece.valid)

    def _corrected(self, acc: SSAValue, row: Index, place: list[Index | int], shape: tuple[int, int, int]) -> SSAValue:
        m, b = self.matmul, self.b
        if m.zero:
            sums = b.load(self.use["sums"], place, shape[1:], (2, 3))
            acc = b.add(arith.SubiOp(acc, b.broadcast(sums, shape)))
        if m.rhs_zero:
            spot, last = [*own_batch(m.lhs[:-2], self.batch), row], len(m.rows) - 1
            # The same number for all columns of a row.
            part = b.load(self.use["rows"], spot, shape, (last,) * 3, (1, 0, 0))
            acc = b.add(arith.SubiOp(acc, part))
        return acc
