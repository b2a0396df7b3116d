# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of data movement: views where the bytes lie right already, copies elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import LocationAttr, f64, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import is_float
from qcomp.dialects.nn.base import ints, tensor
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import narrow
from qcomp.interpreter.reference.quantize import code_of
from qcomp.transforms.lower_to_loop.access import Seen, lane_dimension, place
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout, physical_shape, static_shape
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS, lane_choice
from qcomp.transforms.lower_to_loop.fill import fill_border, fill_frame
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.registry import ALL, lowers
from qcomp.transforms.lower_to_loop.through_reals import recoded


@dataclass(frozen=True)
class Move:
    """target[offset + step * i] = source[start + stride * i] over i in `sizes`, logical dimensions matched by `dims`.

    dims[d] is the source dimension that target dimension d walks along, or None where it broadcasts.
    """

    source: Seen
    target: Seen
    sizes: tuple[int, ...]
    dims: tuple[int | None, ...]
    starts: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    steps: tuple[int, ...]
    lanes: int


def copy(lowering: Lowering, source: Buffer, target: Buffer, where: LocationAttr) -> None:
    """Emit a copy between two layouts of one tensor."""
    rank = len(source.sizes)
    move(lowering, source, target, where, "copy", source.sizes, tuple(range(rank)))


def move(
    lowering: Lowering, source: Buffer, target: Buffer, where: LocationAttr, name: str, sizes: Sequence[int],
    dims: Sequence[int | None], starts: Sequence[int] | None = None, strides: Sequence[int] | None = None,
    offsets: Sequence[int] | None = None, steps: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Emit the call of a movement kernel."""
    rank = len(source.sizes)
    spec = Move(
        Seen.of(source), Seen.of(target), tuple(sizes), tuple(dims), tuple(starts or (0,) * rank),
        tuple(strides or (1,) * rank), tuple(offsets or (0,) * len(sizes)),
        tuple(steps or (1,) * len(sizes)), lowering.target.lanes,
    )  # fmt: skip
    arguments = [source.value, target.value]
    lowering.call(spec, name, lambda symbol: _build(spec, symbol, where), arguments, where)


def _build(spec: Move, name: str, where: LocationAttr) -> FuncOp:
    kinds = [
        memref_of(ELEMENTS[seen.element], physical_shape(seen.sizes, seen.layout))
        for seen in (spec.source, spec.target)
    ]
    func, b, (x, y) = kernel(name, list(zip(("x", "y"), kinds, strict=True)), where)
    dim = lane_choice(spec.target) or 0
    order = [other for other in spec.target.order if other != dim and spec.sizes and spec.sizes[other] != 1]
    _loops(b, spec, (x, y), dim, order, [Index()] * len(spec.sizes))
    return finish(func)


def _loops(
    b: Builder, spec: Move, buffers: tuple[SSAValue, SSAValue], dim: int, order: list[int], indices: list[Index]
) -> None:
    if order:
        with b.loop(0, spec.sizes[order[0]]) as nest:
            indices[order[0]] = nest.index
            _loops(b, spec, buffers, dim, order[1:], indices)
        return
    if not spec.sizes:
        _element(b, spec, buffers, dim, indices, Chunk(0, 1, 1, ()))
        return
    lanes = spec.lanes if spec.source.element in ("f32", "i8", "i16") else 1
    # Strided tiles go element by element through a register's worth of lanes.
    last = lane_dimension(spec.target, len(spec.sizes), dim) == len(spec.target.order) - 1
    contiguous = last and spec.steps[dim] == 1
    for part in chunks(spec.sizes[dim], ELEMENTS[spec.source.element], lanes, contiguous and _unit(spec, dim)):
        with b.loop(part.start, part.stop, part.step) as nest:
            indices[dim] = nest.index
            _element(b, spec, buffers, dim, indices, part)


def _unit(spec: Move, dim: int) -> bool:
    own = spec.dims[dim]
    return own is not None and spec.source.order.index(own) == len(spec.source.order) - 1 and spec.strides[own] == 1


def _element(
    b: Builder, spec: Move, buffers: tuple[SSAValue, SSAValue], dim: int, indices: Sequence[Index], part: Chunk
) -> None:
    x, y = buffers
    read: list[Index | int] = [Index.of(start) for start in spec.starts]
    for position, own in enumerate(spec.dims):
        if own is not None:
            read[own] = indices[position] * spec.strides[own] + spec.starts[own]
    own = spec.dims[dim] if spec.sizes else None
    source_place = [
        Index.of(read[logical]) + start for logical, start in zip(spec.source.order, spec.source.origin, strict=True)
    ]
    if part.shape and own is not None:
        value = b.load(x, source_place, part.shape, (spec.source.order.index(own),), (spec.strides[own],), part.valid)
    else:
        value = b.load(x, source_place)
        value = b.broadcast(value, part.shape) if part.shape else value
    written = [index * step + off for index, off, step in zip(indices, spec.offsets, spec.steps, strict=True)]
    target_place = _exact_place(spec.target, written)
    if part.shape:
        b.store(value, y, target_place, (spec.target.order.index(dim),), (spec.steps[dim],), part.valid)
    else:
        b.store(value, y, target_place)


def _exact_place(seen: Seen, indices: Sequence[Index]) -> list[Index | int]:
    return [indices[logical] + start for logical, start in zip(seen.order, seen.origin, strict=True)]


def convert(lowering: Lowering, buffer: Buffer, layout: Layout, where: LocationAttr) -> Buffer:
    """A copy of `buffer` in another layout, its border filled."""
    kind = memref_of(buffer.element, physical_shape(buffer.sizes, layout))
    target = Buffer(lowering.allocate(kind, where), buffer.sizes, layout, buffer.encoding, buffer.element)
    if any(layout.border):
        fill_border(lowering, target, where)
    copy(lowering, buffer, target, where)
    return target


@lowers(nn.ReshapeOp, elements=ALL, symbolic=True)
def lower_reshape(lowering: Lowering, op: nn.ReshapeOp) -> None:
    """A view where row-major order is the order in memory on both sides; else through a row-major copy."""
    source = lowering.operand(op.input)
    if not source.row_major:
        source = lowering.row_major(op.input, op.location)
    source = _coded_like(lowering, op, source)
    sizes = static_shape(op.result)
    wanted = Buffer(source.value, sizes, lowering.layouts.layout(op.result), None, source.element)
    if wanted.row_major and not lowering.is_result(op.result):
        lowering.alias(op.result, source)
        return
    target = lowering.define(op.result, op.location)
    view = lowering.view(source, memref_of(source.element, sizes))
    copy(lowering, Buffer(view, sizes, Layout(False), source.encoding, source.element), target, op.location)


@lowers(nn.PermuteOp, elements=ALL, symbolic=True)
def lower_permute(lowering: Lowering, op: nn.PermuteOp) -> None:
    """A copy along permuted dimensions; a view where the order in memory stays, as from [N, C, H, W] channels last to
    [N, H, W, C]."""
    source, dims = _coded_like(lowering, op, lowering.operand(op.input)), ints(op.dims)
    if not lowering.is_result(op.result) and _stays(source, lowering.layouts.layout(op.result), dims):
        lowering.alias(op.result, source)
        return
    target = lowering.define(op.result, op.location)
    move(lowering, source, target, op.location, "permute", target.sizes, dims)


def _stays(source: Buffer, layout: Layout, dims: Sequence[int]) -> bool:
    sizes = tuple(source.sizes[dim] for dim in dims)
    seen = Seen.of(source)
    target = Seen(sizes, layout, seen.element, seen.unsigned)
    orders = [
        [dim for dim in order if source.sizes[dim] != 1]
        for order in (seen.order, [dims[place] for place in target.order])
    ]
    return seen.dense() and target.dense() and orders[0] == orders[1]


@lowers(nn.ExpandOp, elements=ALL, symbolic=True)
def lower_expand(lowering: Lowering, op: nn.ExpandOp) -> None:
    """A copy that repeats dimensions of size 1."""
    source = _coded_like(lowering, op, lowering.operand(op.input))
    target = lowering.define(op.result, op.location)
    missing = len(target.sizes) - len(source.sizes)
    dims = [
        dim - missing if dim >= missing and source.sizes[dim - missing] == size else None
        for dim, size in enumerate(target.sizes)
    ]
    move(lowering, source, target, op.location, "expand", target.sizes, dims)


@lowers(nn.SliceOp, elements=ALL, symbolic=True)
def lower_slice(lowering: Lowering, op: nn.SliceOp) -> None:
    """A copy of a part."""
    source = _coded_like(lowering, op, lowering.operand(op.input))
    target = lowering.define(op.result, op.location)
    dim, (start, _), step = op.dim.value.data, op.bounds, op.step.value.data
    rank = len(source.sizes)
    starts = [start if axis == dim else 0 for axis in range(rank)]
    strides = [step if axis == dim else 1 for axis in range(rank)]
    move(lowering, source, target, op.location, "slice", target.sizes, range(rank), starts, strides)


@lowers(nn.CatOp, elements=ALL, symbolic=True)
def lower_cat(lowering: Lowering, op: nn.CatOp) -> None:
    """Each operand copied to its part of the result."""
    target = lowering.define(op.result, op.location)
    rank, start = len(target.sizes), 0
    dim = op.dim.value.data % rank
    for value in op.inputs:
        source = _coded_like(lowering, op, lowering.operand(value))
        offsets = [start if axis == dim else 0 for axis in range(rank)]
        if 0 not in source.sizes:
            move(lowering, source, target, op.location, "cat", source.sizes, range(rank), None, None, offsets)
        start += source.sizes[dim]


@lowers(nn.PadOp, elements=ALL, symbolic=True)
def lower_pad(lowering: Lowering, op: nn.PadOp) -> None:
    """The frame filled with the number, or with its code, and a copy into the middle."""
    source = _coded_like(lowering, op, lowering.operand(op.input))
    target = lowering.define(op.result, op.location)
    low, value = ints(op.low), op.value.value.data
    seen = Seen.of(target)
    outer = tuple((first, first + target.sizes[dim]) for dim, first in zip(seen.order, seen.origin, strict=True))
    starts = [first + low[dim] for dim, first in zip(seen.order, seen.origin, strict=True)]
    inner = tuple((start, start + source.sizes[dim]) for dim, start in zip(seen.order, starts, strict=True))
    if target.encoding is not None:
        number = code_of(value, target.encoding)
    elif is_float(tensor(op.result).element_type):
        number = _as_it_lies(value, tensor(op.result).element_type)
    elif tensor(op.result).element_type == i1:
        number = int(value != 0)
    elif value == int(value):
        number = int(value)
    else:
        raise QcompError(f"padding of integers with {value}", code="unsupported-type")
    fill_frame(lowering, target, outer, inner, number, "pad_frame", op.location)
    if 0 not in source.sizes:
        move(lowering, source, target, op.location, "pad", source.sizes, range(len(low)), None, None, low)


def _as_it_lies(value: float, element: Attribute) -> float | int:
    """A real as a buffer holds it: 16-bit floats as a pattern."""
    if element == f64:
        return value
    held = narrow(np.full(1, value, np.float32), element)
    return float(held[0]) if held.dtype == np.float32 else int(held.view(np.int16)[0])


def _coded_like(lowering: Lowering, op: Operation, source: Buffer) -> Buffer:
    """The operand with the encoding of the result."""
    return recoded(lowering, source, encoding_of(op.results[0].type), op.location)


__all__ = ["convert", "copy", "move", "place"]
