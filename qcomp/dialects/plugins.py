# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What other packages add: their dialects, passes and targets.

A package registers an `xdsl.universe.Universe` under the entry point group ``xdsl.universe``. Everything in it is a
factory, so nothing is imported before a module or a pipeline names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from xdsl.universe import Universe

from qcomp.errors import QcompError

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


def with_plugins(
    table: dict[str, Callable[[], T]], offered: Callable[[Universe], dict[str, Callable[[], T]]], what: str
) -> dict[str, Callable[[], T]]:
    """`table` and what `offered` takes from each plug-in. Raises QcompError when a name is defined twice."""
    merged = dict(table)
    for plugin, universe in third_party():
        for name, factory in offered(universe).items():
            if name in merged:
                raise QcompError(
                    f"plug-in '{plugin}' defines the {what} '{name}', which exists already",
                    code="plug-in-clash",
                    hint="rename it there, or uninstall the plug-in",
                )
            merged[name] = factory
    return merged
