# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fold-affine: a constant factor or addend per output channel goes into the convolution or linear in front of it.

    %1 = nn.conv2d %0, %w bias(%b)
    %2 = nn.mul %1, %f                       // constant, tensor<4x1x1xf32> for 4 output channels
    %3 = nn.add %2, %s {activation = #nn.relu}
 => %3 = nn.conv2d %0, %w' bias(%b') {activation = #nn.relu}

    w'[c, ...] = w[c, ...] * f[c]      b' = b * f + s

computed in float64 and rounded once per step; sub and div alike. New constants are made: another user of the old ones
keeps them. A factor needs a float weight, so it folds before weights are quantized; an addend folds at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.ir import SSAValue

from qcomp.dialects.constant import Array
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.nn import AddOp, BinaryOp, ConstantOp, DivOp, MulOp, SubOp, WeightedOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant, only_user
from qcomp.transforms.weighted import rebuild

Float64Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Folded:
    """The op that takes the constant, and what of it changes."""

    target: WeightedOp
    weight: Array | None
    bias: Array | None


class FoldIntoProducer(Rule[BinaryOp, Folded]):
    """mul(conv(x, w, b), f) => conv(x, w', b'); div, add and sub, and linear, alike.

    Precondition: nothing else uses the conv's result; it has no activation and no residual; the constant is a scalar or
    varies along the output channels only and does not enlarge the result; weight (for factors) and bias are float
    constants; the result stays finite.
    """

    matches: ClassVar = (MulOp, DivOp, AddOp, SubOp)

    def plan(self, op: BinaryOp) -> Folded | Refusal | None:
        sides = [(op.lhs, op.rhs)] if isinstance(op, DivOp | SubOp) else [(op.lhs, op.rhs), (op.rhs, op.lhs)]
        for value, other in sides:
            target, held = value.owner, constant(other)
            if isinstance(target, WeightedOp) and held is not None:
                return _plan(op, target, value, held)
        return None

    def apply(self, op: BinaryOp, plan: Folded, rewriter: Rewriter) -> None:
        target = plan.target
        weight, bias = target.weight, target.bias
        if plan.weight is not None:
            rewriter.insert_before(target, held := ConstantOp(plan.weight))
            weight = held.result
        if plan.bias is not None:
            rewriter.insert_before(target, held := ConstantOp(plan.bias))
            bias = held.result
        operands = tuple(op.operands)
        rewriter.replace(op, rebuild(target, target.input, weight, bias, None, op.activation, tensor(op.result)))
        rewriter.erase_dead(*operands)


def _plan(op: BinaryOp, target: WeightedOp, value: SSAValue, held: ConstantOp) -> Folded | Refusal:
    if only_user(value) is not op:
        return Refusal(f"the result of {target.name} has other uses")
    if target.activation is not None or target.residual is not None:
        return Refusal(f"{target.name} has an activation or a residual")
    if op.result.type != target.result.type:
        return Refusal("the constant enlarges the result")
    if not isinstance(tensor(op.result).element_type, Float32Type | Float64Type):
        return Refusal(f"computes in {tensor(op.result).element_type}, not in f32 or f64")
    if is_symbolic(shape(target.weight)[0]):
        return Refusal("the number of output channels is symbolic")
    by_channel = _by_channel(target, held.array)
    if by_channel is None:
        return Refusal("the constant varies along other dimensions than the output channels")
    bias = constant(target.bias)
    if target.bias is not None and bias is None:
        return Refusal("bias is not a float constant")
    if isinstance(op, AddOp | SubOp):
        return _add(target, bias, -by_channel if isinstance(op, SubOp) else by_channel)
    return _scale(target, bias, by_channel, isinstance(op, DivOp))


def _by_channel(target: WeightedOp, array: Array) -> Float64Array | None:
    """`array` as one number per output channel, or None when it varies along another dimension."""
    rank = len(shape(target.result))
    axis, channels = target.channel_axis % rank, shape(target.weight)[0]
    sizes = (1,) * (rank - array.ndim) + array.shape
    if any(size != 1 for place, size in enumerate(sizes) if place != axis):
        return None
    return np.array(np.broadcast_to(array.astype(np.float64).reshape(-1), (channels,)))


def _add(target: WeightedOp, bias: ConstantOp | None, addend: Float64Array) -> Folded | Refusal:
    start = 0.0 if bias is None else bias.array.astype(np.float64)
    return _finite(Folded(target, None, _rounded(target, start + addend)))


def _scale(target: WeightedOp, bias: ConstantOp | None, factor: Float64Array, divide: bool) -> Folded | Refusal:
    weight = constant(target.weight)
    if weight is None:
        return Refusal("weight is not a float constant")
    view = factor.reshape(-1, *(1,) * (weight.array.ndim - 1))
    change = np.divide if divide else np.multiply
    with np.errstate(all="ignore"):
        scaled = _rounded(target, change(weight.array.astype(np.float64), view))
        moved = None if bias is None else _rounded(target, change(bias.array.astype(np.float64), factor))
    return _finite(Folded(target, scaled, moved))


def _rounded(target: WeightedOp, values: Float64Array) -> Array:
    with np.errstate(over="ignore"):
        return values.astype(np.float32) if isinstance(tensor(target.result).element_type, Float32Type) else values


def _finite(folded: Folded) -> Folded | Refusal:
    arrays = [array for array in (folded.weight, folded.bias) if array is not None]
    finite = all(bool(np.isfinite(array).all()) for array in arrays)  # pyright: ignore[reportArgumentType]
    return folded if finite else Refusal("the folded weight or bias is not finite")


@dataclass(frozen=True)
class FoldAffinePass(QcompPass):
    """Fold constant factors and addends into the convolutions and linears in front of them."""

    name = "fold-affine"
    letter: ClassVar[Letter] = Letter.REAL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [FoldIntoProducer()])
