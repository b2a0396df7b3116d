# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmul of integers, which wrap: element by element.

    for each place of the result:
        total = 0                                   // i32, for 64-bit elements i64
        for k in 0..inner: total += lhs[row, k] * rhs[k, column]
        result[row, column] = total                 // cut to its bits: what wraps may wrap once, at the end
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, LocationAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects.dims import memref_of
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS
from qcomp.transforms.lower_to_loop.held import as_held, as_stored, held_element


@dataclass(frozen=True)
class WholeMatmulKernel:
    """All that the code depends on."""

    lhs: tuple[int, ...]
    """Sizes of the left side; batch dimensions of 1 broadcast. As many as those of the other two."""
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    element: IntegerType
    """What the integers are; in memory they are signless."""
    storage: str


def lower_whole_matmul(
    lowering: Lowering, lhs: Buffer, rhs: Buffer, target: Buffer, element: IntegerType, where: LocationAttr
) -> None:
    """Emit the call for row-major matrices of integers of type `element`."""
    rank = len(target.sizes)
    left, right = ((1,) * (rank - len(side.sizes)) + side.sizes for side in (lhs, rhs))
    spec = WholeMatmulKernel(left, right, target.sizes, element, str(target.element))
    views = [lowering.view(side, memref_of(side.element, size)) for side, size in ((lhs, left), (rhs, right))]
    lowering.call(spec, "matmul", lambda name: _build(spec, name, where), [*views, target.value], where)


def _build(spec: WholeMatmulKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = [memref_of(ELEMENTS[spec.storage], size) for size in (spec.lhs, spec.rhs, spec.result)]
    func, b, (x, weight, y) = kernel(name, list(zip(("x", "weight", "y"), kinds, strict=True)), where)
    with ExitStack() as stack:
        place = [stack.enter_context(b.loop(0, size)).index for size in spec.result]
        *batch, row, column = place

        def own(sizes: tuple[int, ...]) -> list[Index | int]:
            return [0 if size == 1 else index for size, index in zip(sizes[:-2], batch, strict=True)]

        def load(buffer: SSAValue, *indices: Index | int) -> SSAValue:
            return as_held(b, b.load(buffer, indices), spec.element)

        with b.loop(0, spec.lhs[-1], carry=[b.integer(0, (), held_element(spec.element))]) as inner:
            left = load(x, *own(spec.lhs), row, inner.index)
            right = load(weight, *own(spec.rhs), inner.index, column)
            inner.carry(b.add(arith.AddiOp(inner.carried[0], b.add(arith.MuliOp(left, right)))))
        b.store(as_stored(b, inner.results[0], spec.element), y, [*place])
    return finish(func)
