# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exit codes of both tools, and the reproducer of a fault of qcomp: one file, without the model's weights.

A reproducer of IR text is the module of the input, each large constant being its first element everywhere; of a .pt2
file that cannot be imported it is the archive with the bytes of its weights cleared. Both say what was run, and the
traceback.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from qcomp import __version__
from qcomp.dialects.plugins import blame
from qcomp.errors import QcompError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

INPUT, USAGE, FAULT = 1, 2, 3
"""Exit codes after an error: of the input or the machine, of the command line, of qcomp."""
WEIGHTS_OPTION = "--reproducer-weights"
WEIGHTS_HELP = "keep the weights in the reproducer of an internal error"

_USAGE_CODES = frozenset(
    {"usage", "option", "pass-option", "pass-order", "pipeline", "target-option", "unknown-pass", "unknown-target"}
)
_FAULT_CODES = frozenset({"broken-pass", "internal", "no-fixpoint"})
_RAW_BYTES = ("data/weights/", "data/constants/")


def exit_code(error: BaseException) -> int:
    """The exit code that `error` ends a tool with."""
    from qcomp.cli.diagnostics import LocatedError, is_expected

    if isinstance(error, LocatedError):
        return error.exit_code
    if isinstance(error, QcompError):
        return USAGE if error.code in _USAGE_CODES else FAULT if error.code in _FAULT_CODES else INPUT
    # Memory and nesting are the input's: there is always one that is too large. A plug-in's fault is not qcomp's.
    foreign = isinstance(error, MemoryError | RecursionError) or blame(error) is not None
    return INPUT if is_expected(error) or foreign else FAULT


def write_reproducer(
    error: BaseException, command: Sequence[str], program: str | None, *, weights: bool = False
) -> Path | None:  # fmt: skip
    """Write the reproducer of a command on `program`, a path; where it is. None where it cannot be written."""
    path = None if program is None else Path(program)
    story = [f"// qcomp reproducer of: {shlex.join(command)}", *_story(error)]
    with suppress(Exception):
        if path is None or path.suffix not in (".mlir", ".pt2") or not path.is_file():
            return _write("\n".join(story) + "\n", ".txt")
        try:
            from qcomp.cli.programs import load_module

            text = module_text(load_module(str(path)), weights)
        except Exception:  # Reading it is what fails.
            if path.suffix == ".pt2":
                return _write_archive(path, "\n".join(story), weights)
            text = path.read_text(errors="replace")
        return _write("\n".join([*story, text]), ".mlir")
    return None


def write_module_reproducer(error: BaseException, first_line: str, text: str) -> Path | None:
    """Write the reproducer of `qcomp-opt` on a module's `text`; where it is. None where it cannot be written."""
    with suppress(Exception):
        return _write("\n".join([first_line, *_story(error), text]), ".mlir")
    return None


def announce(path: Path | None) -> None:
    """Tell where the reproducer is."""
    if path is not None:
        sys.stderr.write(f"note: this is a fault of qcomp; a reproducer for a report is in {path}\n")


def module_text(module: ModuleOp, weights: bool) -> str:
    """The text of `module`, which needs no sidecar."""
    from qcomp.dialects.text import print_text

    return print_text(module, constants="bytes" if weights else "first")


def _story(error: BaseException) -> list[str]:
    made = f"qcomp {__version__}, xdsl {version('xdsl')}, numpy {version('numpy')}, Python {platform.python_version()}"
    lines = "".join(traceback.format_exception(error)).splitlines()
    return [f"// {made}, {platform.platform()}", *(f"// {line}" for line in lines)]


def _write(text: str, suffix: str) -> Path:
    descriptor, name = tempfile.mkstemp(prefix="qcomp-reproducer-", suffix=suffix)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return Path(name)


def _write_archive(path: Path, story: str, weights: bool) -> Path:
    """A copy of a .pt2 file, the bytes of its tensors 0."""
    descriptor, name = tempfile.mkstemp(prefix="qcomp-reproducer-", suffix=".pt2")
    with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(path) as old:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                raw = any(part in info.filename for part in _RAW_BYTES) and not info.filename.endswith(".json")
                new.writestr(info.filename, bytes(info.file_size) if raw and not weights else old.read(info))
            root = min((n for n in old.namelist() if n.endswith("archive_format")), key=len, default="archive_format")
            new.writestr(root.removesuffix("archive_format") + "reproducer.txt", story)
    return Path(name)
