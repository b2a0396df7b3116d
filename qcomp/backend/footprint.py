# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory that a call of a compiled program takes, and what follows where it is large.

Compiling takes memory for the weights and the ops, whatever the sizes of the tensors; a call takes inputs, outputs,
state and arena. A self-test holds all of them in static memory, so beyond `MAX_SELFTEST_BYTES` there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from qcomp.backend.interface import Interface, Port
from qcomp.dialects.dim import substitute
from qcomp.errors import QcompError
from qcomp.limits import MAX_SELFTEST_BYTES
from qcomp.reading import available_memory, show_bytes


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Bytes of a call."""

    inputs: int
    outputs: int
    arena: int
    state: int

    @property
    def total(self) -> int:
        """All together."""
        return self.inputs + self.outputs + self.arena + self.state

    def __str__(self) -> str:
        parts = {"inputs": self.inputs, "outputs": self.outputs, "arena": self.arena, "state": self.state}
        listed = ", ".join(f"{name} {show_bytes(size)}" for name, size in parts.items() if size)
        return f"{show_bytes(self.total)} ({listed})"


def footprint(interface: Interface, arena_bytes: int, state_bytes: int, sizes: Mapping[str, int]) -> Footprint:
    """The memory of a call where the symbols have `sizes`."""
    return Footprint(
        inputs=_bytes(interface.inputs, sizes),
        outputs=_bytes(interface.outputs, sizes),
        arena=substitute(arena_bytes, sizes),
        state=state_bytes,
    )


def usual_footprint(interface: Interface, arena_bytes: int, state_bytes: int) -> Footprint | None:
    """The memory of a call at the sizes of the self-test; None where no small sizes are allowed."""
    try:
        sizes = interface.usual_sizes(2)
    except QcompError:
        return None
    return footprint(interface, arena_bytes, state_bytes, sizes)


def has_selftest(found: Footprint | None) -> bool:
    """Whether a saved artifact comes with a self-test."""
    return found is None or found.total <= MAX_SELFTEST_BYTES


def selftest_notes(found: Footprint | None) -> list[str]:
    """A warning where there will be no self-test."""
    if found is None or has_selftest(found):
        return []
    limit = f"{show_bytes(MAX_SELFTEST_BYTES)} (limit MAX_SELFTEST_BYTES)"
    return [f"a call takes {found}: more than {limit}, so there is no self-test"]


def memory_notes(found: Footprint | None) -> list[str]:
    """A warning where this machine could not make the call."""
    available = available_memory() if found is not None and found.total > MAX_SELFTEST_BYTES else None
    if found is None or available is None or found.total <= available:
        return []
    return [f"a call takes {found}, of which this machine has {show_bytes(available)}: it cannot be made here"]


def _bytes(ports: Iterable[Port], sizes: Mapping[str, int]) -> int:
    return sum(
        math.prod(substitute(size, sizes) for size in port.shape) * np.dtype(port.dtype).itemsize for port in ports
    )
