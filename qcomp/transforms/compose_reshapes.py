# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compose-reshapes: a reshape of a reshape is one reshape; back to the first shape it is none.

   %1 = nn.reshape %0 : tensor<2x3x5xf32> -> tensor<6x5xf32>
   %2 = nn.reshape %1 : tensor<6x5xf32> -> tensor<30xf32>
=> %2 = nn.reshape %0 : tensor<2x3x5xf32> -> tensor<30xf32>
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from qcomp.dialects.nn import ReshapeOp
from qcomp.dialects.nn.base import UNKNOWN, shape, tensor
from qcomp.dialects.quant import encoding_of
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.remove_identities import RemoveIdentity
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules


class ComposeReshapes(Rule[ReshapeOp, ReshapeOp]):
    """reshape(reshape(x)) => reshape(x).

    Precondition: at most one dimension of the result is unknown, so that the number of elements determines it; one
    encoding per tensor, if any, so that no quantization axis has to follow.
    """

    matches: ClassVar = ReshapeOp

    def plan(self, op: ReshapeOp) -> ReshapeOp | Refusal | None:
        inner = op.input.owner
        if not isinstance(inner, ReshapeOp):
            return None
        if shape(op.result).count(UNKNOWN) > 1:
            return Refusal("the result has more than one unknown dimension")
        encoding = encoding_of(op.result.type)
        if encoding is not None and not encoding.per_tensor:
            return Refusal("the tensor is quantized per channel")
        return inner

    def apply(self, op: ReshapeOp, plan: ReshapeOp, rewriter: Rewriter) -> None:
        rewriter.replace(op, ReshapeOp(plan.input, shape(op.result), tensor(op.result)))
        rewriter.erase_dead(plan.result)


@dataclass(frozen=True)
class ComposeReshapesPass(QcompPass):
    """Merge chains of reshapes."""

    name = "compose-reshapes"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [ComposeReshapes(), RemoveIdentity(ReshapeOp)])
