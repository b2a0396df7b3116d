# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared libraries that are unloaded when nothing refers to them."""

from __future__ import annotations

import ctypes
import os
import shutil
import weakref
from pathlib import Path
from typing import Any

from qcomp.backend.folder import TemporaryFolder
from qcomp.errors import QcompError

_WINDOWS = os.name == "nt"


class SharedObject:
    """The shared library at `path`, loaded. Whoever calls its functions holds this object meanwhile.

    It is loaded under a name of its own: the loader takes an earlier library of the same path for the same one.
    Raises QcompError when it cannot be loaded.
    """

    def __init__(self, path: Path):
        folder = TemporaryFolder()
        link = folder.path / path.name
        try:
            if _WINDOWS:  # Links need a privilege there, and a loaded file stays in place until it is unloaded.
                shutil.copyfile(path, link)
            else:
                os.symlink(path.resolve(), link)
            self._library = ctypes.CDLL(str(link))
        except OSError as problem:
            raise QcompError(f"{path.name} cannot be loaded: {problem}", code="load") from None
        finally:
            if not _WINDOWS:
                folder.remove()
        handle: int = self._library._handle
        # Not at exit: threads may be in a call until the very end.
        weakref.finalize(self, _unload, handle, folder).atexit = False

    def function(self, name: str) -> Any:
        """The function `name`, which returns nothing. Raises QcompError when there is none."""
        found = getattr(self._library, name, None)
        if found is None:
            raise QcompError(f"the library has no function {name}", code="load")
        found.restype = None
        return found

    def test(self, name: str) -> Any:
        """The function `name`, which returns 1 or 0; None in libraries of before there was one."""
        found = getattr(self._library, name, None)
        if found is not None:
            found.restype = ctypes.c_int
        return found

    def text(self, name: str) -> str | None:
        """The constant string `name`; None when there is none."""
        try:
            first = ctypes.c_char.in_dll(self._library, name)
        except ValueError:
            return None
        return ctypes.string_at(ctypes.addressof(first)).decode("ascii", "replace")


def _unload(handle: int, folder: TemporaryFolder) -> None:
    import _ctypes  # the one way that Python offers

    library: Any = _ctypes
    if _WINDOWS:
        library.FreeLibrary(handle)
        folder.remove()
    else:
        library.dlclose(handle)
