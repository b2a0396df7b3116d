# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lower-batch-norm: a batch norm that stands alone becomes a multiply and an add per channel.

    %1 = nn.batch_norm %0, %mean, %var weight(%gamma) bias(%beta) {eps = 1.0e-05 : f64} : ... tensor<2x3x5x7xf32>
 => %2 = nn.mul %0, %factor : (tensor<2x3x5x7xf32>, tensor<3x1x1xf32>) -> tensor<2x3x5x7xf32>
    %1 = nn.add %2, %shift

    factor = gamma / sqrt(var + eps)      shift = beta - mean * factor

computed in float64 and rounded once. Run it after fold-batch-norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from qcomp.dialects.constant import Array
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn import AddOp, BatchNormOp, ConstantOp, MulOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.fold_batch_norm import affine
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules


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


@dataclass(frozen=True)
class LowerBatchNormPass(QcompPass):
    """Turn batch norms with constant statistics into a multiply and an add."""

    name = "lower-batch-norm"
    letter: ClassVar[Letter] = Letter.REAL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [LowerBatchNorm()])
