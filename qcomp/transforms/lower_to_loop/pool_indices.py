# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of the indices of max pools: element by element, the best one so far and its number carried along."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.dims import memref_of
from qcomp.dialects.nn.base import ints
from qcomp.transforms.lower_to_loop.access import Seen, place
from qcomp.transforms.lower_to_loop.along import in_order
from qcomp.transforms.lower_to_loop.buffers import Layout, physical_shape
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS
from qcomp.transforms.lower_to_loop.held import algebra, as_held, held_element
from qcomp.transforms.lower_to_loop.pooling import Axis, sliding
from qcomp.transforms.lower_to_loop.registry import REALS, lowers
from qcomp.transforms.lower_to_loop.through_reals import reals_of


@dataclass(frozen=True)
class IndicesKernel:
    """All that the code depends on; axes: of the spatial dimensions."""

    source: Seen
    target: tuple[int, ...]
    axes: tuple[Axis, ...]
    element: Attribute


@lowers(*nn.MAX_POOL_INDICES, elements=REALS | {"i8", "ui8"}, symbolic=True)
def lower_max_pool_indices(lowering: Lowering, op: nn.MaxPoolIndicesOp) -> None:
    """The order of codes is that of the reals they stand for."""
    where = op.location
    source, element = in_order(lowering, lowering.operand(op.input), op, "max")
    source = reals_of(lowering, source, where)
    target = lowering.define(op.result, where, Layout(False))
    windows = zip(
        source.sizes[-op.SPATIAL :], target.sizes[-op.SPATIAL :], ints(op.kernel_size), ints(op.stride),
        ints(op.padding), ints(op.dilation), strict=True,
    )  # fmt: skip
    spec = IndicesKernel(Seen.of(source), target.sizes, tuple(sliding(*window) for window in windows), element)
    arguments = [source.value, target.value]
    lowering.call(spec, "max_pool_indices", lambda name: _build(spec, name, where), arguments, where)


def _build(spec: IndicesKernel, name: str, where: LocationAttr) -> FuncOp:
    held = ELEMENTS[spec.source.element]
    source = memref_of(held, physical_shape(spec.source.sizes, spec.source.layout))
    func, b, (x, y) = kernel(name, [("x", source), ("y", memref_of(i64, spec.target))], where)
    with ExitStack() as stack:
        indices = [stack.enter_context(b.loop(0, size)).index for size in spec.target]
        lead, spatial = indices[: -len(spec.axes)], indices[-len(spec.axes) :]
        bounds = [axis.taps(b, position) for axis, position in zip(spec.axes, spatial, strict=True)]
        start = [b.number(0.0, (), held_element(spec.element)), b.integer(-1, (), i64)]
        _, found = _taps(spec, b, x, (lead, spatial), bounds, [], start)
        b.store(found, y, [*indices])
    return finish(func)


def _taps(
    spec: IndicesKernel, b: Builder, x: SSAValue, position: tuple[Sequence[Index], Sequence[Index]],
    bounds: Sequence[tuple[Sequence[Index | int], Sequence[Index | int]]], read: list[Index],
    carried: Sequence[SSAValue],
) -> Sequence[SSAValue]:  # fmt: skip
    done = len(read)
    if done == len(bounds):
        value = as_held(b, b.load(x, place(spec.source, [*position[0], *read])), spec.element)
        return _better(spec, b, value, read, carried)
    with b.loop(*bounds[done], carry=carried) as nest:
        inner = [*read, spec.axes[done].source(position[1][done], nest.index)]
        nest.carry(*_taps(spec, b, x, position, bounds, inner, nest.carried))
    return nest.results


def _better(
    spec: IndicesKernel, b: Builder, value: SSAValue, read: Sequence[Index], carried: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    m, (best, found) = algebra(b, (), spec.element), carried
    flat = Index()
    for axis, place_ in zip(spec.axes, read, strict=True):
        flat = b.times(flat, axis.size) + place_
    number = b.add(arith.IndexCastOp(b.value(flat), i64))
    one = m.number(1.0)
    better = m.select("gt", value, best, one, m.number(0.0))
    better = m.select("ne", value, value, one, better)
    first = b.add(loop.CompareOp("lt", found, b.integer(0, (), i64)))
    better = b.add(loop.SelectOp(first, one, better))
    taken = b.add(loop.CompareOp("ne", better, m.number(0.0)))
    return [b.add(loop.SelectOp(taken, value, best)), b.add(loop.SelectOp(taken, number, found))]
