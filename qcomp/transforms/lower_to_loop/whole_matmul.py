# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmul of integers, which wrap: element by element."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp

from qcomp.dialects.dims import memref_of
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS


@dataclass(frozen=True)
class WholeMatmulKernel:
    """All that the code depends on. lhs, rhs, result: sizes, equally many; batch dimensions of 1 broadcast."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    element: str


def lower_whole_matmul(lowering: Lowering, lhs: Buffer, rhs: Buffer, target: Buffer, where: LocationAttr) -> None:
    """Emit the call for row-major i32 or i64 matrices."""
    rank = len(target.sizes)
    left, right = ((1,) * (rank - len(side.sizes)) + side.sizes for side in (lhs, rhs))
    spec = WholeMatmulKernel(left, right, target.sizes, str(target.element))
    views = [lowering.view(side, memref_of(side.element, size)) for side, size in ((lhs, left), (rhs, right))]
    lowering.call(spec, "matmul", lambda name: _build(spec, name, where), [*views, target.value], where)


def _build(spec: WholeMatmulKernel, name: str, where: LocationAttr) -> FuncOp:
    element = ELEMENTS[spec.element]
    kinds = [memref_of(element, size) for size in (spec.lhs, spec.rhs, spec.result)]
    func, b, (x, weight, y) = kernel(name, list(zip(("x", "weight", "y"), kinds, strict=True)), where)
    with ExitStack() as stack:
        place = [stack.enter_context(b.loop(0, size)).index for size in spec.result]
        *batch, row, column = place

        def own(sizes: tuple[int, ...]) -> list[Index | int]:
            return [0 if size == 1 else index for size, index in zip(sizes[:-2], batch, strict=True)]

        with b.loop(0, spec.lhs[-1], carry=[b.integer(0, (), element)]) as inner:
            left = b.load(x, [*own(spec.lhs), row, inner.index])
            right = b.load(weight, [*own(spec.rhs), inner.index, column])
            inner.carry(b.add(arith.AddiOp(inner.carried[0], b.add(arith.MuliOp(left, right)))))
        b.store(inner.results[0], y, [*place])
    return finish(func)
