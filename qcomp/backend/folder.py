# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders that come and go whole."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from qcomp.errors import QcompError
from qcomp.limits import MAX_MANIFEST_BYTES
from qcomp.reading import read_bytes
from qcomp.writing import make_temporary_folder, writing

JOURNAL = ".qcomp-replacing"
"""File in a folder whose files are being replaced: the names of all that may go."""
_CHUNK = 1 << 20
_ABANDONED_SECONDS = 60
"""Age from which a temporary folder without a lock is taken for one of a process that was killed."""


class TemporaryFolder:
    """A folder that is made when `path` is asked for, and goes with this object, with the process at the latest.

    A process that was forked from the one that made it leaves the folder alone.
    """

    def __init__(self) -> None:
        self._finalizer: Callable[[], object] | None = None
        self._held: dict[str, int] = {}

    @cached_property
    def path(self) -> Path:
        """Where it is."""
        path = Path(make_temporary_folder())
        self._finalizer = weakref.finalize(self, _remove, path, os.getpid())
        return path

    def remove(self) -> None:
        """Remove the folder now."""
        if self._finalizer is not None:
            self._finalizer()

    @contextmanager
    def removed_on_error(self) -> Generator[None]:
        """Remove the folder when the block ends by an error: its traceback keeps this object."""
        try:
            yield
        except BaseException:
            self.remove()
            raise

    def hold(self, names: Iterable[str]) -> None:
        """Remove the folder now; `copy` still has the files `names`, which no end of the process leaves behind.

        The folder stays where the system keeps no removed files open, or no more files at all.
        """
        if os.name != "posix":
            return
        held: dict[str, int] = {}
        weakref.finalize(self, _close, held).atexit = False
        try:
            for name in names:
                held[name] = os.open(self.path / name, os.O_RDONLY)
        except OSError:
            _close(held)
            return
        self._held = held
        self.remove()

    def copy(self, name: str, target: Path) -> None:
        """Copy the file `name` to `target`."""
        if name not in self._held:
            shutil.copyfile(self.path / name, target)
            return
        with open(target, "wb") as file:
            while chunk := os.pread(self._held[name], _CHUNK, file.tell()):
                file.write(chunk)


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)


def _close(held: dict[str, int]) -> None:
    while held:
        os.close(held.popitem()[1])


@contextmanager
def replace_folder(target: Path, key: str, owned: Callable[[Path], Iterable[str]]) -> Generator[Path]:
    """A new folder beside `target` to write into, which takes its place at the end.

    An existing `target` must be empty or one of ours: it holds the file `key`, or the journal of a replacement that
    was interrupted. The files that it `owned` are replaced, `key` being removed first and put back last, and all
    others stay. Raises QcompError otherwise. What killed processes left beside `target` is removed.
    """
    target = Path(os.path.realpath(target))
    if target.exists() and not target.is_dir():
        raise QcompError(f"{target} is a file", code="output", hint="choose another folder")
    if target.is_dir() and any(target.iterdir()) and not any((target / name).is_file() for name in (key, JOURNAL)):
        raise QcompError(f"{target} holds other files", code="output", hint="choose a new folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as problem:
        reason = f"{target.parent} is a file" if target.parent.is_file() else problem.strerror
        text = f"cannot make the folder {target}: {reason}"
        raise QcompError(text, code="output", hint="choose another folder") from None
    lock = _lock(partial)
    try:
        with writing(target):
            yield partial
            _like_a_new_folder(partial)
            if target.is_dir():
                _replace_files(partial, target, key, owned(target))
            else:
                os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def was_interrupted(folder: Path) -> bool:
    """Whether `folder` holds the rest of a replacement that did not end."""
    return (folder / JOURNAL).exists()


def _like_a_new_folder(folder: Path) -> None:
    """Temporary folders are private; this one gets the mode of any new folder."""
    plain = folder / "mode"
    plain.mkdir()
    os.chmod(folder, plain.stat().st_mode)
    plain.rmdir()


def _replace_files(source: Path, target: Path, key: str, old: Iterable[str]) -> None:
    """Move the files of `source` over those that `target` owned. Killed at any point, it can be done again."""
    new = sorted(source.iterdir(), key=lambda path: path.name == key)
    going = [*dict.fromkeys([*old, *_journal(target)])]
    (target / JOURNAL).write_text(json.dumps([*going, *(path.name for path in new)]), encoding="utf-8")
    for name in (key, *going):
        (target / name).unlink(missing_ok=True)
    for path in new:
        os.replace(path, target / path.name)
    (target / JOURNAL).unlink()


def _journal(target: Path) -> list[str]:
    """The files that an interrupted replacement was about to remove or to write: plain names only.

    None where the journal was not written to its end: nothing had been removed then.
    """
    try:
        found: Any = json.loads(read_bytes(target / JOURNAL, ("MAX_MANIFEST_BYTES", MAX_MANIFEST_BYTES)))
    except (OSError, ValueError, RecursionError, QcompError):
        return []
    names = cast("list[object]", found) if isinstance(found, list) else []
    return [name for name in names if isinstance(name, str) and _is_plain(name)]


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and Path(name).name == name and name.isprintable()


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary folders for `target` that killed processes left: old, and no process holds their lock."""
    for partial in target.parent.iterdir():
        name = partial.name
        if not (name.startswith(f".{target.name}.") and name.endswith(".partial") and partial.is_dir()):
            continue
        lock = _lock(partial)
        if lock is not None:
            if time.time() - partial.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(partial, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """A lock on `folder` that ends with the process, as a file descriptor; None where there is none to have."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
