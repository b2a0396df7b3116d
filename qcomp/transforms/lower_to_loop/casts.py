# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of nn.cast between all element types, and of quant.cast_storage."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop, nn, quant
from qcomp.dialects.element import integer_range, is_integer
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.buffers import Layout
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import Compute
from qcomp.transforms.lower_to_loop.held import algebra, as_held, as_stored, held_element, lower_pointwise, truth
from qcomp.transforms.lower_to_loop.movement import convert, copy
from qcomp.transforms.lower_to_loop.reals import Wholes
from qcomp.transforms.lower_to_loop.registry import ALL, lowers

_BOOL = IntegerType(1)


@lowers(nn.CastOp, elements=ALL, symbolic=True)
def lower_cast(lowering: Lowering, op: nn.CastOp) -> None:
    """Floats truncate towards zero and saturate, NaN becomes 0; integers wrap; bool means not 0."""
    if encoding_of(op.input.type) is not None or encoding_of(op.result.type) is not None:
        raise QcompError("a cast of codes is not lowered to loops", code="lower", hint="dequantize first")
    source, target = tensor(op.input).element_type, tensor(op.result).element_type
    compute: Compute = lambda b, x: cast_held(b, x[0], source, target)  # noqa: E731
    lower_pointwise(lowering, op, "cast", ("cast", str(source), str(target)), compute)


def cast(b: Builder, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A tile or scalar of `source`, as buffers hold it, as `target`."""
    return as_stored(b, cast_held(b, as_held(b, value, source), source, target), target)


def cast_held(b: Builder, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A tile or scalar of `source` as it is held, as `target` is held; integers not cut to their bits yet."""
    if source == target:
        return value
    if target == _BOOL:
        m = algebra(b, loop.tile_shape(value.type), source)
        return truth(b, b.add(loop.CompareOp("ne", value, m.number(0))))
    held, wanted = held_element(source), held_element(target)
    if is_integer(held):
        return _from_integer(b, value, held, wanted)
    if is_integer(target):
        return _saturated(b, b.add(loop.TruncateOp(value, wanted)), target)
    if held == wanted:
        return value
    kind = loop.tile_like(value.type, wanted)
    return b.add((arith.ExtFOp if wanted == f64 else arith.TruncFOp)(value, kind))  # pyright: ignore[reportArgumentType]


def _from_integer(b: Builder, value: SSAValue, held: Attribute, wanted: Attribute) -> SSAValue:
    if wanted in (f32, f64):
        return b.add(loop.ToFloatOp(value, wanted))
    if held == wanted:
        return value
    kind = loop.tile_like(value.type, wanted)
    return b.add((arith.ExtSIOp if wanted == i64 else arith.TruncIOp)(value, kind))  # pyright: ignore[reportArgumentType]


def _saturated(b: Builder, value: SSAValue, target: IntegerType) -> SSAValue:
    """Whole numbers from reals, limited to what `target` holds; they are limited to i32 or i64 already."""
    if target in (i32, i64):
        return value
    m = Wholes(b, loop.tile_shape(value.type), held_element(target), target.width.data)
    return m.clamp(value, *integer_range(target))


@lowers(quant.CastStorageOp, elements=frozenset({"i8", "ui8"}), symbolic=True)
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
