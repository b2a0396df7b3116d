# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sources to a shared library, by the machine's C compiler.

The compiler is `CC`, else the first of gcc, cc and clang. Kernels carry their instruction set as function attributes,
so no -march is given and the library's other code runs anywhere.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from qcomp.backend.abi import write_abi_source
from qcomp.backend.child import run_child
from qcomp.errors import QcompError

COMPILERS = ("gcc", "cc", "clang")
WeightForm = Literal["auto", "text", "binary"]
"""How weights are saved; see `Artifact.save`."""
_SHOWN_LINES = 8


def find_compiler() -> list[str] | None:
    """The command of the C compiler, with the options that CC gives; None when there is none."""
    given = shlex.split(os.environ.get("CC", ""))
    for command in [given] if given else [[name] for name in COMPILERS]:
        if shutil.which(command[0]):
            return command
    return None


def assembler_takes_binaries() -> bool:
    """Whether the compiler is known to take NAME_weights.S here."""
    return sys.platform == "linux"


def build_library(folder: Path, sources: Sequence[str], output: str, opt_level: int = 3) -> Path:
    """Compile the files `sources` of `folder` to the shared library `output` beside them.

    Raises QcompError: no compiler (code "no-compiler"), or what it says (code "build").
    """
    compiler = find_compiler()
    if compiler is None:
        raise no_compiler()
    # Names, not paths: the library is the same wherever the folder is.
    command = [*compiler, "-std=c99", f"-O{opt_level}", "-fPIC", "-shared", *_link_flags(), *sources, "-o", output]
    try:
        done = run_child(command, folder)
    except OSError as problem:
        raise QcompError(f"{compiler[0]} does not start: {problem.strerror}", code="no-compiler") from None
    if done.returncode != 0:
        raise QcompError(f"{shlex.join(compiler)} failed: {_first_lines(done)}", code="build")
    return folder / output


def build_program(folder: Path, name: str, sources: Sequence[str], opt_level: int) -> Path:
    """`build_library` of NAME.so, with the symbol that `qcomp.backend.abi` compares, where NAME.h has the text."""
    return build_library(folder, [*sources, *write_abi_source(folder, name)], f"{name}.so", opt_level)


def no_compiler() -> QcompError:
    """The error that a compiler is needed and missing."""
    given = os.environ.get("CC")
    text = f"CC is {given}, which is not there" if given else "there is no C compiler here"
    return QcompError(text, code="no-compiler", hint="install gcc or clang, or set CC")


def _link_flags() -> list[str]:
    # Two libraries with the same names in one process: each uses its own symbols.
    return ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []


def _first_lines(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line]
    if not lines:
        return f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return "\n".join((errors or lines)[:_SHOWN_LINES])
