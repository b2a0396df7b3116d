# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""insert-qdq: calibrated observers become quantize and dequantize.

    %1 = quant.observe %0 {recipe = f64} : tensor<2x3xf32> as !quant.uniform<i8:f32, 0.02:3>
    %2 = nn.relu %1
 => %q = quant.quantize %0 {recipe = f64} : tensor<2x3xf32> -> tensor<2x3x!quant.uniform<i8:f32, 0.02:3>>
    %d = quant.dequantize %q : ...
    %2 = nn.relu %d

One quantize and one dequantize per observer, whoever uses it; the numbers are those of torch's convert_pt2e.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp, UnknownLoc
from xdsl.ir import Operation

from qcomp.dialects.quant import DequantizeOp, ObserveOp, QuantizeOp, UniformQuantizedType
from qcomp.transforms.base import Letter, QcompPass
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
        producer = op.input.owner
        users = [use.operation for use in op.result.uses]
        return Locations(
            _known(producer.location if isinstance(producer, Operation) else UnknownLoc(), op.location),
            _known(users[-1].location if users else UnknownLoc(), op.location),
        )

    def apply(self, op: ObserveOp, plan: Locations, rewriter: Rewriter) -> None:
        quantize = QuantizeOp(op.input, cast(UniformQuantizedType, op.encoding).data, op.recipe)
        dequantize = DequantizeOp(quantize.result)
        quantize.location, dequantize.location = plan.quantize, plan.dequantize
        if (name := op.result.name_hint) is not None:
            # Not one name for both: `qcomp.compare` finds the codes by it.
            quantize.result.name_hint, dequantize.result.name_hint = name, f"{name}.dq"
        rewriter.replace(op, quantize, dequantize)


def _known(location: LocationAttr, otherwise: LocationAttr) -> LocationAttr:
    return otherwise if isinstance(location, UnknownLoc) else location


@dataclass(frozen=True)
class InsertQdqPass(QcompPass):
    """Turn every quant.observe into quant.quantize and quant.dequantize."""

    name = "insert-qdq"
    letter: ClassVar[Letter] = Letter.LOSSY

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [Observe()])
