# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes, by name. A pass lives in the file of its name and is imported when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from xdsl.passes import ModulePass

_PASSES: dict[str, str] = {
    # "pass-name": "qcomp.transforms.pass_name:PassNamePass",
    "cse": "xdsl.transforms.common_subexpression_elimination:CommonSubexpressionElimination",
    "dce": "xdsl.transforms.dead_code_elimination:DeadCodeElimination",
}


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Factories of all passes by name: qcomp's own and those of xDSL that it uses."""
    return {name: _factory(place) for name, place in _PASSES.items()}


def own_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Factories of the passes that qcomp itself defines, by name."""
    return {name: _factory(place) for name, place in _PASSES.items() if place.startswith("qcomp.")}


def _factory(place: str) -> Callable[[], type[ModulePass]]:
    module, attribute = place.split(":")
    return lambda: cast(type[ModulePass], getattr(importlib.import_module(module), attribute))
