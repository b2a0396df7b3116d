# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fuse-activation: relu and clamp go into the op that makes their operand.

    %1 = nn.conv2d %0, %w
    %2 = nn.clamp %1 {min = 0.0 : f32, max = 6.0 : f32}
 => %2 = nn.conv2d %0, %w {activation = #nn.clamp<0.0 : f32, 6.0 : f32>}

    %1 = nn.relu %0
    %2 = nn.clamp %1 {min = -1.0 : f32, max = 6.0 : f32}
 => %2 = nn.clamp %0 {min = 0.0 : f32, max = 6.0 : f32}

Convolutions, linear and the binary ops take one. Relu is the clamp to [0, inf], NaN and -0.0 included; the clamp to
[a, b] and then to [c, d] is the clamp to [max(a, c), min(max(b, c), d)], also where bounds are in disorder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Operation

from qcomp.dialects.nn import ActivationAttr, BinaryOp, ClampAttr, ClampOp, ReluAttr, ReluOp, UnaryOp, WeightedOp
from qcomp.dialects.nn.base import tensor
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, only_user

Bounds = tuple[float, float]
RELU: Bounds = (0.0, math.inf)


def bounds_of(op: Operation) -> Bounds | None:
    """The interval that a relu or clamp op clamps to; None for any other op."""
    if isinstance(op, ReluOp):
        return RELU
    return op.bounds if isinstance(op, ClampOp) else None


def merge(first: Bounds, second: Bounds) -> Bounds | None:
    """The bounds of the clamp to `first` and then to `second`.

    Of bounds that compare equal the first one counts, as with the comparisons themselves (-0.0 against 0.0). None in
    the one case that no clamp expresses: zeros of unlike sign as lower and upper bound.
    """
    (a, b), (c, d) = first, second
    raised = b if b >= c else c
    low, high = (a if a >= c else c), (raised if raised <= d else d)
    if low == high == 0.0 and math.copysign(1.0, low) != math.copysign(1.0, high):
        return None
    return low, high


def activation_attribute(bounds: Bounds) -> ActivationAttr:
    """The attribute that clamps to `bounds`."""
    if bounds == RELU and math.copysign(1.0, bounds[0]) > 0:
        return ReluAttr()
    return ClampAttr.of(*bounds)


class MergeActivations(Rule[UnaryOp, Bounds]):
    """clamp(clamp(x)) => clamp(x); relu is a clamp. Precondition: both compute in f32."""

    matches: ClassVar = (ReluOp, ClampOp)

    def plan(self, op: UnaryOp) -> Bounds | Refusal | None:
        inner, outer = op.input.owner, bounds_of(op)
        first = bounds_of(inner) if isinstance(inner, Operation) else None
        if first is None or outer is None:
            return None
        if not isinstance(tensor(op.result).element_type, Float32Type):
            return Refusal(f"computes on {tensor(op.result).element_type}, not f32")
        return merge(first, outer) or Refusal("the merged bounds are zeros of unlike sign")

    def apply(self, op: UnaryOp, plan: Bounds, rewriter: Rewriter) -> None:
        inner = op.input.owner
        assert isinstance(inner, UnaryOp)
        relu = isinstance(activation_attribute(plan), ReluAttr)
        rewriter.replace(op, ReluOp(inner.input) if relu else ClampOp.of(inner.input, *plan))
        if inner.result.first_use is None:
            rewriter.erase(inner)


@dataclass(frozen=True)
class Fusion:
    """The op that takes the activation."""

    producer: WeightedOp | BinaryOp
    activation: ActivationAttr


class FuseIntoProducer(Rule[UnaryOp, Fusion]):
    """relu(conv(x)) => conv(x) {activation}; clamp, linear and binary ops alike.

    Precondition: nothing else uses the producer's result; it computes in f32; an activation that it has already merges
    with this one.
    """

    matches: ClassVar = (ReluOp, ClampOp)

    def plan(self, op: UnaryOp) -> Fusion | Refusal | None:
        producer, bounds = op.input.owner, bounds_of(op)
        if bounds is None or not isinstance(producer, WeightedOp | BinaryOp):
            return None
        if only_user(op.input) is not op:
            return Refusal(f"the result of {producer.name} has other uses")
        if any(not isinstance(tensor(value).element_type, Float32Type) for value in (producer.result, op.result)):
            return Refusal(f"{producer.name} computes on {tensor(op.result).element_type}, not f32")
        if producer.result.type != op.result.type:
            return Refusal(f"the type changes from {producer.result.type} to {op.result.type}")
        merged = bounds if producer.activation is None else merge(producer.activation.bounds, bounds)
        if merged is None:
            return Refusal("the merged bounds are zeros of unlike sign")
        return Fusion(producer, activation_attribute(merged))

    def apply(self, op: UnaryOp, plan: Fusion, rewriter: Rewriter) -> None:
        rewriter.set_property(plan.producer, "activation", plan.activation)
        plan.producer.result.name_hint = op.result.name_hint
        rewriter.replace(op, values=[plan.producer.result])


@dataclass(frozen=True)
class FuseActivationPass(QcompPass):
    """Fuse relu and clamp into the ops in front of them."""

    name = "fuse-activation"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [MergeActivations(), FuseIntoProducer()])
