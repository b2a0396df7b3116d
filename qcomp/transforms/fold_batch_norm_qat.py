# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fold-batch-norm-qat: the batch norm that quantization-aware training spread around a convolution goes back into it.

    %f = nn.div %gamma, (nn.sqrt (nn.add %var, 1.0e-05))
    %w1 = quant.observe (nn.mul %w, (nn.reshape %f)) as !qw
    %1 = nn.conv2d %x, %w1 bias(zeros)
    %2 = nn.add (nn.div %1, (nn.reshape %f)), (nn.reshape %b)
    %3 = nn.batch_norm %2, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05}
 => %w2 = quant.observe (w * (gamma * r)) as !qw              r = 1 / sqrt(var + eps)
    %3 = nn.conv2d %x, %w2 bias((b - mean) * r * gamma + beta)

This is the one-pass form that prepare_qat_pt2e makes of convolution and batch norm; the numbers, in float32 steps, are
those of convert_pt2e. The statistics are constants: the graph was moved to evaluation before it was imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from qcomp.dialects.constant import Array
from qcomp.dialects.nn import AddOp, BatchNormOp, ConstantOp, ConvolutionOp, DivOp, MulOp, WeightedOp
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import ObserveOp, UniformQuantizedType
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.qdq_pattern import is_float32
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant, only_user
from qcomp.transforms.weighted import rebuild

Float32Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
_CLOSE = 1e-5
"""How far the factor in the graph may be from that of the batch norm: both are rounded a few times."""


def constant_value(value: SSAValue | None, depth: int = 8) -> Array | None:
    """The array that `value` is at compile time: a constant, or computed from constants by up to `depth` ops."""
    from qcomp.interpreter import evaluate_op

    op = None if value is None else value.owner
    if isinstance(op, ConstantOp):
        return op.array
    if not isinstance(op, Operation) or depth == 0 or not op.has_trait(Pure) or isinstance(op, ObserveOp):
        return None
    operands = [constant_value(operand, depth - 1) for operand in op.operands]
    arrays = [array for array in operands if array is not None]
    return evaluate_op(op, arrays) if arrays and len(arrays) == len(operands) else None


@dataclass(frozen=True)
class Pattern:
    """The ops of the training form. bias: what is added behind the division, if anything."""

    conv: ConvolutionOp
    factor: SSAValue
    observe: ObserveOp
    weight: SSAValue
    bias: SSAValue | None


@dataclass(frozen=True, eq=False)
class Folded:
    """The pattern, and the weight and bias that the convolution gets."""

    pattern: Pattern
    weight: Array
    bias: Array


class FoldQat(Rule[BatchNormOp, Folded]):
    """batch_norm(conv(x, observe(w * f)) / f + b) => conv(x, observe(w')) + b'.

    Precondition: weight, statistics and parameters are constants in f32; the factor in the graph is that of the batch
    norm; nothing else reads the values in between; the convolution has no bias but zeros, no activation, no residual;
    its output channels lie along axis 0 of the weight.
    """

    matches: ClassVar = BatchNormOp

    def plan(self, op: BatchNormOp) -> Folded | Refusal | None:
        pattern = _pattern(op)
        return pattern if not isinstance(pattern, Pattern) else _fold(op, pattern)

    def apply(self, op: BatchNormOp, plan: Folded, rewriter: Rewriter) -> None:
        old, conv, source = op.input, plan.pattern.conv, plan.pattern.observe
        weight, bias = ConstantOp(plan.weight), ConstantOp(plan.bias)
        assert isinstance(source.encoding, UniformQuantizedType)
        observed = ObserveOp(weight.result, source.encoding.data, source.recipe)
        observed.location = source.location
        observed.result.name_hint = source.result.name_hint
        rewriter.insert_before(conv, weight, bias, observed)
        rewriter.replace(op, rebuild(conv, conv.input, observed.result, bias.result, None, None, tensor(op.result)))
        rewriter.erase_dead(old)


def _pattern(op: BatchNormOp) -> Pattern | Refusal | None:
    value, bias = op.input, None
    if isinstance(value.owner, AddOp) and isinstance(value.owner.lhs.owner, DivOp):
        value, bias = value.owner.lhs, value.owner.rhs
    division = value.owner
    if not isinstance(division, DivOp) or not isinstance(division.lhs.owner, WeightedOp):
        return None
    conv = division.lhs.owner
    observe = conv.weight.owner
    if not isinstance(conv, ConvolutionOp) or not isinstance(observe, ObserveOp):
        return None
    if not isinstance(observe.input.owner, MulOp):
        return Refusal("the weight is not multiplied by the factor of the batch norm")
    for inner in {op.input, division.result, conv.result}:
        if only_user(inner) is None:
            return Refusal("a value between convolution and batch norm has other uses")
    return Pattern(conv, division.rhs, observe, observe.input.owner.lhs, bias)


def _fold(op: BatchNormOp, by: Pattern) -> Folded | Refusal:
    conv = by.conv
    if conv.activation is not None or conv.residual is not None or conv.WEIGHT_CHANNEL_AXIS != 0:
        return Refusal("the convolution has an activation, a residual, or its output channels not along axis 0")
    before = None if conv.bias is None else constant_value(conv.bias)
    if conv.bias is not None and (before is None or before.any()):
        return Refusal("the convolution adds a bias before the division")
    weight, factor = constant(by.weight), constant_value(by.factor)
    bias = None if by.bias is None else constant_value(by.bias)
    statistics = [constant_value(value) for value in (op.running_mean, op.running_var, op.weight, op.bias)]
    mean, var, gamma, beta = statistics
    known = weight is not None and factor is not None and (by.bias is None) == (bias is None)
    if not known or any(value is None for value in statistics) or not is_float32(op.result):
        return Refusal("weight, bias, statistics or parameters are not constants in f32")
    assert weight is not None and factor is not None
    assert mean is not None and var is not None and gamma is not None and beta is not None
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / np.sqrt(_f32(var) + np.float32(op.eps.value.data))
        scale = _f32(gamma) * inverse
        held = np.zeros(mean.shape, np.float32) if bias is None else _f32(bias).reshape(-1)
        new_bias = (held - _f32(mean)) * inverse * _f32(gamma) + _f32(beta)
        new_weight = _f32(weight.array) * scale.reshape(-1, *(1,) * (weight.array.ndim - 1))
    if factor.size != scale.size or not np.allclose(_f32(factor).reshape(-1), scale, _CLOSE, 0.0):
        return Refusal("the factor in the graph is not that of the batch norm")
    if not (np.isfinite(new_weight).all() and np.isfinite(new_bias).all()):
        return Refusal("the folded weight or bias is not finite")
    return Folded(by, new_weight, new_bias)


def _f32(array: Array) -> Float32Array:
    return array.astype(np.float32)


@dataclass(frozen=True)
class FoldBatchNormQatPass(QcompPass):
    """Fold the batch norms that prepare_qat_pt2e spread around convolutions."""

    name = "fold-batch-norm-qat"
    letter: ClassVar[Letter] = Letter.REAL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [FoldQat()])
