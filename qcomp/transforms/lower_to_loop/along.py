# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of gather, scatter, running totals and sorting: one element at a time along a dimension, row-major."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, i8, i64
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import is_float, ui8
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.functions import logaddexp
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.coded_embedding import clamped_row
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import IN_LANES, codes_in, in_reals
from qcomp.transforms.lower_to_loop.held import algebra, as_held, as_stored, held_element, real_element
from qcomp.transforms.lower_to_loop.lanes import chunks
from qcomp.transforms.lower_to_loop.movement import copy
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import ALL, lowers
from qcomp.transforms.lower_to_loop.through_reals import recoded
from qcomp.transforms.moved_operands import keeps_order

Places = list[Index | int]
Body = Callable[[Builder, Sequence[SSAValue]], None]


def run(lowering: Lowering, op: Operation, name: str, key: object, buffers: Sequence[Buffer], body: Body) -> None:
    """Emit the call of a kernel over row-major buffers that depends on their types and `key`.

    Buffers of codes are seen as reals.
    """
    kinds = [memref_of(buffer.element, buffer.sizes) for buffer in buffers]
    values = [lowering.view(buffer, kind) for buffer, kind in zip(buffers, kinds, strict=True)]
    names = [f"x{place}" for place in range(len(buffers) - 1)] + ["y"]
    codes = tuple(codes_in(buffer) for buffer in buffers)

    def build(symbol: str):
        func, b, arguments = kernel(symbol, list(zip(names, kinds, strict=True)), op.location)
        for value, item in zip(arguments, codes, strict=True):
            in_reals(b, value, item)
        body(b, arguments)
        return finish(func)

    lowering.call((name, key, codes, *(str(kind) for kind in kinds)), name, build, values, op.location)


def indices_over(b: Builder, stack: ExitStack, sizes: Sequence[int], but: Sequence[int] = ()) -> Places:
    """Open loops over all dimensions but some, where the index stays 0."""
    found: Places = [0] * len(sizes)
    for axis, size in enumerate(sizes):
        if axis not in but and size != 1:
            found[axis] = stack.enter_context(b.loop(0, size)).index
    return found


def at(places: Places, axis: int, index: Index | int) -> Places:
    """`places` with another index along `axis`."""
    return [*places[:axis], index, *places[axis + 1 :]]


def within(sizes: Sequence[int], places: Places) -> Places:
    """Where a buffer of `sizes` that broadcasts is read."""
    return [0 if size == 1 else place for size, place in zip(sizes, places, strict=True)]


def _check_indices(indices: Buffer, size: int) -> None:
    if str(indices.element) not in ("i32", "i64"):
        raise QcompError("indices must be i32 or i64 to be lowered to loops", code="lower")
    if size == 0:
        raise QcompError("an index into a dimension without elements", code="shape")


@lowers(nn.GatherOp, elements=ALL, symbolic=True)
def lower_gather(lowering: Lowering, op: nn.GatherOp) -> None:
    """A copy per index, of a row where indices broadcast along the last dimension."""
    where, dim = op.location, op.dim.value.data
    target = lowering.define(op.result, where, Layout(False))
    source = recoded(lowering, lowering.row_major(op.input, where), target.encoding, where)
    picked = lowering.row_major(op.indices, where)
    _check_indices(picked, source.sizes[dim])
    last = len(target.sizes) - 1
    rows = dim != last and picked.sizes[last] == 1 and source.sizes[last] == target.sizes[last]
    lanes = lowering.target.lanes if rows and str(source.element) in IN_LANES else 1

    def body(b: Builder, values: Sequence[SSAValue]) -> None:
        x, indices, y = values
        with ExitStack() as stack:
            places = indices_over(b, stack, target.sizes, (last,) if rows else ())
            row = clamped_row(b, b.load(indices, within(picked.sizes, places)), source.sizes[dim])
            if not rows:
                b.store(b.load(x, at(within(source.sizes, places), dim, row)), y, places)
                return
            for part in chunks(target.sizes[last], source.element, lanes):
                with b.loop(part.start, part.stop, part.step) as nest:
                    over = (last,) if part.shape else ()
                    spot = at(at(within(source.sizes, places), dim, row), last, nest.index)
                    tile = b.load(x, spot, part.shape, over, None, part.valid)
                    b.store(tile, y, at(places, last, nest.index), over, None, part.valid)

    run(lowering, op, "gather", (dim, lanes), [_bytes(source), picked, _bytes(target)], body)


def _bytes(buffer: Buffer) -> Buffer:
    """`buffer`, its codes not looked at."""
    return replace(buffer, encoding=None, views={})


@lowers(nn.ScatterOp, elements=ALL, symbolic=True, in_float32=lambda op: op.reduce.data != "none")
def lower_scatter(lowering: Lowering, op: nn.ScatterOp) -> None:
    """A copy of the input, then the elements of source in order."""
    where, dim, reduce = op.location, op.dim.value.data, op.reduce.data
    element = real_element(op.input)
    if reduce != "none" and is_float(element) and str(element) in ("f16", "bf16"):
        raise QcompError(f"nn.scatter that combines {element} is not lowered to loops", code="lower")
    if reduce != "none" and lowering.operand(op.input).encoding is not None:
        raise QcompError("nn.scatter that combines codes is not lowered to loops", code="lower")
    target = lowering.define(op.result, where, Layout(False))
    base = recoded(lowering, lowering.row_major(op.input, where), target.encoding, where)
    source = recoded(lowering, lowering.row_major(op.source, where), target.encoding, where)
    picked = lowering.row_major(op.indices, where)
    copy(lowering, base, target, where)
    if 0 in source.sizes:
        return
    _check_indices(picked, base.sizes[dim])

    def body(b: Builder, values: Sequence[SSAValue]) -> None:
        given, indices, y = values
        with ExitStack() as stack:
            places = indices_over(b, stack, source.sizes)
            row = clamped_row(b, b.load(indices, within(picked.sizes, places)), base.sizes[dim])
            value, spot = b.load(given, places), at(places, dim, row)
            if reduce != "none":
                m = algebra(b, (), element)
                held = [as_held(b, item, element) for item in (b.load(y, spot), value)]
                value = as_stored(b, _combined(m, reduce, held[0], held[1]), element)
            b.store(value, y, spot)

    run(lowering, op, "scatter", (dim, reduce, str(element)), [_bytes(source), picked, _bytes(target)], body)


def _combined(m: Reals, kind: str, old: SSAValue, new: SSAValue) -> SSAValue:
    """One step of a sum, product or extreme."""
    match kind:
        case "add":
            return m.add(old, new)
        case "mul":
            return m.multiply(old, new)
        case "max":
            return m.larger(old, new)
        case _:
            return m.smaller(old, new)


@lowers(nn.ScanOp, elements=ALL, symbolic=True)
def lower_scan(lowering: Lowering, op: nn.ScanOp) -> None:
    """The total so far is carried from element to element."""
    where, dim, kind = op.location, op.dim.value.data, op.kind.data
    source, element = in_order(lowering, lowering.row_major(op.input, where), op, kind.removeprefix("arg"))
    result = element if encoding_of(op.result.type) is not None else real_element(op.result)
    target = result_of(lowering, op.result, element, where)

    def body(b: Builder, values: Sequence[SSAValue]) -> None:
        x, y = values
        with ExitStack() as stack:
            stack.enter_context(b.unless_empty(source.sizes[dim]))
            places = indices_over(b, stack, source.sizes, (dim,))
            first = as_held(b, b.load(x, at(places, dim, 0)), element)
            if kind in ("add", "logaddexp") and is_float(element):
                m = algebra(b, (), element)
                first = m.add(first, m.number(0.0))
            zero = b.integer(0, (), i64)
            start = zero if kind.startswith("arg") else first
            b.store(as_stored(b, start, result), y, at(places, dim, 0))
            with b.loop(1, source.sizes[dim], carry=[first, zero]) as nest:
                value = as_held(b, b.load(x, at(places, dim, nest.index)), element)
                best, place = _scanned(b, element, kind, nest.carried, value, nest.index)
                shown = place if kind.startswith("arg") else best
                b.store(as_stored(b, shown, result), y, at(places, dim, nest.index))
                nest.carry(best, place)

    run(lowering, op, "scan", (dim, kind, str(element), str(result)), [source, target], body)


def _scanned(
    b: Builder, element: Attribute, kind: str, carried: Sequence[SSAValue], value: SSAValue, index: Index
) -> tuple[SSAValue, SSAValue]:
    m, (best, place) = algebra(b, (), element), carried
    if kind in ("add", "mul"):
        return _combined(m, kind, best, value), place
    if kind == "logaddexp":
        return logaddexp(m, best, value), place
    here = b.add(arith.IndexCastOp(b.value(index), i64))
    predicate = "ge" if kind.endswith("max") else "le"
    found: list[SSAValue] = []
    for old, new in ((best, value), (place, here)):
        taken = m.select(predicate, value, best, new, old)
        if is_float(element):
            taken = m.select("ne", value, value, new, m.select("ne", best, best, old, taken))
        found.append(taken)
    return found[0], found[1]


def in_order(lowering: Lowering, source: Buffer, op: Operation, kind: str) -> tuple[Buffer, Attribute]:
    """The operand of an op that compares elements (kind "max" or "min"; others compute), and their type.

    Codes are compared as bytes where they stand for numbers in their order and do not change their encoding.
    """
    held, given = source.encoding, encoding_of(op.results[0].type)
    if kind in ("max", "min") and held is not None and given in (None, held) and keeps_order(held):
        return _bytes(source), i8 if held.signed else ui8
    return source, real_element(op.operands[0])


def result_of(lowering: Lowering, value: SSAValue, element: Attribute, where: LocationAttr) -> Buffer:
    """A row-major buffer for the result of an op that works on elements of that type."""
    target = lowering.define(value, where, Layout(False))
    return _bytes(target) if element in (i8, ui8) else target


@lowers(nn.AminOp, nn.ProdOp, nn.ArgmaxOp, nn.ArgminOp, elements=ALL, symbolic=True)
def lower_search(lowering: Lowering, op: nn.ReduceOp) -> None:
    """One element after the other, in row-major order."""
    kinds: dict[type[Operation], str] = {
        nn.AminOp: "min", nn.ProdOp: "mul", nn.ArgmaxOp: "argmax", nn.ArgminOp: "argmin",
    }  # fmt: skip
    reduce_in_order(lowering, op, kinds[type(op)])


def reduce_in_order(lowering: Lowering, op: nn.ReduceOp, kind: str) -> None:
    """Emit a reduction of elements of any type, one after the other; an extreme starts from the first."""
    where = op.location
    source, element = in_order(lowering, lowering.row_major(op.input, where), op, kind.removeprefix("arg"))
    result = element if encoding_of(op.result.type) is not None else real_element(op.result)
    axes, keepdim = op.axes, bool(op.keepdim.value.data)
    if kind not in ("add", "mul") and 0 in (source.sizes[axis] for axis in axes):
        raise QcompError("an extreme of no elements", code="shape")
    target = result_of(lowering, op.result, element, where)

    def body(b: Builder, values: Sequence[SSAValue]) -> None:
        x, y = values
        with ExitStack() as stack:
            places = indices_over(b, stack, source.sizes, axes)
            shown = [place for axis, place in enumerate(places) if keepdim or axis not in axes]
            start = _start(b, kind, x, places, element)
            best, place = _search(b, kind, element, x, places, source.sizes, list(axes), start)
            b.store(as_stored(b, place if kind.startswith("arg") else best, result), y, shown)

    run(lowering, op, f"reduce_{kind}", (axes, keepdim, kind, str(element), str(result)), [source, target], body)


def _start(b: Builder, kind: str, x: SSAValue, places: Places, element: Attribute) -> list[SSAValue]:
    zero = b.integer(0, (), i64)
    if kind in ("add", "mul"):
        return [b.number(1 if kind == "mul" else 0, (), held_element(element)), zero]
    return [as_held(b, b.load(x, places), element), zero]


def _search(
    b: Builder, kind: str, element: Attribute, x: SSAValue, places: Places, sizes: Sequence[int], axes: list[int],
    carried: Sequence[SSAValue],
) -> Sequence[SSAValue]:  # fmt: skip
    if not axes:
        value = as_held(b, b.load(x, places), element)
        return _combined_in_order(b, kind, element, carried, value, None)
    with b.loop(0, sizes[axes[0]], carry=carried) as nest:
        inner = at(places, axes[0], nest.index)
        if kind.startswith("arg"):
            value = as_held(b, b.load(x, inner), element)
            nest.carry(*_combined_in_order(b, kind, element, nest.carried, value, nest.index))
        else:
            nest.carry(*_search(b, kind, element, x, inner, sizes, axes[1:], nest.carried))
    return nest.results


def _combined_in_order(
    b: Builder, kind: str, element: Attribute, carried: Sequence[SSAValue], value: SSAValue, index: Index | None
) -> list[SSAValue]:
    m, (best, place) = algebra(b, (), element), carried
    if kind in ("add", "mul"):
        return [_combined(m, kind, best, value), place]
    predicate = "gt" if kind.endswith("max") else "lt"

    def chosen(new: SSAValue, old: SSAValue) -> SSAValue:
        taken = m.select(predicate, value, best, new, old)
        if not is_float(element):
            return taken
        return m.select("ne", best, best, old, m.select("ne", value, value, new, taken))

    if index is None:
        return [chosen(value, best), place]
    here = b.add(arith.IndexCastOp(b.value(index), i64))
    return [chosen(value, best), chosen(here, place)]
