# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What qcomp offers to other xDSL tools, and what its own tools list."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.target import Target

from qcomp.dialects import plugins
from qcomp.dialects.context import own_dialects
from qcomp.transforms import get_all_passes, own_passes


def _c() -> type[Target]:
    from qcomp.backend.c_target import CTarget

    return CTarget


_TARGETS: dict[str, Callable[[], type[Target]]] = {"c": _c}

QCOMP_UNIVERSE = Universe(all_dialects=own_dialects(), all_passes=own_passes(), all_targets=_TARGETS)
"""What xdsl-opt and the like see of qcomp: only names that xDSL does not own, since a clash breaks every xDSL tool."""


def advertised_passes() -> list[str]:
    """The names of the passes that help texts list: all but those of xDSL that qcomp's pipelines do not use."""
    return sorted([*get_all_passes(), *(name for _, other in plugins.third_party() for name in other.all_passes)])


def available_targets() -> dict[str, Callable[[], type[Target]]]:
    """Factories of every output format: qcomp's, xDSL's and those of plug-ins."""
    return plugins.with_plugins({**XDSL_UNIVERSE.all_targets, **_TARGETS}, lambda other: other.all_targets, "target")
