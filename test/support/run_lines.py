# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit's ``RUN:`` and ``REQUIRES:`` lines, for the in-process runner and for lit itself."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path

_LINE = re.compile(r"^\s*(?://|#|;)\s*(RUN|REQUIRES):\s*(.*?)\s*$")


def run_lines(text: str) -> list[str]:
    """The commands of a test, continuation lines joined."""
    commands: list[str] = []
    open_line = ""
    for kind, content in _annotations(text):
        if kind != "RUN":
            continue
        open_line += content
        if open_line.endswith("\\"):
            open_line = open_line[:-1] + " "
        else:
            commands.append(open_line)
            open_line = ""
    return commands if not open_line else [*commands, open_line]


def missing_features(text: str) -> list[str]:
    """The features that a test requires and this machine lacks."""
    wanted = [name.strip() for kind, content in _annotations(text) if kind == "REQUIRES" for name in content.split(",")]
    return [name for name in wanted if name not in features()]


@cache
def features() -> frozenset[str]:
    """What this machine has: gcc, clang, mlir-opt (a real one, named by QCOMP_MLIR_OPT)."""
    found = {name for name in ("gcc", "clang") if shutil.which(name) or shutil.which(f"{name}-19")}
    if os.environ.get("QCOMP_MLIR_OPT"):
        found.add("mlir-opt")
    return frozenset(found)


def substitute(command: str, test: Path, scratch: Path) -> str:
    """`command` with ``%s`` (the test), ``%S`` (its folder), ``%t`` (a file of its own) and ``%T`` filled in."""
    values = {"%s": str(test), "%S": str(test.parent), "%t": str(scratch / f"{test.stem}.tmp"), "%T": str(scratch)}
    return re.sub(r"%[sStT](?!\w)", lambda match: values[match[0]], command)


def _annotations(text: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for line in text.splitlines() if (match := _LINE.match(line))]
