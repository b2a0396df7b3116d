# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lower-batch-norm: a batch norm that stands alone becomes a multiply and an add per channel.

    %1 = nn.batch_norm %0, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : ... tensor<2x3x5x7xf32>
 => %2 = nn.mul %0, %factor : (tensor<2x3x5x7xf32>, tensor<3x1x1xf32>) -> tensor<2x3x5x7xf32>
    %1 = nn.add %2, %shift

    factor = gamma / sqrt(var + eps)      shift = beta - mean * factor

computed in float64 and rounded once. Run it after fold-batch-norm. Statistics or parameters that are computed are
put together where they are known, in the op's own element type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.constant import Array
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn import AddOp, BatchNormOp, ConstantOp, MulOp, ReshapeOp, RsqrtOp, SubOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.fold_batch_norm import affine
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant


@dataclass(frozen=True, eq=False)
class Constants:
    """Factor and shift, shaped to broadcast along axis 1, in the op's element type."""

    factor: Array
    shift: Array


class LowerBatchNorm(Rule[BatchNormOp, Constants]):
    """batch_norm(x) => add(mul(x, factor), shift).

    Precondition: statistics and parameters are constants, factors are finite, also when rounded.
    """

    matches: ClassVar = BatchNormOp
    makes: ClassVar = (MulOp, AddOp)

    def plan(self, op: BatchNormOp) -> Constants | Refusal:
        by = affine(op)
        if isinstance(by, Refusal):
            return by
        dtype = numpy_dtype(tensor(op.result).element_type)
        view = (-1, *(1,) * (len(shape(op.input)) - 2))
        with np.errstate(over="ignore"):
            factor, shift = by.factor.astype(dtype).reshape(view), by.shift.astype(dtype).reshape(view)
        if not (np.isfinite(factor).all() and np.isfinite(shift).all()):
            return Refusal("a factor is not finite")
        return Constants(factor, shift)

    def apply(self, op: BatchNormOp, plan: Constants, rewriter: Rewriter) -> None:
        factor, shift = ConstantOp(plan.factor), ConstantOp(plan.shift)
        scaled = MulOp(op.input, factor.result, tensor(op.result))
        rewriter.replace(op, factor, shift, scaled, AddOp(scaled.result, shift.result, tensor(op.result)))


class LowerVariableBatchNorm(Rule[BatchNormOp, bool]):
    """batch_norm(x) => (x - mean) * (rsqrt(var + eps) * weight) + bias, each shaped to broadcast along axis 1.

    Precondition: a statistic or parameter is not a constant; it computes in f32 or f64.
    """

    matches: ClassVar = BatchNormOp

    def plan(self, op: BatchNormOp) -> bool | Refusal | None:
        given = (op.running_mean, op.running_var, op.weight, op.bias)
        if all(value is None or constant(value) is not None for value in given):
            return None
        element = tensor(op.result).element_type
        return True if str(element) in ("f32", "f64") else Refusal(f"computes in {element}, not in f32 or f64")

    def apply(self, op: BatchNormOp, plan: bool, rewriter: Rewriter) -> None:
        kind, steps = tensor(op.result), list[Operation]()

        def add(step: Operation) -> SSAValue:
            steps.append(step)
            return step.results[0]

        def along_channels(value: SSAValue) -> SSAValue:
            return add(ReshapeOp(value, (*shape(value), *(1,) * (len(shape(op.input)) - 2))))

        eps = add(ConstantOp(np.array(op.eps.value.data, numpy_dtype(kind.element_type))))
        factor = add(RsqrtOp(add(AddOp(op.running_var, eps))))
        if op.weight is not None:
            factor = add(MulOp(factor, op.weight))
        value = add(SubOp(op.input, along_channels(op.running_mean), kind))
        value = add(MulOp(value, along_channels(factor), kind))
        if op.bias is not None:
            add(AddOp(value, along_channels(op.bias), kind))
        rewriter.replace(op, *steps)


@dataclass(frozen=True)
class LowerBatchNormPass(QcompPass):
    """Turn batch norms that stand alone into elementwise ops per channel."""

    name = "lower-batch-norm"
    letter: ClassVar[Letter] = Letter.REAL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [LowerBatchNorm(), LowerVariableBatchNorm()])
