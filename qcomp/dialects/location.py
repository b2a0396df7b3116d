# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Locations: the module path and Python line an op came from, e.g. ``loc("layer1.0.conv1"("model.py":12:0))``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import (
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    UnknownLoc,
)


def location(module_path: str | None, file: str | None = None, line: int = 0, column: int = 0) -> LocationAttr:
    """The location of module `module_path` (dotted, as in torch) defined at `file`:`line`:`column`."""
    place = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column)) if file else UnknownLoc()
    return NameLoc(StringAttr(module_path), place) if module_path else place


def module_path(loc: LocationAttr) -> str | None:
    """The module path held by `loc`, or None."""
    if isinstance(loc, NameLoc):
        return loc.desc.data
    if isinstance(loc, FusedLoc):
        paths = [path for part in cast(Iterable[LocationAttr], loc.locations) if (path := module_path(part))]
        return "+".join(paths) or None
    return None


def source_line(loc: LocationAttr) -> str | None:
    """``file:line`` of `loc`, or None."""
    if isinstance(loc, FileLineColLoc):
        return f"{loc.filename.data}:{loc.line.data}"
    if isinstance(loc, NameLoc) and isinstance(loc.location, FileLineColLoc):
        return source_line(loc.location)
    if isinstance(loc, FusedLoc):
        return next((line for part in cast(Iterable[LocationAttr], loc.locations) if (line := source_line(part))), None)
    return None


def describe(loc: LocationAttr) -> str | None:
    """`loc` for a message: ``layer1.0.conv1 (model.py:12)``, or None when nothing is known."""
    path, line = module_path(loc), source_line(loc)
    if path and line:
        return f"{path} ({line})"
    return path or line
