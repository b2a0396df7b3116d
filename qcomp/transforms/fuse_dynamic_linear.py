# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fuse-dynamic-linear: a linear of dynamically quantized values and quantized weights works on the codes.

    %q = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : ... -> tensor<5x6xi8>
    %d = quant.dequantize_dynamic %q, %s, %z
    %v = quant.dequantize %w
    %y = nn.linear %d, %v bias(%b)
 => %q = quant.quantize_dynamic ...
    %y = nn.dynamic_linear %q, %s, %z, %w bias(%b)

The sum of the products is an exact integer, scaled once; in float every product and sum is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, i32
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.nn import DynamicLinearOp, ExpandOp, LinearOp, ReshapeOp
from qcomp.dialects.nn.base import UNKNOWN, Shape, shape, tensor
from qcomp.dialects.quant import DequantizeDynamicOp, code_bits, encoding_of
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.qdq_pattern import codes_of, is_float32
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant

_LIMIT = 2**31


@dataclass(frozen=True)
class Reshaped:
    """A value, and the shape it is to be reshaped to."""

    value: SSAValue
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Operands:
    """What the linear on codes reads: codes, scale and zero point, and the weight."""

    activation: tuple[Reshaped, Reshaped, Reshaped]
    weight: SSAValue


class OnCodes(Rule[LinearOp, Operands]):
    """linear(dequantize_dynamic(q, s, z), dequantize(w), b) => dynamic_linear(q, s, z, w, b); reshapes move behind q.

    Precondition: q holds 8 bits; s and z are one number each, or one per row; z is i32; w is a constant of 8 signed
    bits, per tensor or along axis 0, with zero points 0; its rows are proved to fit int32; b is a constant in f32; no
    residual.
    """

    matches: ClassVar = LinearOp

    def plan(self, op: LinearOp) -> Operands | Refusal | None:
        source = op.input
        while isinstance(source.owner, ReshapeOp):
            source = source.owner.input
        if not isinstance(source.owner, DequantizeDynamicOp):
            return None
        found = _activation(source.owner, shape(op.input))
        if isinstance(found, Refusal):
            return found
        weight = codes_of(op.weight)
        if weight is None:
            return Refusal("weight is not dequantized")
        problem = _weight_problem(weight) or _problem(op)
        return Operands(found, weight) if problem is None else Refusal(problem)

    def apply(self, op: LinearOp, plan: Operands, rewriter: Rewriter) -> None:
        old, steps, values = tuple(op.operands), list[Operation](), list[SSAValue]()
        for item in plan.activation:
            value = item.value
            if shape(value) != item.sizes:
                steps.append(ReshapeOp(value, item.sizes))
                value = steps[-1].results[0]
            values.append(value)
        _, scale, zero_point = values
        sizes = max(shape(scale), shape(zero_point), key=len)
        for index, value in enumerate((scale, zero_point), 1):
            if shape(value) != sizes:
                # One number beside one per row.
                steps.append(ExpandOp(value, sizes))
                values[index] = steps[-1].results[0]
        codes, scale, zero_point = values
        rewriter.replace(op, *steps, DynamicLinearOp(codes, scale, zero_point, plan.weight, op.bias, op.activation))
        rewriter.erase_dead(*old)


def _activation(op: DequantizeDynamicOp, sizes: Shape) -> tuple[Reshaped, Reshaped, Reshaped] | Refusal:
    """The codes behind `op`, its scale and zero point, for a linear that sees them in the shape `sizes`."""
    if code_bits(tensor(op.input).element_type) != 8:
        return Refusal("input is not quantized to 8 bits")
    if tensor(op.zero_point).element_type != i32:
        return Refusal("zero point is not i32")
    held = shape(op.input)
    if UNKNOWN in (*held, *sizes):
        return Refusal("the shape of the input is not known")
    parameters: list[Reshaped] = []
    for value in (op.scale, op.zero_point):
        if all(size == 1 for size in shape(value)):
            parameters.append(Reshaped(value, ()))
        elif shape(value) == (*held[:-1], 1) and held[-1] == sizes[-1]:
            parameters.append(Reshaped(value, (*sizes[:-1], 1)))
        else:
            return Refusal("scale or zero point is neither one number nor one per row")
    return Reshaped(op.input, sizes), parameters[0], parameters[1]


def _weight_problem(weight: SSAValue) -> str | None:
    """Why these weight codes cannot be multiplied as they are; None when they can."""
    held, encoding = constant(weight), encoding_of(weight.type)
    if held is None or encoding is None:
        return "weight is not a quantized constant"
    if not (encoding.signed and encoding.width == 8 and encoding.axis in (None, 0) and not encoding.blocks):
        return "weight is not quantized in signed 8 bits, per tensor or along axis 0"
    if encoding.zero_points.any() or not isinstance(encoding.expressed, Float32Type):
        return "weight has a zero point that is not 0, or does not express f32"
    largest = int(np.abs(held.array.astype(np.int64)).sum(axis=1).max(initial=0))
    # Codes and zero points are up to 255 apart from 0, and their products are subtracted.
    return f"int32 accumulator overflows: {2 * 255 * largest}" if 2 * 255 * largest >= _LIMIT else None


def _problem(op: LinearOp) -> str | None:
    if op.residual is not None:
        return "linear has a residual"
    if op.bias is not None and (constant(op.bias) is None or not is_float32(op.bias)):
        return "bias is not a constant in f32"
    return None


@dataclass(frozen=True)
class FuseDynamicLinearPass(QcompPass):
    """Let linears of dynamically quantized values work on the codes."""

    name = "fuse-dynamic-linear"
    letter: ClassVar[Letter] = Letter.CODE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [OnCodes()])
