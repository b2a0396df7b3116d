# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a path on the command line is: IR text, an exported program, or a compiled artifact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def is_artifact(path: str) -> bool:
    """Whether `path` is the folder of a compiled artifact."""
    return Path(path).is_dir()


def checked_program(path: str) -> Path:
    """`path` if it is a .mlir or .pt2 file that is there. Raises QcompError otherwise."""
    from qcomp.frontend.file_kinds import check_program_file

    file = Path(path)
    check_program_file(file)
    return file


def load_module(path: str) -> ModuleOp:
    """The module in a .mlir or .pt2 file. Raises QcompError for other files."""
    import qcomp

    file = checked_program(path)
    return qcomp.parse(file) if file.suffix == ".mlir" else qcomp.from_torch(file)
