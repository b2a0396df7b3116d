# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass lower-to-loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from qcomp.backend.target import find_target
from qcomp.dialects.dims import declare_guards
from qcomp.dialects.nn.conditions import size_conditions
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.lower_to_loop.driver import Lowering

TARGET = "qcomp.target"
"""On a loop-level module: the name of the target it was lowered for."""


@dataclass(frozen=True)
class LowerToLoopPass(QcompPass):
    """Turn tensors into buffers and ops into calls of loop kernels for a target.

    Exact for integers and for float ops in a fixed order; float contractions are summed in another order.
    """

    name = "lower-to-loop"
    letter: ClassVar[Letter] = Letter.REAL
    target: str = "generic"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = find_target(self.target)
        conditions = size_conditions(op)
        functions = Lowering(op, target).run()
        declare_guards(functions[-1], conditions)
        for old in list(op.body.block.ops):
            Rewriter.erase_op(old, safe_erase=False)
        op.body.block.add_ops(functions)
        op.attributes[TARGET] = StringAttr(target.name)
