# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fuse-linear: a matmul with a constant matrix on the right is a linear.

    %1 = nn.matmul %0, %w : (tensor<2x5x3xf32>, tensor<3x4xf32>) -> tensor<2x5x4xf32>
 => %v = nn.permute %w {dims = array<i64: 1, 0>} : tensor<3x4xf32> -> tensor<4x3xf32>
    %1 = nn.linear %0, %v

A constant may stand behind a dequantize: its codes are permuted and the quantization axis follows. `fold-constants`
folds the permute, `fold-affine` takes a constant addend as the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn import LinearOp, MatmulOp, PermuteOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import DequantizeOp, encoding_of, quantized_type
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.qdq_pattern import codes_of
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant


class MatmulWithConstant(Rule[MatmulOp, SSAValue]):
    """matmul(x, w) => linear(x, permute(w)).

    Precondition: w has rank 2 and is a constant, or dequantized from one that is quantized per tensor or along its last
    dimension; x is no constant (that is for fold-constants); there are kernels of linear for the element type.
    """

    matches: ClassVar = MatmulOp
    makes: ClassVar = (LinearOp,)

    def plan(self, op: MatmulOp) -> SSAValue | Refusal | None:
        codes = codes_of(op.rhs)
        held = op.rhs if codes is None else codes
        if constant(held) is None or constant(op.lhs) is not None:
            return None
        if len(shape(op.rhs)) != 2:
            return Refusal("the constant has another rank than 2")
        if any(encoding_of(value.type) is not None for value in (op.lhs, op.rhs, op.result)):
            return Refusal("computes on codes")
        encoding = encoding_of(held.type)
        if encoding is not None and (encoding.blocks or encoding.axis == 0):
            return Refusal("the constant is quantized along another dimension than its last")
        return held

    def apply(self, op: MatmulOp, plan: SSAValue, rewriter: Rewriter) -> None:
        encoding = encoding_of(plan.type)
        kind = tensor_of(tensor(plan).element_type, shape(plan)[::-1])
        if encoding is not None and encoding.axis is not None:
            kind = quantized_type(kind, encoding.with_axis(0))
        permute = PermuteOp(plan, (1, 0), kind)
        steps: list[Operation] = [permute] if encoding is None else [permute, DequantizeOp(permute.result)]
        operands = tuple(op.operands)
        weight = steps[-1].results[0]
        rewriter.replace(op, *steps, LinearOp(op.lhs, weight, result_type=tensor(op.result)))
        rewriter.erase_dead(*operands)


@dataclass(frozen=True)
class FuseLinearPass(QcompPass):
    """Turn matmuls with a constant right side into linears."""

    name = "fuse-linear"
    letter: ClassVar[Letter] = Letter.REAL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [MatmulWithConstant()])
