# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What mutants are made of: .pt2 files of several kinds of programs, and the texts of the lit tests."""

from __future__ import annotations

import importlib
import io
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from xdsl.dialects.builtin import ModuleOp, bf16

from qcomp.backend.interface import Port
from qcomp.dialects.constant import DataAttr
from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.quant import Encoding, UniformQuantizedType
from qcomp.dialects.text import print_text, save
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


NPZ_PORTS = [
    Port("x", "float32", (3, 2, 5)), Port("n", "int64", (3, 4)), Port("h", "uint16", (3, 2), element="bfloat16"),
]  # fmt: skip
NPZ_SAMPLES = [replace(port, shape=port.shape[1:]) for port in NPZ_PORTS]
"""What the seeds of `npz_seeds` are read as: whole, and by rows."""


def npz_seeds(_: Path) -> dict[str, bytes]:
    """The same arrays stored and deflated, by rows and by columns."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {"x": rng.standard_normal((3, 2, 5)).astype(np.float32), "n": rng.integers(0, 9, (3, 4)),
                              "h": rng.standard_normal((3, 2)).astype(np.float32)}  # fmt: skip
    found: dict[str, bytes] = {}
    orders: tuple[Literal["C", "F"], ...] = ("C", "F")
    for order in orders:
        for name, write in (("stored", np.savez), ("deflated", np.savez_compressed)):
            file = io.BytesIO()
            held: dict[str, Any] = {key: np.array(value, order=order) for key, value in arrays.items()}
            write(file, **held)
            found[f"{name} {order}"] = file.getvalue()
    return found


def _sidecar_module() -> ModuleOp:
    kind = UniformQuantizedType(Encoding.make(np.linspace(0.1, 1, 20), range(20), axis=0))
    ops = [ConstantOp(np.arange(24, dtype=dtype)) for dtype in (np.int8, np.float32, np.uint16, np.int64)]
    flags = DataAttr.of(np.arange(40).reshape(5, 8) % 3 == 0)
    halves = DataAttr.of(np.arange(18, dtype=np.uint16), bf16)
    return ModuleOp([*ops, ConstantOp(flags), ConstantOp(halves)], {"k": kind})


@cache
def sidecar_text() -> str:
    """The text whose constants the seeds of `sidecar_seeds` hold."""
    return print_text(_sidecar_module(), locations=False)


def sidecar_seeds(folder: Path) -> dict[str, bytes]:
    """The sidecar of a module with constants of several types."""
    save(_sidecar_module(), folder / "net.mlir")
    return {"sidecar": (folder / "net.safetensors").read_bytes()}


def mlir_seeds() -> dict[str, bytes]:
    """The modules of the lit tests, without comments, by file and position."""
    found: dict[str, bytes] = {}
    for path in sorted((ROOT / "test" / "filecheck").rglob("*.mlir")):
        for index, chunk in enumerate(_SPLIT.split(path.read_text(encoding="utf-8"))):
            text = re.sub(r"^\s*//.*\n", "", chunk, flags=re.MULTILINE).strip()
            if text and len(text) < _LARGEST_TEXT:
                found[f"{path.stem}:{index}"] = f"{PASS_MARK}{path.stem}\n{text}\n".encode()
    return found
