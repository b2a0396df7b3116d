# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The xDSL context with qcomp's dialects, xDSL's and those of plug-ins, registered lazily."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.ir import Dialect
from xdsl.universe import XDSL_UNIVERSE

from qcomp.dialects import plugins
from qcomp.dialects.constant import ConstantStore

_DIALECTS = {
    "builtin": "xdsl.dialects.builtin:Builtin",
    "func": "xdsl.dialects.func:Func",
    "arith": "xdsl.dialects.arith:Arith",
    "math": "xdsl.dialects.math:Math",
    "memref": "xdsl.dialects.memref:MemRef",
    "vector": "xdsl.dialects.vector:Vector",
    "affine": "xdsl.dialects.affine:Affine",
    "quant": "qcomp.dialects.quant:Quant",
    "nn": "qcomp.dialects.nn:Nn",
    "loop": "qcomp.dialects.loop:Loop",
}


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Factories of all dialects a qcomp module may use, by name."""
    return {name: _factory(place) for name, place in _DIALECTS.items()}


def own_dialects() -> dict[str, Callable[[], Dialect]]:
    """Factories of the dialects that qcomp itself defines, by name."""
    return {name: _factory(place) for name, place in _DIALECTS.items() if place.startswith("qcomp.")}


def _factory(place: str) -> Callable[[], Dialect]:
    module, attribute = place.split(":")
    return lambda: cast(Dialect, getattr(importlib.import_module(module), attribute))


def available_dialects() -> dict[str, Callable[[], Dialect]]:
    """Factories of every dialect a module may use: qcomp's, all of xDSL's, and those of plug-ins."""
    table = {**XDSL_UNIVERSE.all_dialects, **get_all_dialects()}
    return plugins.with_plugins(table, lambda other: other.all_dialects, "dialect")


@dataclass
class QcompContext(Context):
    """An xDSL context that also resolves constants held in a sidecar file."""

    constants: ConstantStore = field(default_factory=ConstantStore)

    def clone(self) -> QcompContext:
        base = super().clone()
        return QcompContext(
            base.allow_unregistered,
            base._loaded_dialects,  # pyright: ignore[reportPrivateUsage]
            base._loaded_ops,  # pyright: ignore[reportPrivateUsage]
            base._loaded_attrs,  # pyright: ignore[reportPrivateUsage]
            base._loaded_types,  # pyright: ignore[reportPrivateUsage]
            base._registered_dialects,  # pyright: ignore[reportPrivateUsage]
            self.constants,
        )


def context() -> QcompContext:
    """A fresh context with `available_dialects` registered; each is imported when it is first used."""
    ctx = QcompContext()
    for name, factory in available_dialects().items():
        ctx.register_dialect(name, factory)
    ctx.load_registered_dialect("builtin")
    return ctx
