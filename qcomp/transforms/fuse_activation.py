# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fuse-activation: relu and clamp go into the op that makes their operand.

    %1 = nn.conv2d %0, %w
    %2 = nn.clamp %1 {min = 0.0 : f32, max = 6.0 : f32}
 => %2 = nn.conv2d %0, %w {activation = #nn.clamp<0.0 : f32, 6.0 : f32>}

    %1 = nn.relu %0
    %2 = nn.clamp %1 {min = -1.0 : f32, max = 6.0 : f32}
 => %2 = nn.clamp %0 {min = 0.0 : f32, max = 6.0 : f32}

    %1 = nn.conv2d %0, %w : ... -> tensor<...!q>
    %2 = nn.clamp %1 {...} : tensor<...!q> -> tensor<...!q>
 => %2 = nn.conv2d %0, %w {activation = ...} : ... -> tensor<...!q>

Convolutions, linear and the binary ops take one. On codes, quantize(clamp(x)) is quantize(x) clamped to the codes of
the bounds, as long as nothing is NaN. Relu is the clamp to [0, inf], NaN and -0.0 included; the clamp to
[a, b] and then to [c, d] is the clamp to [max(a, c), min(max(b, c), d)], also where bounds are in disorder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Operation

from qcomp.dialects.nn import ActivationAttr, BinaryOp, ClampOp, DivOp, ReluAttr, ReluOp, UnaryOp, WeightedOp
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import Encoding, default_recipe, encoding_of
from qcomp.transforms.activations import Bounds, activation_attribute, bounds_of, merge
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.code_identities import MODERATE, is_identity_on_codes, largest_real
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, only_user


class MergeActivations(Rule[UnaryOp, Bounds]):
    """clamp(clamp(x)) => clamp(x); relu is a clamp.

    Precondition: both compute in f32 and give f32; one that reads codes may give those of another encoding.
    """

    matches: ClassVar = (ReluOp, ClampOp)

    def plan(self, op: UnaryOp) -> Bounds | Refusal | None:
        inner, outer = op.input.owner, bounds_of(op)
        first = bounds_of(inner) if isinstance(inner, Operation) else None
        if first is None or outer is None or not isinstance(inner, UnaryOp):
            return None
        if not isinstance(tensor(op.result).element_type, Float32Type):
            return Refusal(f"computes on {tensor(op.result).element_type}, not f32")
        if any(encoding_of(value.type) is not None for value in (inner.input, op.input)):
            return Refusal("reads codes")
        return merge(first, outer) or Refusal("the merged bounds are both zero")

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
        if encoding_of(op.result.type) is not None:
            return None
        if only_user(op.input) is not op:
            return Refusal(f"the result of {producer.name} has other uses")
        if any(not isinstance(tensor(value).element_type, Float32Type) for value in (producer.result, op.result)):
            return Refusal(f"{producer.name} computes on {tensor(op.result).element_type}, not f32")
        if producer.result.type != op.result.type:
            return Refusal(f"the type changes from {producer.result.type} to {op.result.type}")
        merged = bounds if producer.activation is None else merge(producer.activation.bounds, bounds)
        if merged is None:
            return Refusal("the merged bounds are both zero")
        return Fusion(producer, activation_attribute(merged))

    def apply(self, op: UnaryOp, plan: Fusion, rewriter: Rewriter) -> None:
        _take(op, plan, rewriter)


class FuseCodes(Rule[UnaryOp, Fusion]):
    """clamp(conv(x)) on codes => conv(x) {activation}; relu, linear, add, sub, mul, maximum and minimum alike.

    Precondition: the clamp keeps the encoding, per tensor, and quantize undoes dequantize; nothing else uses the
    producer's result; the producer cannot make NaN: its operands are codes of numbers below 2**60.
    """

    matches: ClassVar = (ReluOp, ClampOp)

    def plan(self, op: UnaryOp) -> Fusion | Refusal | None:
        producer, bounds, encoding = op.input.owner, bounds_of(op), encoding_of(op.result.type)
        if bounds is None or encoding is None or not isinstance(producer, WeightedOp | BinaryOp):
            return None
        if only_user(op.input) is not op:
            return Refusal(f"the result of {producer.name} has other uses")
        if op.input.type != op.result.type or not encoding.per_tensor or not is_identity_on_codes(encoding, op.recipe):
            return Refusal("the codes between the bounds change")
        if any(_has_other_recipe(item, encoding) for item in (op, producer)):
            return Refusal("the bounds may quantize otherwise by another recipe")
        if _may_be_nan(producer):
            return Refusal(f"{producer.name} may make NaN")
        merged = bounds if producer.activation is None else merge(producer.activation.bounds, bounds)
        if merged is None:
            return Refusal("the merged bounds are both zero")
        return Fusion(producer, activation_attribute(merged))

    def apply(self, op: UnaryOp, plan: Fusion, rewriter: Rewriter) -> None:
        _take(op, plan, rewriter)


def _has_other_recipe(op: Operation, encoding: Encoding) -> bool:
    recipe = getattr(op, "recipe", None)
    return recipe is not None and recipe != default_recipe(encoding)


def _may_be_nan(op: WeightedOp | BinaryOp) -> bool:
    if isinstance(op, WeightedOp):
        return False
    encodings = [encoding_of(value.type) for value in op.operands]
    return isinstance(op, DivOp) or any(item is None or largest_real(item) >= MODERATE for item in encodings)


def _take(op: UnaryOp, plan: Fusion, rewriter: Rewriter) -> None:
    rewriter.set_property(plan.producer, "activation", plan.activation)
    plan.producer.result.name_hint = op.result.name_hint
    rewriter.replace(op, values=[plan.producer.result])


@dataclass(frozen=True)
class FuseActivationPass(QcompPass):
    """Fuse relu and clamp into the ops in front of them."""

    name = "fuse-activation"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [MergeActivations(), FuseCodes(), FuseIntoProducer()])
