# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""duplicate-dequantize: every op that uses a dequantized value gets a dequantize of its own, right in front of it.

    %d = quant.dequantize %q
    %1 = nn.conv2d %d, %w
    %2 = nn.add %d, %d
    func.return %d, %1, %2
 => %d = quant.dequantize %q
    %d1 = quant.dequantize %q
    %1 = nn.conv2d %d1, %w
    %d2 = quant.dequantize %q
    %2 = nn.add %d2, %d2
    func.return %d, %1, %2

So that a pattern dequantize -> op holds nothing that is used outside of it. Terminators keep the shared one; a
dequantize without uses goes. Common subexpression elimination would undo this: the module is marked, and `cse` refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from qcomp.dialects.quant import DequantizeOp
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Rewriter, Rule, apply_rules

PRIVATE_DEQUANTIZE = "qcomp.private_dequantize"
"""The module attribute that says: dequantizes have been duplicated, do not merge them."""


@dataclass(frozen=True)
class Share:
    """The ops that get a copy, and whether the original stays."""

    users: tuple[Operation, ...]
    keep: bool


class OnePerUser(Rule[DequantizeOp, Share]):
    """A dequantize with several using ops => one per using op; all operands of one op read the same copy.

    Precondition: two using ops or more, not counting terminators, or one beside a terminator.
    """

    matches: ClassVar = DequantizeOp

    def plan(self, op: DequantizeOp) -> Share | None:
        users = list(dict.fromkeys(use.operation for use in op.result.uses))
        private = tuple(user for user in users if not user.has_trait(IsTerminator))
        if not private or len(users) == 1:
            return None
        return Share(private, len(private) < len(users))

    def apply(self, op: DequantizeOp, plan: Share, rewriter: Rewriter) -> None:
        for user in plan.users:
            copy = DequantizeOp(op.input)
            copy.result.name_hint = op.result.name_hint
            rewriter.insert_before(user, copy)
            for index, operand in enumerate(user.operands):
                if operand is op.result:
                    rewriter.set_operand(user, index, copy.result)
        if not plan.keep:
            rewriter.erase(op)


class Unused(Rule[DequantizeOp, bool]):
    """A dequantize that nothing uses => nothing."""

    matches: ClassVar = DequantizeOp

    def plan(self, op: DequantizeOp) -> bool | None:
        return True if op.result.first_use is None else None

    def apply(self, op: DequantizeOp, plan: bool, rewriter: Rewriter) -> None:
        rewriter.erase(op)


@dataclass(frozen=True)
class DuplicateDequantizePass(QcompPass):
    """Give every user of a dequantized value its own quant.dequantize."""

    name = "duplicate-dequantize"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [Unused(), OnePerUser()])
        op.attributes[PRIVATE_DEQUANTIZE] = UnitAttr()
