# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of a matmul on codes share: the operands, and the part of a sum that belongs to its row.

    sum((a - za) * (b - zb)) = sum(a * b) - za * sum(b) - (zb * sum(a) - K * za * zb)

All of it wraps in int32; the sum on the left is proved to fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.interpreter.reference.reduction import PARTIALS
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.epilogue import Epilogue
from qcomp.transforms.lower_to_loop.lanes import Chunk
from qcomp.transforms.lower_to_loop.partials import in_lanes


@dataclass(frozen=True)
class CodedMatmul:
    """All that the code of a matmul on codes depends on, tiles aside.

    lhs, rhs, result: sizes with equally many batch dimensions, 1 where they broadcast. zero, rhs_zero: zero points.
    multipliers: one, or one per column.
    """

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    epilogue: Epilogue
    unsigned: bool
    rhs_unsigned: bool
    zero: int
    rhs_zero: int
    multipliers: int
    lanes: int

    @property
    def inner(self) -> int:
        """How many products are added up."""
        return self.lhs[-1]

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of the parts that belong to rows."""
        return self.lhs[:-1]


@dataclass(frozen=True)
class RowSumKernel:
    """All that the code depends on: `rows` rows of `size` codes; zero, rhs_zero as above."""

    rows: int
    size: int
    unsigned: bool
    zero: int
    rhs_zero: int
    lanes: int


def lower_row_sums(lowering: Lowering, spec: CodedMatmul, lhs: Buffer, where: LocationAttr) -> SSAValue:
    """A buffer of zb * sum(a) - K * za * zb in i32 for every row of the left side, of the shape `spec.rows`."""
    rows = math.prod(spec.rows)
    own = RowSumKernel(rows, spec.inner, spec.unsigned, spec.zero, spec.rhs_zero, lowering.target.lanes)
    sums = lowering.allocate(memref_of(i32, (rows,)), where)
    arguments = [lowering.view(lhs, memref_of(i8, (rows, spec.inner))), sums]
    lowering.call(own, "row_sums", lambda name: _build(own, name, where), arguments, where)
    if spec.rows == (rows,):
        return sums
    view = loop.ViewOp(sums, 0, memref_of(i32, spec.rows))
    lowering.block.add_op(view)
    return view.result


def _build(spec: RowSumKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = [("x", memref_of(i8, (spec.rows, spec.size))), ("y", memref_of(i32, (spec.rows,)))]
    func, b, (x, y) = kernel(name, kinds, where)
    with b.loop(0, spec.rows, kind="parallel") as row:
        total = _sum(spec, b, x, row.index)
        if spec.zero:
            zeros = b.add(arith.MuliOp(_count(b, spec.size), b.integer(spec.zero)))
            total = b.add(arith.SubiOp(total, zeros))
        b.store(b.add(arith.MuliOp(total, b.integer(spec.rhs_zero))), y, [row.index])
    return finish(func)


def _sum(spec: RowSumKernel, b: Builder, x: SSAValue, row: Index) -> SSAValue:
    if spec.lanes == 1:
        with b.loop(0, spec.size, carry=[b.integer(0)]) as nest:
            wide = b.add(loop.ExtendOp(b.load(x, [row, nest.index]), spec.unsigned))
            nest.carry(b.add(arith.AddiOp(nest.carried[0], wide)))
        return nest.results[0]

    def step(acc: SSAValue, index: Index, part: Chunk) -> SSAValue:
        tile = b.load(x, [row, index], part.shape, (1,), None, part.valid)
        return b.add(arith.AddiOp(acc, b.add(loop.ExtendOp(tile, spec.unsigned))))

    return b.add(loop.ReduceOp("add", in_lanes(b, spec.size, b.integer(0, (PARTIALS,)), step)))


def _count(b: Builder, size: int) -> SSAValue:
    return b.add(arith.IndexCastOp(b.size(size), i32)) if is_symbolic(size) else b.integer(size)
