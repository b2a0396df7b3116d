# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plug-ins: what qcomp offers to other xDSL tools, and what other packages offer to qcomp's.

A package adds its own dialects, passes and targets with an entry point in group ``xdsl.universe`` that names an
`xdsl.universe.Universe`. Everything in it is a factory, so nothing is imported before a module or pipeline names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.target import Target

from qcomp.dialects.context import get_all_dialects, own_dialects
from qcomp.errors import QcompError
from qcomp.transforms import get_all_passes, own_passes

QCOMP_UNIVERSE = Universe(all_dialects=own_dialects(), all_passes=own_passes())
"""What xdsl-opt and the like see of qcomp: only names that xDSL does not own, since a clash breaks every xDSL tool."""

_BUILT_IN = ("qcomp.cli.universe:QCOMP_UNIVERSE", "xdsl.universe:XDSL_UNIVERSE")

T = TypeVar("T")


@cache
def third_party() -> tuple[tuple[str, Universe], ...]:
    """The universes that other packages register, by name. One that cannot be loaded is left out with a warning."""
    found: list[tuple[str, Universe]] = []
    for plugin in sorted(entry_points(group="xdsl.universe"), key=lambda plugin: plugin.name):
        if plugin.value in _BUILT_IN:
            continue
        try:
            universe = plugin.load()
        except Exception as problem:
            print(f"warning: plug-in '{plugin.name}' ({plugin.value}) cannot be loaded: {problem}", file=sys.stderr)
            continue
        if isinstance(universe, Universe):
            found.append((plugin.name, universe))
        else:
            print(f"warning: plug-in '{plugin.name}' ({plugin.value}) is no xdsl.universe.Universe", file=sys.stderr)
    return tuple(found)


def available_dialects() -> dict[str, Callable[[], Dialect]]:
    """Factories of every dialect a module may use: qcomp's, xDSL's and those of plug-ins."""
    table = {**XDSL_UNIVERSE.all_dialects, **get_all_dialects()}
    for name, universe in third_party():
        _add(table, universe.all_dialects, "dialect", name)
    return table


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Factories of every pass a pipeline may name: qcomp's, xDSL's and those of plug-ins."""
    table = {**XDSL_UNIVERSE.all_passes, **get_all_passes()}
    for name, universe in third_party():
        _add(table, universe.all_passes, "pass", name)
    return table


def advertised_passes() -> list[str]:
    """The names of the passes that help texts list: all but those of xDSL that qcomp's pipelines do not use."""
    return sorted([*get_all_passes(), *(name for _, universe in third_party() for name in universe.all_passes)])


def available_targets() -> dict[str, Callable[[], type[Target]]]:
    """Factories of every output format: qcomp's, xDSL's and those of plug-ins."""
    table = dict(XDSL_UNIVERSE.all_targets)
    for name, universe in third_party():
        _add(table, universe.all_targets, "target", name)
    return table


def _add(table: dict[str, T], more: dict[str, T], what: str, plugin: str) -> None:
    for name in more:
        if name in table:
            raise QcompError(
                f"plug-in '{plugin}' defines the {what} '{name}', which exists already",
                code="plug-in-clash",
                hint="rename it there, or uninstall the plug-in",
            )
    table.update(more)
