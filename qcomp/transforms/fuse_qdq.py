# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fuse-qdq: an op between dequantize and quantize becomes the op on codes.

    %d = quant.dequantize %x : tensor<1x3x8x9x!qx> -> tensor<1x3x8x9xf32>
    %v = quant.dequantize %w        // a constant
    %r = quant.dequantize %y
    %1 = nn.conv2d %d, %v bias(%b) {...} : ... -> tensor<1x4x6x7xf32>
    %2 = nn.add %1, %r
    %3 = nn.relu %2
    %q = quant.quantize %3 : tensor<1x4x6x7xf32> -> tensor<1x4x6x7x!qy>
 => %q = nn.conv2d %x, %w bias(%b) residual(%y) {..., activation = #nn.relu} : ... -> tensor<1x4x6x7x!qy>

On codes an op means its integer reference (`qcomp.interpreter`): contractions accumulate exactly in int32, proved not
to overflow, and differ from the float graph by the rounding of its sums; bias and residual are added in float32 as
there; mean and sum alike; everything else gives the same codes. A contraction that no quantize follows computes on
codes and gives a float result. What has no integer form computes in float32, but reads codes and writes codes where it
can: softmax, layer norm, running totals, products, resampling, and elementwise ops beside a float operand or result.
Data movement moves codes where both encodings are the same, else a `quant.requantize` does the rest, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from qcomp.dialects.nn import (
    AdaptiveAvgPoolOp,
    AvgPoolOp,
    BinaryOp,
    ConstantOp,
    MatmulOp,
    MeanOp,
    SelectOp,
    SumOp,
    UnaryOp,
    WeightedOp,
)
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import QuantizeOp
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.coded_ops import (
    IN_REALS,
    Coded,
    Ends,
    Moved,
    average_pool,
    computes_in_reals,
    elementwise,
    ends,
    has_ends,
    movement,
    reduction,
)
from qcomp.transforms.integer_contraction import Contraction, Product, contraction, integer_problem, product
from qcomp.transforms.moved_operands import moved_places
from qcomp.transforms.qdq_pattern import Body, activation_problem, body_of, codes_of, is_float32
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, only_user, refuse

Fusion = Contraction | Product | Coded | Moved | Ends


class FuseWithQuantize(Rule[QuantizeOp, Fusion]):
    """quantize(activation(op(dequantize(x), ...))) => op(x, ...) {activation}, with a residual behind contractions.

    Precondition: nothing in between has another use; operands and result are per-tensor codes of up to 16 bits that
    express f32; weights are constants with zero points 0, per tensor or per output channel; a residual has the shape
    of the result; int32 is proved not to overflow.
    """

    matches: ClassVar = QuantizeOp

    def plan(self, op: QuantizeOp) -> Fusion | Refusal | None:
        body = body_of(op)
        if body is None:
            return None
        problem = activation_problem(op.encoding)
        if problem is not None:
            return Refusal(f"result is {problem}")
        plan = _plan(op, body) if isinstance(body, Body) else body
        return _with_coded_result(op, body, plan) if isinstance(plan, Refusal) else plan

    def apply(self, op: QuantizeOp, plan: Fusion, rewriter: Rewriter) -> None:
        value = op.input
        if isinstance(plan, Contraction | Product | Ends):
            rewriter.replace(op, plan.build(tensor(op.result)))
        else:
            rewriter.replace(op, *plan.build(op))
        rewriter.erase_dead(value)


def _with_coded_result(quantize: QuantizeOp, body: Body | Refusal, reason: Refusal) -> Ends | Refusal:
    """Where there is no integer form, the op that computes in reals and writes codes; else `reason`."""
    op, activation = quantize.input.owner, None
    if isinstance(body, Body) and body.residual is None:
        op, activation = body.op, body.activation
    if not isinstance(op, Operation) or not has_ends(op) or only_user(op.results[0]) is None:
        return reason
    found = ends(op, quantize, activation)
    if not isinstance(found, Refusal):
        refuse("FuseWithQuantize", quantize, reason.reason)
    return reason if isinstance(found, Refusal) else found


def _plan(quantize: QuantizeOp, body: Body) -> Fusion | Refusal | None:
    match body.op:
        case WeightedOp() as op:
            fused = contraction(op, op.residual if body.residual is None else body.residual, body.activation)
            problem = None if isinstance(fused, Refusal) else integer_problem(fused, quantize.encoding)
            return fused if problem is None else Refusal(problem)
        case MatmulOp() as op:
            return product(op, quantize.encoding)
        case UnaryOp() | BinaryOp() as op:
            return elementwise(op, body.activation)
        case AvgPoolOp() | AdaptiveAvgPoolOp() as op:
            return average_pool(op, quantize)
        case MeanOp() | SumOp() as op:
            return reduction(op)
        case ConstantOp():
            return None
        case op if computes_in_reals(op):
            return ends(op, quantize)
        case op if moved_places(op):
            return movement(op, quantize)
        case op:
            return Refusal(f"{op.name} has no integer form")


class FuseWithFloatResult(Rule[Operation, Contraction | Product]):
    """conv(dequantize(x), dequantize(w)) => conv(x, w) with a float result; linear and matmul alike.

    Precondition: as above for operands.
    """

    matches: ClassVar = (WeightedOp, MatmulOp)

    def plan(self, op: Operation) -> Contraction | Product | Refusal | None:
        if all(codes_of(operand) is None for operand in op.operands[:2]):
            return None
        if isinstance(op, MatmulOp):
            return product(op, None)
        assert isinstance(op, WeightedOp)
        fused = contraction(op, op.residual, op.activation)
        problem = None if isinstance(fused, Refusal) else integer_problem(fused, None)
        return fused if problem is None else Refusal(problem)

    def apply(self, op: Operation, plan: Contraction | Product, rewriter: Rewriter) -> None:
        operands = tuple(op.operands)
        rewriter.replace(op, plan.build(tensor(op.results[0])))
        rewriter.erase_dead(*operands)


class ReadCodes(Rule[Operation, Ends]):
    """softmax(dequantize(x)) => softmax(x) with a float result; so for elementwise ops and all that compute in reals.

    Precondition: some operand is dequantized from per-tensor codes.
    """

    matches: ClassVar = (*IN_REALS, UnaryOp, BinaryOp, SelectOp)

    def plan(self, op: Operation) -> Ends | Refusal | None:
        if not has_ends(op) or not is_float32(*op.results) or all(codes_of(operand) is None for operand in op.operands):
            return None
        return ends(op, None)

    def apply(self, op: Operation, plan: Ends, rewriter: Rewriter) -> None:
        operands = tuple(op.operands)
        rewriter.replace(op, plan.build(tensor(op.results[0])))
        rewriter.erase_dead(*operands)


@dataclass(frozen=True)
class FuseQdqPass(QcompPass):
    """Turn dequantize -> op -> quantize into integer ops."""

    name = "fuse-qdq"
    letter: ClassVar[Letter] = Letter.CODE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [FuseWithQuantize()])
        apply_rules(op, [FuseWithFloatResult(), ReadCodes()])
