# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How elements are held to compute with: reals as f32 or f64, integers of up to 32 bits and truth values (0 or 1) as
i32, longer ones as i64; and how kernels of any element type are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects import loop, quant
from qcomp.dialects.element import is_integer, is_unsigned
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import Compute, lower_elementwise
from qcomp.transforms.lower_to_loop.reals import Reals, Wholes

i1 = IntegerType(1)


def held_element(element: Attribute) -> Attribute:
    """The type that elements of `element` are held in. Raises QcompError for types the loop level lacks."""
    if isinstance(element, Float16Type | BFloat16Type | Float32Type):
        return f32
    if isinstance(element, Float64Type):
        return f64
    if is_integer(element) and (element.width.data < 32 or element == i32):
        return i32
    if element == i64:
        return i64
    raise QcompError(f"tensors of {element} are not lowered to loops", code="lower")


def algebra(b: Builder, shape: Sequence[int], element: Attribute) -> Reals:
    """Arithmetic on elements of `element` as they are held."""
    held = held_element(element)
    if is_integer(element):
        return Wholes(b, shape, held, element.width.data)
    return Reals(b, shape, held)


def as_held(b: Builder, tile: SSAValue, element: Attribute | None) -> SSAValue:
    """A tile as it lies in memory, of `element` (None: reals already), as it is computed with."""
    if isinstance(element, Float16Type | BFloat16Type):
        return b.add(loop.WidenHalfOp(tile, element))
    if element is None or not is_integer(element) or element.width.data > 16:
        return tile
    if element.width.data <= 8:
        return b.add(loop.ExtendOp(tile, is_unsigned(element)))
    wide = loop.tile_like(tile.type, i32)
    return b.add((arith.ExtUIOp if is_unsigned(element) else arith.ExtSIOp)(tile, wide))  # pyright: ignore[reportArgumentType]


def as_stored(b: Builder, value: SSAValue, element: Attribute | None) -> SSAValue:
    """What was computed as it lies in memory: halves rounded, integers cut to their bits."""
    if isinstance(element, Float16Type | BFloat16Type):
        return b.add(loop.NarrowHalfOp(value, element))
    if element is None or not is_integer(element) or element.width.data > 16:
        return value
    if element.width.data == 16:
        return b.add(arith.TruncIOp(value, loop.tile_like(value.type, IntegerType(16))))  # pyright: ignore[reportArgumentType]
    mask = 1 if element == i1 else 255
    low = b.add(arith.AndIOp(value, b.integer(mask, loop.tile_shape(value.type))))
    return b.add(loop.NarrowOp(low, 0, mask))


def wrapped(b: Builder, value: SSAValue, element: Attribute) -> SSAValue:
    """A computed integer cut to the bits of `element` and extended again; anything else as it is."""
    if not is_integer(element) or element.width.data > 16:
        return value
    return as_held(b, as_stored(b, value, element), element)


def plain_element(value: SSAValue) -> Attribute | None:
    """The element type of a plain tensor; None for a quantized one."""
    return None if encoding_of(value.type) is not None else tensor(value).element_type


def real_element(value: SSAValue) -> Attribute:
    """The element type that a tensor is computed with: f32 for a quantized one."""
    return plain_element(value) or f32


def truth(b: Builder, condition: SSAValue) -> SSAValue:
    """An i1 tile as i32 0 or 1."""
    shape = loop.tile_shape(condition.type)
    return b.add(loop.SelectOp(condition, b.integer(1, shape), b.integer(0, shape)))


def is_true(b: Builder, value: SSAValue) -> SSAValue:
    """A held truth value as i1."""
    return b.add(loop.CompareOp("ne", value, b.integer(0, loop.tile_shape(value.type))))


def lower_pointwise(
    lowering: Lowering, op: Operation, name: str, function: tuple[object, ...], compute: Compute,
    recipe: quant.Recipe | None = None, scalar: bool = False, codes_as_bytes: bool = False,
) -> None:  # fmt: skip
    """Emit the call that computes the result of `op`, elementwise with broadcasting, on elements as they are held.

    scalar: one element at a time. codes_as_bytes: codes are not dequantized, they are moved.
    """
    operands = [lowering.operand(value) for value in op.operands]
    target = lowering.define(op.results[0], op.location)
    kinds = [plain_element(value) for value in (*op.operands, *op.results)]
    if codes_as_bytes:
        kinds = [IntegerType(8) if kind is None else kind for kind in kinds]
        operands = [replace(buffer, encoding=None) for buffer in operands]
        target = replace(target, encoding=None)

    def wrapped(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        held = [as_held(b, value, kind) for value, kind in zip(x, kinds, strict=False)]
        return as_stored(b, compute(b, held), kinds[-1])

    # arith's conversions between integers of 16 bits and others are for scalars.
    scalar = scalar or any(kind is not None and is_integer(kind) and kind.width.data == 16 for kind in kinds)
    key = (*function, *(str(kind) for kind in kinds))
    lower_elementwise(lowering, operands, target, op.location, name, key, wrapped, recipe, scalar)
