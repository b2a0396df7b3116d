# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program in this process: NAME_run of a shared library, called with an arena per thread."""

from __future__ import annotations

import ctypes
import math
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qcomp.backend.interface import Port
from qcomp.backend.target import ARENA_ALIGNMENT
from qcomp.dialects.dim import substitute
from qcomp.errors import QcompError
from qcomp.reading import require_memory

if TYPE_CHECKING:
    from qcomp.dialects.constant import Array


MOST_PLANS = 1024
"""Sizes whose shapes and arena are kept."""


@dataclass(frozen=True)
class _Plan:
    """What a call at certain sizes needs: the arena's bytes, the outputs' shapes, the sizes as C numbers."""

    arena_bytes: int
    shapes: Sequence[tuple[int, ...]]
    numbers: Sequence[Any]


class Library:
    """NAME_run of the shared library at `path`. May be called from several threads at once.

    With state (`state_bytes`), calls go on from what the last one left, one after the other; see `reset`. arena_bytes
    and the outputs' shapes may depend on symbols; calls then give their sizes.
    """

    def __init__(self, path: Path, name: str, outputs: Sequence[Port], arena_bytes: int, state_bytes: int = 0):
        self.path = path
        self._outputs = [(port.shape, np.dtype(port.dtype)) for port in outputs]
        self._arena_bytes = arena_bytes
        library = _open(path)
        self._run = getattr(library, f"{name}_run")
        self._run.restype = None
        self._local = threading.local()
        self._lock = threading.Lock()
        self._state: list[Any] = []
        self._plans: dict[tuple[int, ...], _Plan] = {}
        if state_bytes:
            self._state_memory, address = _aligned(state_bytes)
            self._state = [address]
            self._init = getattr(library, f"{name}_init")
            self._init.restype = None
            self.reset()

    def reset(self) -> None:
        """Go back to the state before the first call."""
        if self._state:
            with self._lock:
                self._init(*self._state)

    def __call__(self, inputs: Sequence[Array], sizes: Mapping[str, int] | None = None) -> list[Array]:
        """Run once. `inputs` must fit: nothing is checked here. sizes: of all symbols, in order."""
        if sizes:
            return self._at(inputs, sizes)
        try:
            arena = self._local.address
        except AttributeError:
            arena = self._new_arena(self._arena_bytes, [shape for shape, _ in self._outputs])
        outputs: list[Array] = [np.empty(shape, dtype) for shape, dtype in self._outputs]
        self._call(*map(_pointer, inputs), *map(_pointer, outputs), *self._state, arena)
        return outputs

    def _call(self, *arguments: Any) -> None:
        """NAME_run; calls that change the state one after the other."""
        if self._state:
            with self._lock:
                self._run(*arguments)
        else:
            self._run(*arguments)

    def _at(self, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
        key = tuple(sizes.values())
        plan = self._plans.get(key)
        if plan is None:
            shapes = [tuple(substitute(size, sizes) for size in shape) for shape, _ in self._outputs]
            plan = _Plan(substitute(self._arena_bytes, sizes), shapes, [ctypes.c_int64(size) for size in key])
            if len(self._plans) < MOST_PLANS:
                self._plans[key] = plan
        if plan.arena_bytes > getattr(self._local, "bytes", -1):
            self._new_arena(plan.arena_bytes, plan.shapes)
        outputs: list[Array] = [
            np.empty(shape, dtype) for shape, (_, dtype) in zip(plan.shapes, self._outputs, strict=True)
        ]
        pointers = [*map(_pointer, inputs), *map(_pointer, outputs)]
        self._call(*plan.numbers, *pointers, *self._state, self._local.address)
        return outputs

    def _new_arena(self, size: int, shapes: Sequence[tuple[int, ...]]) -> ctypes.c_void_p:
        """An arena for this thread. Raises QcompError where a call with outputs of `shapes` finds too little memory."""
        outputs = sum(
            math.prod(shape) * dtype.itemsize for shape, (_, dtype) in zip(shapes, self._outputs, strict=True)
        )
        require_memory(size + outputs, f"a call, its arena of {size} bytes and outputs of {outputs},")
        self._local.bytes = size
        self._local.memory, self._local.address = _aligned(size)
        return self._local.address


def _aligned(size: int) -> tuple[Array, ctypes.c_void_p]:
    """Memory, and where in it `size` aligned bytes begin."""
    memory: Array = np.empty(size + ARENA_ALIGNMENT, np.uint8)
    return memory, ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % ARENA_ALIGNMENT)


def _pointer(array: Array) -> Any:
    """The address of the elements; a small network takes less time than numpy's own way to it."""
    buffer: Any = array
    try:
        return ctypes.byref(ctypes.c_char.from_buffer(buffer))
    except (TypeError, ValueError):  # It is read-only or empty.
        return ctypes.c_void_p(array.ctypes.data)


def _open(path: Path) -> ctypes.CDLL:
    """Load a library under a name of its own: the loader takes an earlier library of the same path for the same one."""
    with tempfile.TemporaryDirectory(prefix="qcomp-") as folder:
        link = Path(folder, path.name)
        os.symlink(path.resolve(), link)
        try:
            return ctypes.CDLL(str(link))
        except OSError as problem:
            raise QcompError(f"{path.name} cannot be loaded: {problem}", code="load") from None
