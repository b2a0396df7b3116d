# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""qcomp: a quantizing compiler from torch.export and PT2E to dependency-free int8 C.

Everything here is imported when it is first used: ``import qcomp`` costs next to nothing and never imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qcomp.backend.artifact import Artifact, load
    from qcomp.backend.compare import Comparison, compare
    from qcomp.backend.compile import compile
    from qcomp.backend.quantize import quantize
    from qcomp.backend.report import Report
    from qcomp.dialects.context import context
    from qcomp.dialects.text import parse, save
    from qcomp.errors import QcompError
    from qcomp.frontend import from_torch
    from qcomp.interpreter.run import interpret
    from qcomp.interpreter.state import State
    from qcomp.transforms.pipeline import run_passes

__version__ = "0.1.0"

__all__ = [
    "Artifact", "Comparison", "QcompError", "Report", "State", "__version__", "compare", "compile", "context",
    "from_torch", "interpret", "load", "parse", "quantize", "run_passes", "save",
]  # fmt: skip

_HOMES = {
    "Artifact": "qcomp.backend.artifact",
    "Comparison": "qcomp.backend.compare",
    "QcompError": "qcomp.errors",
    "Report": "qcomp.backend.report",
    "State": "qcomp.interpreter.state",
    "compare": "qcomp.backend.compare",
    "compile": "qcomp.backend.compile",
    "context": "qcomp.dialects.context",
    "from_torch": "qcomp.frontend",
    "interpret": "qcomp.interpreter.run",
    "load": "qcomp.backend.artifact",
    "parse": "qcomp.dialects.text",
    "quantize": "qcomp.backend.quantize",
    "run_passes": "qcomp.transforms.pipeline",
    "save": "qcomp.dialects.text",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'qcomp' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
