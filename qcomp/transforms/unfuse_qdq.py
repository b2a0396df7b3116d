# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""unfuse-qdq: contractions, means and sums on codes become dequantize -> float op -> quantize again.

    %q = nn.conv2d %x, %w bias(%b) residual(%y) {..., activation = #nn.relu} : ... -> tensor<1x4x6x7x!qy>
 => %d = quant.dequantize %x
    %v = quant.dequantize %w
    %r = quant.dequantize %y
    %1 = nn.conv2d %d, %v bias(%b) {...} : ... -> tensor<1x4x6x7xf32>
    %2 = nn.add %1, %r {activation = #nn.relu}
    %q = quant.quantize %2

The inverse of what `fuse-qdq` does where it does not keep every bit: for targets without integer arithmetic, and for
`verify_rewrites`, which holds a module and its unfused form against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.nn import AddOp, DynamicLinearOp, LinearOp, MatmulOp, MeanOp, SumOp, WeightedOp
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import DequantizeDynamicOp, DequantizeOp, QuantizeOp, encoding_of, expressed_type
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules
from qcomp.transforms.weighted import rebuild

CODE_OPS = (WeightedOp, MatmulOp, MeanOp, SumOp, DynamicLinearOp)
"""Ops that, on codes, round otherwise than between dequantize and quantize. All others keep every bit."""


class Unfuse(Rule[Operation, bool]):
    """op(x) on codes => quantize(op(dequantize(x))). No precondition but that an operand is quantized."""

    matches: ClassVar = CODE_OPS

    def plan(self, op: Operation) -> bool | Refusal | None:
        return True if any(encoding_of(value.type) is not None for value in op.operands) else None

    def apply(self, op: Operation, plan: bool, rewriter: Rewriter) -> None:
        steps: list[Operation] = []
        if isinstance(op, DynamicLinearOp):
            rewriter.replace(op, *_dynamic(op))
            return
        operands = [_real(value, steps) for value in op.operands]
        steps += _weighted(op, operands) if isinstance(op, WeightedOp) else [_float(op, operands)]
        encoding = encoding_of(op.results[0].type)
        if encoding is not None:
            steps.append(QuantizeOp(steps[-1].results[0], encoding))
        rewriter.replace(op, *steps)


def _real(value: SSAValue, steps: list[Operation]) -> SSAValue:
    if encoding_of(value.type) is None:
        return value
    steps.append(DequantizeOp(value))
    return steps[-1].results[0]


def _float(op: Operation, operands: list[SSAValue]) -> Operation:
    kind = expressed_type(tensor(op.results[0]))
    return type(op).create(
        operands=operands, result_types=[kind], properties=op.properties, attributes=op.attributes, location=op.location
    )


def _dynamic(op: DynamicLinearOp) -> list[Operation]:
    value = DequantizeDynamicOp(op.input, op.scale, op.zero_point)
    weight = DequantizeOp(op.weight)
    return [value, weight, LinearOp(value.result, weight.result, op.bias, activation=op.activation)]


def _weighted(op: WeightedOp, operands: list[SSAValue]) -> list[Operation]:
    rest = operands[2:]
    bias = rest.pop(0) if op.bias is not None else None
    residual = rest.pop(0) if op.residual is not None else None
    kind = expressed_type(tensor(op.result))
    activation = op.activation if residual is None else None
    bare = rebuild(op, operands[0], operands[1], bias, None, activation, kind)
    return [bare] if residual is None else [bare, AddOp(bare.result, residual, kind, op.activation)]


@dataclass(frozen=True)
class UnfuseQdqPass(QcompPass):
    """Turn contractions, means and sums on codes into float ops between dequantize and quantize."""

    name = "unfuse-qdq"
    letter: ClassVar[Letter] = Letter.CODE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [Unfuse()])
