# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of writing files: which file, what the system says, and what to do. The system itself names no full disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress

from qcomp.errors import QcompError

TEMPORARY_HINT = "free space there, or set TMPDIR to another folder"


class WriteError(QcompError, OSError):
    """A file that cannot be written; an `OSError` as well, for callers who handle those."""


@contextmanager
def writing(place: str | os.PathLike[str]) -> Generator[None]:
    """Raise `WriteError` about the file or folder `place` where the system refuses to write."""
    try:
        yield
    except WriteError:
        raise
    except OSError as problem:
        path = os.fspath(place)
        hint = TEMPORARY_HINT if _is_temporary(path) else "free space there, or choose another folder"
        raise WriteError(f"cannot write {path}: {problem.strerror or problem}", code="output", hint=hint) from None


def make_temporary_folder() -> str:
    """Make a folder for temporary files. Raises `WriteError` where there is no place for one."""
    try:
        return tempfile.mkdtemp(prefix="qcomp-")
    except OSError as problem:
        text = f"cannot make a folder for temporary files: {problem.strerror or problem}"
        raise WriteError(text, code="output", hint=TEMPORARY_HINT) from None


def _is_temporary(path: str) -> bool:
    with suppress(OSError, ValueError):
        return os.path.relpath(path, tempfile.gettempdir()).startswith("qcomp-")
    return False
