# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warnings about a program that travel with its module: through passes, text and quantization into the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

NOTES = "qcomp.warnings"


def notes_of(module: ModuleOp) -> list[str]:
    """Return the warnings that `module` carries."""
    held = module.attributes.get(NOTES)
    if not isinstance(held, ArrayAttr):
        return []
    return [item.data for item in cast("ArrayAttr[Attribute]", held) if isinstance(item, StringAttr)]


def add_notes(module: ModuleOp, notes: Sequence[str]) -> None:
    """Let `module` carry `notes` too."""
    found = list(dict.fromkeys([*notes_of(module), *notes]))
    if found:
        module.attributes[NOTES] = ArrayAttr([StringAttr(note) for note in found])
