# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of quantization by computed parameters: elementwise kernels, parameters broadcast as any operand is.

The steps are those of `qcomp.interpreter.reference.dynamic`, one op each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import Float64Type, f32, i8, i32
from xdsl.ir import SSAValue

from qcomp.dialects import loop, quant
from qcomp.dialects.nn.base import tensor
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import lower_elementwise
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import REALS, lowers


def _reals(b: Builder, x: Sequence[SSAValue]) -> Reals:
    return Reals(b, loop.tile_shape(x[0].type))


@lowers(quant.ChooseScaleOp, elements=REALS, symbolic=True)
def lower_scale(lowering: Lowering, op: quant.ChooseScaleOp) -> None:
    """max(span / divisor, floor); NaN stays."""
    divisor, floor, symmetric = op.divisor.value.data, op.floor.value.data, op.symmetric is not None

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        m = _reals(b, x)
        below, above = m.clamp(x[0], -math.inf, 0.0), m.clamp(x[1], 0.0, math.inf)
        if symmetric:
            span = b.add(loop.MaximumOp(m.negate(below), above))
        else:
            span = m.subtract(above, below)
        return b.add(loop.MaximumOp(m.divide(span, m.number(divisor)), m.number(floor)))

    operands = [lowering.operand(value) for value in op.operands]
    target = lowering.define(op.result, op.location)
    lower_elementwise(lowering, operands, target, op.location, "scale", ("scale", divisor, floor, symmetric), compute)


@lowers(quant.ChooseZeroPointOp, elements=REALS, symbolic=True)
def lower_zero_point(lowering: Lowering, op: quant.ChooseZeroPointOp) -> None:
    """The code of 0, as i32."""
    (low, high), nearest = map(float, op.bounds), op.nearest is not None

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        m = _reals(b, x)
        first, last, scale = m.number(low), m.number(high), x[2]
        below, above = m.clamp(x[0], -math.inf, 0.0), m.clamp(x[1], 0.0, math.inf)
        from_low = m.divide(below, scale)
        if not nearest:
            point = m.clamp(m.subtract(first, m.round(from_low)), low, high)
        else:
            from_high = m.divide(above, scale)
            error = m.add(m.add(first, from_low), m.add(last, from_high))
            nearer = m.select("gt", error, 0.0, m.subtract(first, from_low), m.subtract(last, from_high))
            point = m.round(m.clamp(nearer, low, high))
        return b.add(loop.RoundOp(point, False, 0))

    operands = [lowering.operand(value) for value in op.operands]
    target = lowering.define(op.result, op.location)
    name = ("zero_point", low, high, nearest)
    lower_elementwise(lowering, operands, target, op.location, "zero_point", name, compute)


def _real_zero_point(b: Builder, value: SSAValue) -> SSAValue:
    return value if loop.tile_element(value.type) == f32 else b.add(loop.ToFloatOp(value))


@lowers(quant.QuantizeDynamicOp, elements=REALS, symbolic=True)
def lower_quantize(lowering: Lowering, op: quant.QuantizeDynamicOp) -> None:
    """trunc(clamp(round(x / scale) + zero_point)) to bytes or i32. Not in float64, which loops lack."""
    if isinstance(op.recipe, Float64Type):
        raise QcompError("quantize in float64 is not lowered to loops", code="lower", hint="use float32 scales")
    (low, high), element = op.bounds, tensor(op.result).element_type
    narrow = quant.code_bits(element) == 8
    if max(-low, high) >= 2**24:
        raise QcompError("quantize to 32 bits is not lowered to loops", code="lower")

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        m = _reals(b, x)
        rounded = m.round(m.multiply(x[0], m.divide(m.number(1.0), x[1])))
        moved = m.clamp(m.add(rounded, _real_zero_point(b, x[2])), float(low), float(high))
        if op.nan_code:
            moved = m.select("eq", moved, moved, moved, m.number(float(op.nan_code)))
        codes = b.add(loop.TruncateOp(moved, i32))
        return b.add(loop.NarrowOp(codes, low, high)) if narrow else codes

    operands = [lowering.operand(value) for value in op.operands]
    target = lowering.define(op.result, op.location)
    name = ("quantize_dynamic", low, high, narrow, op.nan_code)
    lower_elementwise(lowering, operands, target, op.location, "quantize_dynamic", name, compute)


@lowers(quant.DequantizeDynamicOp, elements=frozenset({"i8", "ui8", "i32"}), symbolic=True)
def lower_dequantize(lowering: Lowering, op: quant.DequantizeDynamicOp) -> None:
    """(float(q) - float(zero_point)) * scale."""
    unsigned = quant.is_unsigned(tensor(op.input).element_type)

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        m = _reals(b, x)
        codes = b.add(loop.ExtendOp(x[0], unsigned)) if loop.tile_element(x[0].type) == i8 else x[0]
        difference = m.subtract(b.add(loop.ToFloatOp(codes)), _real_zero_point(b, x[2]))
        return m.multiply(difference, x[1])

    operands = [lowering.operand(value) for value in op.operands]
    target = lowering.define(op.result, op.location)
    name = ("dequantize_dynamic", unsigned)
    lower_elementwise(lowering, operands, target, op.location, "dequantize_dynamic", name, compute)
