# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large arrays on disk in place of memory: a model's weights, packed for its kernels, are as large as the model.

    with spooled_to(lambda: folder):
        kept = spooled(array)  # the same elements, mapped from a file of `folder`

Nothing is written where no folder is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import BinaryIO

import numpy as np

from qcomp.dialects.constant import Array
from qcomp.writing import writing

LEAST_BYTES = 1 << 20
"""Smaller arrays stay in memory."""
_CHUNK = 1 << 20
_PREFIX = "constant"
_folder: ContextVar[Callable[[], Path] | None] = ContextVar("spool_folder", default=None)
_numbers = count()


@contextmanager
def spooled_to(folder: Callable[[], Path]) -> Generator[None]:
    """Let `spooled` write to files of `folder`, which is made when it is needed and lives as long as the arrays."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def spooled(array: Array) -> Array:
    """Return the elements of `array`, which is in one piece, from a file when there is a folder for it."""
    folder = _folder.get()
    if folder is None or array.nbytes < LEAST_BYTES:
        return array
    path = folder() / f"{_PREFIX}{next(_numbers)}.bin"
    with writing(path), open(path, "wb") as file:
        file.write(array.reshape(-1).data.cast("B"))
    return np.memmap(path, array.dtype, "r", shape=array.shape)


def has_spooled(folder: Path) -> bool:
    """Return whether arrays have files in `folder`."""
    return any(folder.glob(f"{_PREFIX}*.bin"))


def write_array(array: Array, file: BinaryIO) -> None:
    """Append the bytes of `array`, which is in one piece; those of a file do not pass through memory as a whole."""
    path = _file_of(array)
    if path is None:
        file.write(array.reshape(-1).data.cast("B") if array.size else b"")
        return
    with open(path, "rb") as source:
        while chunk := source.read(_CHUNK):
            file.write(chunk)


def _file_of(array: Array) -> Path | None:
    """The file that holds `array` and nothing else, if there is one still."""
    base: object = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.nbytes != array.nbytes or base.filename is None:
        return None
    path = Path(os.fsdecode(base.filename))
    return path if path.is_file() and path.stat().st_size == array.nbytes else None
