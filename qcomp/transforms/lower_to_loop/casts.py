# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of nn.cast between f32, integers and bool, a byte of 0 or 1 in memory, and of quant.cast_storage."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, i8, i32, i64
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop, nn, quant
from qcomp.dialects.element import ui8
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.buffers import Layout
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering, lowers
from qcomp.transforms.lower_to_loop.elementwise import Compute, lower_elementwise
from qcomp.transforms.lower_to_loop.movement import convert, copy
from qcomp.transforms.lower_to_loop.reals import Reals

_BOOL = IntegerType(1)


@lowers(nn.CastOp)
def lower_cast(lowering: Lowering, op: nn.CastOp) -> None:
    """Floats truncate towards zero and saturate, NaN becomes 0; integers wrap; bool means not 0."""
    if encoding_of(op.input.type) is not None or encoding_of(op.result.type) is not None:
        raise QcompError("a cast of codes is not lowered to loops", code="lower", hint="dequantize first")
    source, target = tensor(op.input).element_type, tensor(op.result).element_type
    compute: Compute = lambda b, x: cast(b, x[0], source, target)  # noqa: E731
    operand = lowering.operand(op.input)
    result = lowering.define(op.result, op.location)
    name = ("cast", str(source), str(target))
    lower_elementwise(lowering, [operand], result, op.location, "cast", name, compute)


def cast(b: Builder, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A tile or scalar of `source`, as buffers hold it, as `target`."""
    if source == target:
        return value
    if source in (i8, ui8, _BOOL):
        value = b.add(loop.ExtendOp(value, source != i8))
    if target == _BOOL:
        return _truth(b, value)
    held = loop.tile_element(value.type)
    if target == f32:
        return b.add(loop.ToFloatOp(value))
    if target == i64:
        return b.add(loop.TruncateOp(value, i64) if held == f32 else arith.ExtSIOp(value, i64))
    if held == i64:
        value = b.add(arith.TruncIOp(value, i32))
    elif held == f32:
        value = b.add(loop.TruncateOp(value, i32))
    if target == i32:
        return value
    if held == f32:
        return b.add(loop.NarrowOp(value, 0, 255) if target == ui8 else loop.NarrowOp(value, -128, 127))
    low_byte = b.add(arith.AndIOp(value, b.integer(255, loop.tile_shape(value.type))))
    return b.add(loop.NarrowOp(low_byte, 0, 255))


def _truth(b: Builder, value: SSAValue) -> SSAValue:
    m = Reals(b, loop.tile_shape(value.type))
    held = loop.tile_element(value.type)
    zero = m.number(0.0) if held == f32 else b.integer(0, m.shape, held)
    return b.add(loop.NarrowOp(m.select("ne", value, zero, m.whole(1), m.whole(0)), 0, 1))


@lowers(quant.CastStorageOp)
def lower_cast_storage(lowering: Lowering, op: quant.CastStorageOp) -> None:
    """The same bytes; a copy where they are returned, or lie with a border, which holds the zero of one side only."""
    source = lowering.operand(op.input)
    seen = replace(source, encoding=encoding_of(op.result.type), views={})
    if lowering.is_result(op.result):
        copy(lowering, seen, lowering.define(op.result, op.location, Layout(False)), op.location)
    elif any(source.layout.border):
        lowering.buffers[op.result] = convert(lowering, seen, lowering.layouts.layout(op.result), op.location)
    else:
        lowering.buffers[op.result] = seen
