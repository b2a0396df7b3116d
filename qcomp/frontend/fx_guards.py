# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards and example sizes out of the shape environment that the types of an fx graph's inputs refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, cast

from torch.fx import GraphModule
from torch.fx import Node as FxNode

from qcomp.dialects.guard import Guard
from qcomp.errors import QcompError
from qcomp.frontend.graph import SymbolRange
from qcomp.frontend.guard_text import MAX_NOTE, read_guards

_LINE = re.compile(r"([\w./\\~-]+\.py:\d+)")


def environment(module: GraphModule) -> Any:
    """The shape environment of an export; None for a graph without symbolic sizes."""
    for node in cast(Iterable[FxNode], module.graph.nodes):
        for size in getattr(node.meta.get("val"), "shape", ()) if node.op == "placeholder" else ():
            if not isinstance(size, int) and hasattr(size, "node"):
                return getattr(size.node, "shape_env", None)
    return None


def example_sizes(known: Any) -> dict[str, int]:
    """The sizes of symbols in the example that the program was exported with."""
    values: dict[Any, Any] = getattr(known, "backed_var_to_val", None) or getattr(known, "var_to_val", None) or {}
    return {str(name): int(size) for name, size in values.items()}


def environment_ranges(known: Any) -> dict[str, SymbolRange]:
    """The ranges of symbols, as an ExportedProgram has them in ``range_constraints``."""
    ranges: dict[Any, Any] = getattr(known, "var_to_range", None) or {}
    return {str(name): SymbolRange(range_end(ends.lower), range_end(ends.upper)) for name, ends in ranges.items()}


def range_end(value: Any) -> int | None:
    """An end of a value range; infinite ones are None."""
    return int(value) if value.is_Integer and value.is_finite else None


def environment_guards(known: Any) -> tuple[Guard, ...]:
    """The guards of a shape environment. Raises QcompError for one that cannot be read."""
    found: list[Guard] = []
    for entry in getattr(known, "guards", ()):
        place, shown = _place(entry), str(entry.expr)[:MAX_NOTE]
        found += [replace(guard, note=f"{shown} at {place}" if place else shown) for guard in _read(entry)]
    return tuple(found)


def _read(entry: Any) -> tuple[Guard, ...]:
    from sympy.printing.repr import srepr  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    return read_guards([(str(cast(Any, srepr)(entry.expr)), "")], {})


def placed(guards: Sequence[Guard], known: Any) -> tuple[Guard, ...]:
    """`guards` with the Python lines that the shape environment has for the same conditions."""
    lines: dict[tuple[int, str], str] = {}
    for entry in getattr(known, "guards", ()) if guards else ():
        place = _place(entry)
        try:
            read = _read(entry) if place else ()
        except QcompError:
            continue  # Only the line of this one is lost.
        lines.update((guard.condition, place) for guard in read)
    return tuple(
        replace(guard, note=f"{guard.note} at {lines[guard.condition]}") if guard.condition in lines else guard
        for guard in guards
    )


def _place(entry: Any) -> str:
    """``file.py:12`` of a guard; "" for one that torch needs for itself, whose paths begin with a private package."""
    line = next(iter(_LINE.findall(str(getattr(entry, "sloc", "")))), "_")
    return "" if line.startswith("_") else PurePath(line).name
