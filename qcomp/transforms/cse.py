# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cse: xDSL's common subexpression elimination, refused where it would undo `duplicate-dequantize`.

    %1 = nn.relu %0 : tensor<2xf32> -> tensor<2xf32>
    %2 = nn.relu %0 : tensor<2xf32> -> tensor<2xf32>
    %3 = nn.add %1, %2
 => %1 = nn.relu %0
    %3 = nn.add %1, %1

Two ops are one when name, attributes (floats by their bits), result types, regions and operands in order are equal
and neither has effects. Constants are compared by content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.common_subexpression_elimination import cse

from qcomp.errors import QcompError
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.duplicate_dequantize import PRIVATE_DEQUANTIZE


@dataclass(frozen=True)
class CsePass(QcompPass):
    """Merge equal ops. Raises QcompError on a module whose dequantizes have been duplicated."""

    name = "cse"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if PRIVATE_DEQUANTIZE in op.attributes:
            raise QcompError(
                "cse after duplicate-dequantize would merge the private dequantizes again",
                code="pass-order",
                hint="run cse before duplicate-dequantize",
            )
        cse(op)
