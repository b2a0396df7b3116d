# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C from loop-level modules: one .c, one .h, weights apart; no heap, no globals that change, deterministic text."""

from qcomp.backend.emit_c.program import CProgram, emit_program

__all__ = ["CProgram", "emit_program"]
