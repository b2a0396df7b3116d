# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""insert-qdq: calibrated observers become quantize and dequantize.

    %1 = quant.observe %0 {recipe = f64} : tensor<2x3xf32> as !quant.uniform<i8:f32, 0.02:3>
    %2 = nn.relu %1
 => %q = quant.quantize %0 {recipe = f64} : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8:f32, 0.02:3>>
    %d = quant.dequantize %q : ...
    %2 = nn.relu %d

    %1 = quant.observe_dynamic %0 {qmin = -128, qmax = 127, floor = 2.44e-4} : tensor<2x3xf32> as i8
 => %low, %high = the smallest and the largest element of %0
    %s = quant.choose_scale %low, %high {divisor = 255.0, floor = 2.44e-4}
    %z = quant.choose_zero_point %low, %high, %s {qmin = -128, qmax = 127}
    %q = quant.quantize_dynamic %0, %s, %z {qmin = -128, qmax = 127}
    %d = quant.dequantize_dynamic %q, %s, %z

One quantize and one dequantize per observer, whoever uses it; the numbers are those of torch's convert_pt2e. An
observer of a narrower float becomes two casts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp, UnknownLoc
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn import CastOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import (
    DequantizeDynamicOp,
    DequantizeOp,
    ObserveDynamicOp,
    ObserveOp,
    QuantizeDynamicOp,
    QuantizeOp,
    UniformQuantizedType,
)
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.dynamic_parameters import Parameters, parameters_of
from qcomp.transforms.rewriting import Rewriter, Rule, apply_rules


@dataclass(frozen=True)
class Locations:
    """Where the two new ops come from: the quantize from its producer, the dequantize from its first consumer."""

    quantize: LocationAttr
    dequantize: LocationAttr


class Observe(Rule[ObserveOp, Locations]):
    """observe(x) => dequantize(quantize(x)). No precondition: the verifier has checked the encoding."""

    matches: ClassVar = ObserveOp

    def plan(self, op: ObserveOp) -> Locations:
        return _locations(op)

    def apply(self, op: ObserveOp, plan: Locations, rewriter: Rewriter) -> None:
        if isinstance(op.encoding, UniformQuantizedType):
            quantize = QuantizeOp(op.input, op.encoding.data, op.recipe)
            _replace(op, quantize, DequantizeOp(quantize.result), plan, rewriter)
        else:
            narrow = CastOp(op.input, tensor_of(op.encoding, shape(op.input)))
            _replace(op, narrow, CastOp(narrow.result, tensor(op.input)), plan, rewriter)


class ObserveDynamic(Rule[ObserveDynamicOp, Locations]):
    """observe_dynamic(x) => dequantize_dynamic(quantize_dynamic(x, s, z), s, z), s and z from the range of x.

    No precondition: the verifier has checked types and codes.
    """

    matches: ClassVar = ObserveDynamicOp

    def plan(self, op: ObserveDynamicOp) -> Locations:
        return _locations(op)

    def apply(self, op: ObserveDynamicOp, plan: Locations, rewriter: Rewriter) -> None:
        low, high = op.qmin.value.data, op.qmax.value.data
        made: list[Operation] = []

        def add(new: Operation) -> SSAValue:
            new.location = plan.quantize
            made.append(new)
            return new.results[0]

        rule = Parameters.per_tensor(low, high, op.floor.value.data, op.symmetric is not None, op.storage)
        scale, zero_point = parameters_of(add, op.input, rule)
        rewriter.insert_before(op, *made)
        quantize = QuantizeDynamicOp(op.input, scale, zero_point, op.storage, low, high)
        _replace(op, quantize, DequantizeDynamicOp(quantize.result, scale, zero_point), plan, rewriter)


def _locations(op: ObserveOp | ObserveDynamicOp) -> Locations:
    producer = op.input.owner
    users = [use.operation for use in op.result.uses]
    return Locations(
        _known(producer.location if isinstance(producer, Operation) else UnknownLoc(), op.location),
        _known(users[-1].location if users else UnknownLoc(), op.location),
    )


def _replace(op: Operation, first: Operation, second: Operation, where: Locations, rewriter: Rewriter) -> None:
    first.location, second.location = where.quantize, where.dequantize
    if (name := op.results[0].name_hint) is not None:
        # Not one name for both: `qcomp.compare` finds the codes by it.
        first.results[0].name_hint, second.results[0].name_hint = name, f"{name}.dq"
    rewriter.replace(op, first, second)


def _known(location: LocationAttr, otherwise: LocationAttr) -> LocationAttr:
    return otherwise if isinstance(location, UnknownLoc) else location


@dataclass(frozen=True)
class InsertQdqPass(QcompPass):
    """Turn observers into quantize and dequantize, static or dynamic."""

    name = "insert-qdq"
    letter: ClassVar[Letter] = Letter.LOSSY

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [Observe(), ObserveDynamic()])
