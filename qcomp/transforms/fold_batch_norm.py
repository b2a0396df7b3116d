# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fold-batch-norm: a batch norm behind a convolution or linear goes into its weight and bias.

    %1 = nn.conv2d %0, %w bias(%b)
    %2 = nn.batch_norm %1, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64}
 => %2 = nn.conv2d %0, %w' bias(%b')

    factor = gamma / sqrt(var + eps)      w'[c, ...] = w[c, ...] * factor[c]      b' = (b - mean) * factor + beta

computed in float64 and rounded once. The new weight is a new constant: another user of the old one keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.ir import SSAValue

from qcomp.dialects.constant import Array
from qcomp.dialects.nn import BatchNormOp, ConstantOp, LinearOp, WeightedOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant, only_user
from qcomp.transforms.weighted import rebuild

Float64Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Affine:
    """What a batch norm does to channel c over the reals: x * factor[c] + shift[c]."""

    factor: Float64Array
    shift: Float64Array


def affine(op: BatchNormOp) -> Affine | Refusal:
    """The factors of `op` in float64, or why they cannot be had."""
    if not isinstance(tensor(op.result).element_type, Float32Type | Float64Type):
        return Refusal(f"computes in {tensor(op.result).element_type}, not in f32 or f64")
    values = [_array(operand) for operand in (op.running_mean, op.running_var, op.weight, op.bias)]
    mean, var, weight, bias = values
    if mean is None or var is None:
        return Refusal("running statistics are not constant")
    if (op.weight is not None and weight is None) or (op.bias is not None and bias is None):
        return Refusal("weight or bias of the batch norm is not constant")
    spread = var + op.eps.value.data
    with np.errstate(all="ignore"):
        factor = (1.0 if weight is None else weight) / np.sqrt(spread)
        shift = (0.0 if bias is None else bias) - mean * factor
    if not ((spread > 0).all() and np.isfinite(factor).all() and np.isfinite(shift).all()):
        return Refusal("var + eps is not positive, or a factor is not finite")
    return Affine(factor, shift)


def _array(value: SSAValue | None) -> Float64Array | None:
    op = constant(value)
    return None if op is None else op.array.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Folded:
    """The op that the batch norm goes into and its new weight and bias."""

    target: WeightedOp
    weight: Array
    bias: Array


class FoldIntoProducer(Rule[BatchNormOp, Folded]):
    """batch_norm(conv(x, w, b)) => conv(x, w', b'); linear alike.

    Precondition: nothing else uses the conv's result; no activation or residual in between; weight, bias, statistics
    and parameters are constants; factors are finite; the channel axes are the same one (linear: rank 2).
    """

    matches: ClassVar = BatchNormOp

    def plan(self, op: BatchNormOp) -> Folded | Refusal | None:
        target = op.input.owner
        if not isinstance(target, WeightedOp):
            return None
        if only_user(op.input) is not op:
            return Refusal(f"the result of {target.name} has other uses")
        if target.activation is not None or target.residual is not None:
            return Refusal(f"{target.name} has an activation or a residual")
        if isinstance(target, LinearOp) and len(shape(target.result)) != 2:
            return Refusal("axis 1 is not the feature axis of a linear of rank other than 2")
        return _fold(op, target)

    def apply(self, op: BatchNormOp, plan: Folded, rewriter: Rewriter) -> None:
        target = plan.target
        weight, bias = ConstantOp(plan.weight), ConstantOp(plan.bias)
        rewriter.insert_before(target, weight, bias)
        new = rebuild(target, target.input, weight.result, bias.result, None, None, tensor(op.result))
        rewriter.replace(op, new)
        rewriter.erase(target)


def _fold(op: BatchNormOp, target: WeightedOp) -> Folded | Refusal:
    by = affine(op)
    if isinstance(by, Refusal):
        return by
    weight, bias = constant(target.weight), constant(target.bias)
    if weight is None or (target.bias is not None and bias is None):
        return Refusal(f"weight or bias of {target.name} is not a float constant")
    dtype = weight.array.dtype
    start = 0.0 if bias is None else bias.array.astype(np.float64)
    view = (-1, *(1,) * (weight.array.ndim - 1))
    with np.errstate(over="ignore"):
        new_weight = (weight.array.astype(np.float64) * by.factor.reshape(view)).astype(dtype)
        new_bias = (start * by.factor + by.shift).astype(dtype)
    if not (np.isfinite(new_weight).all() and np.isfinite(new_bias).all()):
        return Refusal("the folded weight or bias is not finite")
    return Folded(target, new_weight, new_bias)


@dataclass(frozen=True)
class FoldBatchNormPass(QcompPass):
    """Fold batch norms into the convolutions and linears in front of them."""

    name = "fold-batch-norm"
    letter: ClassVar[Letter] = Letter.REAL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [FoldIntoProducer()])
