# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of matmul on codes whose right side is known at run time only, e.g. in attention.

Both sides are read as they lie: a row of the right side is contiguous, an element of the left side is broadcast.
Targets with a dot instruction pack the right side first, which pays even for one row on the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, f32, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import largest_size, memref_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.integer_plan import IntegerPlan
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Builder, Index, MemRef, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.epilogue import Epilogue, Operands, apply_epilogue
from qcomp.transforms.lower_to_loop.matrices import batch_loops, own_batch, strips
from qcomp.transforms.lower_to_loop.packed_matmul import lower_packed
from qcomp.transforms.lower_to_loop.row_sums import CodedMatmul, lower_row_sums

_PLAIN_LANES = 4
"""Columns that plain code accumulates together."""
_LARGEST = 2**31 - 1


def lower_coded_matmul(
    lowering: Lowering, sides: Sequence[tuple[int, ...]], lhs: Buffer, rhs: Buffer, target: Buffer, plan: IntegerPlan,
    where: LocationAttr,
) -> None:  # fmt: skip
    """Emit the calls for row-major codes. sides: the sizes of left side, right side and result as in `CodedMatmul`.

    Raises QcompError where products of bytes, zero points not yet taken off, may not fit int32.
    """
    left, right, result = sides
    wide = lowering.target.lanes > 1
    spec = CodedMatmul(
        left, right, result, Epilogue.of(plan), lhs.unsigned, rhs.unsigned, plan.input.zero_point, plan.rhs_zero,
        plan.multiplier.size, lowering.target.lanes if wide else _PLAIN_LANES,
    )  # fmt: skip
    largest = (255 if lhs.unsigned else 128) * (255 if rhs.unsigned else 128)
    if largest_size(spec.inner, lowering.source) * largest > _LARGEST:
        raise QcompError(f"matmul of codes over {spec.inner} elements is not lowered to loops", code="lower")
    static = not any(is_symbolic(size) for size in (*left, *right))
    if lowering.target.dot_group == 4 and lhs.unsigned and static:
        lower_packed(lowering, spec, lhs, rhs, target, plan, where)
        return
    arguments = [lowering.view(lhs, memref_of(i8, left)), lowering.view(rhs, memref_of(i8, right))]
    if spec.rhs_zero:
        arguments.append(lower_row_sums(lowering, spec, lhs, where))
    arguments.append(lowering.constant(plan.multiplier, f32))
    arguments += spec.epilogue.constants(lowering, plan)
    arguments.append(lowering.view(target, memref_of(target.element, result)))
    # The zero point of the right side is in the sums of the rows only.
    spec = replace(spec, rhs_zero=int(spec.rhs_zero != 0))
    lowering.call(spec, "matmul", lambda name: _build(spec, name, where), arguments, where)


def _build(spec: CodedMatmul, name: str, where: LocationAttr) -> FuncOp:
    arguments: list[tuple[str, MemRef]] = [("x", memref_of(i8, spec.lhs)), ("weight", memref_of(i8, spec.rhs))]
    if spec.rhs_zero:
        arguments.append(("rows", memref_of(i32, spec.rows)))
    arguments.append(("multiplier", memref_of(f32, (spec.multipliers,))))
    arguments += spec.epilogue.arguments()
    arguments.append(("y", memref_of(i8 if spec.epilogue.quantized else f32, spec.result)))
    func, b, values = kernel(name, arguments, where)
    use = {hint: value for (hint, _), value in zip(arguments, values, strict=True)}
    with ExitStack() as stack:
        _Strips(spec, b, use, batch_loops(b, stack, spec.result[:-2])).emit()
    return finish(func)


class _Strips:
    """The loops over one matrix of the result: columns a register at a time, a few rows together."""

    def __init__(self, spec: CodedMatmul, b: Builder, use: dict[str, SSAValue], batch: Sequence[Index]):
        self.spec, self.b, self.use, self.batch = spec, b, use, batch
        self.rows, self.columns = spec.result[-2:]
        self.epilogue = Operands()
        self.epilogue.load_scalars(b, spec.epilogue, use)

    def emit(self) -> None:
        b, lanes = self.b, self.spec.lanes
        whole = self.columns // lanes * lanes
        if whole != 0:
            strips(b, lanes, self.rows, (0, whole), None, self._strip)
        if self.columns != whole:
            strips(b, lanes, self.rows, (whole, self.columns), self.columns - whole, self._strip)

    def _strip(self, row: Index, column: Index, rows: int, valid: int | None) -> None:
        spec, b, shape, last = self.spec, self.b, (self.spec.lanes,), len(self.spec.result) - 1
        start = b.integer(0, shape)
        sums = [start] if spec.zero else []
        with b.loop(0, spec.inner, carry=[start] * rows + sums) as inner:
            place = [*own_batch(spec.rhs[:-2], self.batch), inner.index, column]
            right = b.load(self.use["weight"], place, shape, (last,), None, valid)
            found: list[SSAValue] = []
            for number, acc in enumerate(inner.carried[:rows]):
                spot = [*own_batch(spec.lhs[:-2], self.batch), row + number, inner.index]
                wide = b.broadcast(b.load(self.use["x"], spot), shape)
                found.append(b.add(loop.MultiplyAddOp(acc, wide, right, spec.unsigned, spec.rhs_unsigned)))
            for acc in inner.carried[rows:]:
                found.append(b.add(loop.MultiplyAddOp(acc, b.byte(1, shape), right, True, spec.rhs_unsigned)))
            inner.carry(*found)
        columns = b.add(arith.MuliOp(inner.results[rows], b.integer(spec.zero, shape))) if sums else None
        for number, acc in enumerate(inner.results[:rows]):
            if columns is not None:
                acc = b.add(arith.SubiOp(acc, columns))
            if spec.rhs_zero:
                part = b.load(self.use["rows"], [*own_batch(spec.lhs[:-2], self.batch), row + number])
                acc = b.add(arith.SubiOp(acc, b.broadcast(part, shape)))
            acc = self._requantized(acc, column, valid)
            b.store(acc, self.use["y"], [*self.batch, row + number, column], (last,), None, valid)

    def _requantized(self, acc: SSAValue, column: Index, valid: int | None) -> SSAValue:
        spec, b, shape = self.spec, self.b, (self.spec.lanes,)
        if spec.multipliers > 1:
            self.epilogue.multiplier = b.load(self.use["multiplier"], [column], shape, (0,), None, valid)
        else:
            self.epilogue.multiplier = b.broadcast(b.load(self.use["multiplier"], [0]), shape)
        return apply_epilogue(b, spec.epilogue, acc, self.epilogue)
