# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write files whole or not at all; errors say which file, what the system says and what to do."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

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


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a new path beside `path`; what the block writes there takes the place of `path` when it ends well."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with writing(path):
        try:
            yield partial
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write `content` to `path` as a whole; a device or pipe is written as it is."""
    data = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    if not target.parent.exists():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    with replacing(target) as partial:
        partial.write_bytes(data)


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
