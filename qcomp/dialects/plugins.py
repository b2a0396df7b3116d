# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What other packages add: their dialects, passes and targets.

A package registers an `xdsl.universe.Universe` under the entry point group ``xdsl.universe``. Everything in it is a
factory, so nothing is imported before a module or a pipeline names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import FrameType, TracebackType
from typing import TypeVar

from xdsl.universe import Universe

from qcomp.errors import QcompError

_BUILT_IN = ("qcomp.cli.universe:QCOMP_UNIVERSE", "xdsl.universe:XDSL_UNIVERSE")
_LIBRARIES = ("qcomp", "xdsl", "importlib", "<frozen importlib")
T = TypeVar("T")


@cache
def third_party() -> tuple[tuple[str, Universe], ...]:
    """The universes that other packages register, by name. One that cannot be loaded is left out with a warning."""
    found: list[tuple[str, Universe]] = []
    for name, plugin in _entry_points().items():
        try:
            universe = plugin.load()
        except Exception as problem:
            _warn(f"{_described(name)} cannot be loaded{_shipped(name)}: {fault(problem)}")
            continue
        if isinstance(universe, Universe):
            found.append((plugin.name, universe))
        else:
            _warn(f"{_described(name)} is no xdsl.universe.Universe")
    return tuple(found)


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """The entry points of other packages, by name."""
    points = sorted(entry_points(group="xdsl.universe"), key=lambda plugin: plugin.name)
    return {point.name: point for point in points if point.value not in _BUILT_IN}


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def _described(plugin: str) -> str:
    point = _entry_points().get(plugin)
    return f"plug-in '{plugin}'" if point is None else f"plug-in '{plugin}' ({point.value})"


def _shipped(plugin: str) -> str:
    """Which distribution to update or to uninstall."""
    point = _entry_points().get(plugin)
    return "" if point is None or point.dist is None else f" from distribution {point.dist.name} {point.dist.version}"


def with_plugins(
    table: dict[str, Callable[[], T]], offered: Callable[[Universe], dict[str, Callable[[], T]]], what: str
) -> dict[str, Callable[[], T]]:
    """`table` and what `offered` takes from each plug-in. Raises QcompError when a name is defined twice.

    A factory of a plug-in that fails raises a QcompError that names plug-in, distribution and class.
    """
    merged = dict(table)
    for plugin, universe in third_party():
        for name, factory in offered(universe).items():
            if name in merged:
                raise QcompError(
                    f"plug-in '{plugin}' defines the {what} '{name}', which exists already{_shipped(plugin)}",
                    code="plug-in-clash",
                    hint="rename it there, or uninstall the plug-in",
                )
            merged[name] = _guarded(factory, plugin, f"{what} '{name}'")
    return merged


def _guarded(factory: Callable[[], T], plugin: str, what: str) -> Callable[[], T]:
    def make() -> T:
        try:
            return factory()
        except Exception as problem:
            raise QcompError(
                f"{_described(plugin)} cannot load its {what}{_shipped(plugin)}: {fault(problem)}",
                code="plug-in",
                hint="update or uninstall it; --debug shows the traceback",
            ) from problem

    return make


def fault(problem: BaseException) -> str:
    """Return what went wrong in foreign code: class, file and line where they are known, exception and message."""
    place = _place(problem.__traceback__)
    text = " ".join(str(problem).split())
    return f"{f'{place}: ' if place else ''}{type(problem).__name__}: {text}"


def blame(problem: BaseException) -> str | None:
    """Return the plug-in whose code raised `problem`, and `fault`; None when it was none's."""
    packages = {point.module.partition(".")[0]: name for name, point in _entry_points().items()}
    step = problem.__traceback__
    found = None
    while step is not None:
        found = packages.get(_module_of(step.tb_frame).partition(".")[0], found)
        step = step.tb_next
    return None if found is None else f"{_described(found)}{_shipped(found)}: {fault(problem)}"


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _place(step: TracebackType | None) -> str:
    """Return the class that was being defined or used, with the last line outside of qcomp and xDSL."""
    owner = line = ""
    while step is not None:
        frame = step.tb_frame
        foreign = not _module_of(frame).startswith(_LIBRARIES)
        if foreign:
            line = f"{Path(frame.f_code.co_filename).name}:{step.tb_lineno}"
        owner = _class_of(frame, foreign) or owner
        step = step.tb_next
    return f"class {owner} ({line})" if owner and line else line


def _class_of(frame: FrameType, foreign: bool) -> str:
    """Return the class that `frame` works on: the one it is the body of, or that a decorator or a method got."""
    values = frame.f_locals
    if foreign and "__qualname__" in values:
        return str(values["__qualname__"])
    given = values.get("cls")
    owner: object = given if isinstance(given, type) else type(values["self"]) if foreign and "self" in values else None
    if not isinstance(owner, type) or owner.__module__.startswith(_LIBRARIES):
        return ""
    return owner.__name__
