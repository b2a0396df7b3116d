# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of tensors made of sizes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp

from qcomp.dialects import nn
from qcomp.dialects.dims import memref_of
from qcomp.transforms.lower_to_loop.buffers import Layout
from qcomp.transforms.lower_to_loop.builder import Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS
from qcomp.transforms.lower_to_loop.registry import REALS, lowers


@dataclass(frozen=True)
class CountKernel:
    """start, start + step, ...: as many as `sizes`, which has one dimension or none, says."""

    sizes: tuple[int, ...]
    start: int
    step: int
    element: str


@lowers(nn.DimValueOp, nn.ArangeOp, elements=REALS | {"i32", "i64"}, symbolic=True)
def lower_sizes(lowering: Lowering, op: nn.DimValueOp | nn.ArangeOp) -> None:
    """The numbers one by one."""
    target = lowering.define(op.result, op.location, Layout(False))
    start, step = (op.size, 1) if isinstance(op, nn.DimValueOp) else (op.first, op.step.value.data)
    spec = CountKernel(target.sizes, start, step, str(target.element))
    lowering.call(spec, "count", lambda name: _build(spec, name, op.location), [target.value], op.location)


def _build(spec: CountKernel, name: str, where: LocationAttr) -> FuncOp:
    element = ELEMENTS[spec.element]
    func, b, (y,) = kernel(name, [("y", memref_of(element, spec.sizes))], where)
    if not spec.sizes:
        b.store(b.add(arith.IndexCastOp(b.value(Index.of(spec.start)), element)), y, [])
        return finish(func)
    with b.loop(0, spec.sizes[0]) as nest:
        number = b.value(nest.index * spec.step + spec.start)
        b.store(b.add(arith.IndexCastOp(number, element)), y, [nest.index])
    return finish(func)
