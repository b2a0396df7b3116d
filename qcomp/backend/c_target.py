# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``qcomp-opt -t c``: the C text of a loop-level module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.target import Target

from qcomp.backend.emit_c import emit_program
from qcomp.backend.target import find_target
from qcomp.errors import QcompError


@dataclass(frozen=True)
class CTarget(Target):
    """The .c text, or with `header` the .h; `machine`: a name from ``qcomp targets``,
    by default the one the module was lowered for; `program` starts public names."""

    name: ClassVar[str] = "c"
    machine: str = ""
    program: str = "net"
    header: bool = False

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the text. Raises QcompError when `module` is not at loop level after plan-memory."""
        if not any(isinstance(op, FuncOp) and _has_buffers(op) for op in module.walk()):
            raise QcompError(
                "the module is not at loop level",
                code="emit",
                hint="lower it first: -p '...,lower-to-loop,plan-memory'",
            )
        lowered_for = module.attributes.get("qcomp.target")
        machine = self.machine or (lowered_for.data if isinstance(lowered_for, StringAttr) else "generic")
        program = emit_program(module, find_target(machine), self.program)
        output.write(program.header if self.header else program.source)


def _has_buffers(function: FuncOp) -> bool:
    return any(isinstance(kind, MemRefType) for kind in function.function_type.inputs)
