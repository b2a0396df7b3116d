# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What mutants are made of: .pt2 files of several kinds of programs, and the texts of the lit tests."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from qcomp.errors import QcompError

ROOT = Path(__file__).resolve().parents[2]
_SPLIT = re.compile(r"^// -----.*$\n?", re.MULTILINE)
PASS_MARK = "// pass "
"""Begins the first line of a seed; the name of its file follows, which is that of the pass it is for, if it is for one.
"""
_LARGEST_TEXT = 20_000


def pt2_seeds(folder: Path) -> dict[str, bytes]:
    """Files by name, exported by torch in a process of its own. Raises QcompError when that fails."""
    code = f"from tools.fuzzing import seeds; seeds.export_all({str(folder)!r})"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise QcompError((done.stderr.strip().splitlines() or ["no seeds"])[-1], code="fuzz")
    return {path.stem: path.read_bytes() for path in sorted(folder.glob("*.pt2"))}


def export_all(folder: str) -> None:
    """Write the seeds; needs torch."""
    torch: Any = importlib.import_module("torch")
    programs: Any = importlib.import_module("tools.fuzzing.programs")
    for name, program in programs.programs():
        torch.export.save(program, Path(folder) / f"{name}.pt2")


def mlir_seeds() -> dict[str, bytes]:
    """The modules of the lit tests, without comments, by file and position."""
    found: dict[str, bytes] = {}
    for path in sorted((ROOT / "test" / "filecheck").rglob("*.mlir")):
        for index, chunk in enumerate(_SPLIT.split(path.read_text(encoding="utf-8"))):
            text = re.sub(r"^\s*//.*\n", "", chunk, flags=re.MULTILINE).strip()
            if text and len(text) < _LARGEST_TEXT:
                found[f"{path.stem}:{index}"] = f"{PASS_MARK}{path.stem}\n{text}\n".encode()
    return found
