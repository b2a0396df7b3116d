# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program in this process: NAME_run of a shared library, called with an arena per thread."""

from __future__ import annotations

import copy
import ctypes
import math
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qcomp.backend.abi import abi_symbol, check_abi, damaged
from qcomp.backend.folder import TemporaryFolder
from qcomp.backend.shared_object import SharedObject
from qcomp.backend.target import ARENA_ALIGNMENT
from qcomp.dialects.dim import is_symbolic, substitute
from qcomp.errors import QcompError
from qcomp.reading import require_memory

if TYPE_CHECKING:
    from qcomp.backend.manifest import Manifest
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
    """The program of `manifest` in the shared library at `path`. May be called from several threads at once.

    With state, calls go on from what the last one left, one after the other; see `reset`. The arena and the outputs'
    shapes may depend on symbols; calls then give their sizes. folder: kept as long as the library is open. size: bytes
    of the file.
    Raises QcompError when the library is not the one that `manifest` describes.
    """

    def __init__(self, path: Path, manifest: Manifest, folder: TemporaryFolder | None = None):
        self.path = path
        self.size = path.stat().st_size
        self._manifest = manifest
        shared = SharedObject(path)
        check_abi(manifest, shared.text(abi_symbol(manifest.name)), path)
        self._session: _Session | None = _Session(shared, manifest, folder)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._session is None

    def close(self) -> None:
        """Unload the library: at once, or after the last call that other threads are in. Later calls are refused."""
        self._session = None

    def reset(self) -> None:
        """Go back to the state before the first call."""
        self._open_session().reset()

    def copy(self) -> Library:
        """The same library with arenas and a state of its own; the state is what this one's is now."""
        session = self._open_session()
        copied = copy.copy(self)
        copied._session = _Session(session.shared, self._manifest, session.folder)
        copied.set_state(session.state())
        return copied

    def state(self) -> bytes:
        """What lives on between calls, as it is now; empty without state."""
        return self._open_session().state()

    def set_state(self, state: bytes) -> None:
        """Go on from what `state` gave."""
        self._open_session().set_state(state)

    def write_to(self, path: Path) -> None:
        """Copy the file of the library."""
        folder = self._open_session().folder
        if folder is not None:
            folder.copy(self.path.name, path)
        else:
            shutil.copyfile(self.path, path)

    def __call__(self, inputs: Sequence[Array], sizes: Mapping[str, int] | None = None) -> list[Array]:
        """Run once. `inputs` must fit: nothing is checked here. sizes: of all symbols, in order."""
        session = self._session or self._open_session()
        try:
            return session.run_at(inputs, sizes) if sizes else session.run(inputs)
        except MemoryError:
            at = f" at {', '.join(f'{name} = {size}' for name, size in sizes.items())}" if sizes else ""
            text = f"a call of {self._manifest.name}{at} needs more memory than there is"
            raise QcompError(text, code="memory") from None

    def _open_session(self) -> _Session:
        session = self._session
        if session is None:
            raise closed_error(self._manifest.name)
        return session


def closed_error(name: str) -> QcompError:
    """The error that an artifact was closed."""
    return QcompError(f"{name} was closed", code="closed", hint="load or compile it again")


class _Session:
    """All that a call uses: code, state and the threads' arenas. A call in flight keeps it, and with it the library."""

    def __init__(self, shared: SharedObject, manifest: Manifest, folder: TemporaryFolder | None):
        self.folder = folder
        self.shared = shared
        name = manifest.name
        self._outputs = [(port.shape, np.dtype(port.dtype)) for port in manifest.interface.outputs]
        self._arena_bytes = manifest.arena_bytes
        self._run = self.shared.function(f"{name}_run")
        self._arena_size: Any = None
        if is_symbolic(manifest.arena_bytes):
            self._arena_size = self.shared.function(f"{name}_arena_size")
            self._arena_size.restype = ctypes.c_int64
        self._sizes_ok: Any = None
        if manifest.interface.symbols:
            self._sizes_ok = self.shared.test(f"{name}_sizes_ok")
        self._local = threading.local()
        self._lock = threading.Lock()
        self._state: list[Any] = []
        self._plans: dict[tuple[int, ...], _Plan] = {}
        if manifest.state_bytes:
            self._state_memory, address = _aligned(manifest.state_bytes)
            begin = address.value - self._state_memory.ctypes.data
            self._state_view = self._state_memory[begin : begin + manifest.state_bytes]
            self._state_view[...] = 0
            self._state = [address]
            self._init = self.shared.function(f"{name}_init")
            self.reset()

    def reset(self) -> None:
        if self._state:
            with self._lock:
                self._init(*self._state)

    def state(self) -> bytes:
        if not self._state:
            return b""
        with self._lock:
            return self._state_view.tobytes()

    def set_state(self, state: bytes) -> None:
        if self._state:
            with self._lock:
                self._state_view[...] = np.frombuffer(state, np.uint8)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        try:
            arena = self._local.address
        except AttributeError:
            arena = self._new_arena(self._arena_bytes, [shape for shape, _ in self._outputs])
        outputs: list[Array] = [np.empty(shape, dtype) for shape, dtype in self._outputs]
        self._call(*map(_pointer, inputs), *map(_pointer, outputs), *self._state, arena)
        return outputs

    def run_at(self, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
        key = tuple(sizes.values())
        plan = self._plans.get(key) or self._new_plan(key, sizes)
        if plan.arena_bytes > getattr(self._local, "bytes", -1):
            self._new_arena(plan.arena_bytes, plan.shapes)
        outputs: list[Array] = [
            np.empty(shape, dtype) for shape, (_, dtype) in zip(plan.shapes, self._outputs, strict=True)
        ]
        pointers = [*map(_pointer, inputs), *map(_pointer, outputs)]
        self._call(*plan.numbers, *pointers, *self._state, self._local.address)
        return outputs

    def _new_plan(self, key: tuple[int, ...], sizes: Mapping[str, int]) -> _Plan:
        shapes = [tuple(substitute(size, sizes) for size in shape) for shape, _ in self._outputs]
        plan = _Plan(substitute(self._arena_bytes, sizes), shapes, [ctypes.c_int64(size) for size in key])
        if self._sizes_ok is not None and not self._sizes_ok(*plan.numbers):
            at = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
            raise QcompError(f"the compiled program does not take the sizes {at}", code="input")
        if self._arena_size is not None and self._arena_size(*plan.numbers) != plan.arena_bytes:
            raise damaged("arena_bytes is not what the library says")
        if len(self._plans) < MOST_PLANS:
            self._plans[key] = plan
        return plan

    def _call(self, *arguments: Any) -> None:
        """NAME_run; calls that change the state one after the other."""
        if self._state:
            with self._lock:
                self._run(*arguments)
        else:
            self._run(*arguments)

    def _new_arena(self, size: int, shapes: Sequence[tuple[int, ...]]) -> ctypes.c_void_p:
        """An arena for this thread. Raises QcompError where a call with outputs of `shapes` finds too little memory."""
        outputs = sum(
            math.prod(shape) * dtype.itemsize for shape, (_, dtype) in zip(shapes, self._outputs, strict=True)
        )
        require_memory(size + outputs, f"a call, its arena of {size} bytes and outputs of {outputs},")
        memory, address = _aligned(size)
        self._local.bytes, self._local.memory, self._local.address = size, memory, address
        return address


def _aligned(size: int) -> tuple[Array, Any]:
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
