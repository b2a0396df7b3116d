# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders that come and go whole."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from qcomp.errors import QcompError


class TemporaryFolder:
    """A folder that goes when nothing refers to this object, and with the process at the latest."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="qcomp-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@contextmanager
def replace_folder(target: Path, key: str, owned: Callable[[Path], Iterable[str]]) -> Generator[Path]:
    """A new folder beside `target` to write into, which takes its place at the end.

    An existing `target` must be empty or hold the file `key`, which makes it one of ours: the files that it `owned`
    are replaced, `key` being removed first and put back last, and all others stay. Raises QcompError otherwise.
    """
    target = Path(os.path.realpath(target))
    if target.exists() and not target.is_dir():
        raise QcompError(f"{target} is a file", code="output", hint="choose another folder")
    if target.is_dir() and any(target.iterdir()) and not (target / key).exists():
        raise QcompError(f"{target} holds other files", code="output", hint="choose a new folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as problem:
        reason = f"{target.parent} is a file" if target.parent.is_file() else problem.strerror
        text = f"cannot make the folder {target}: {reason}"
        raise QcompError(text, code="output", hint="choose another folder") from None
    try:
        yield partial
        _like_a_new_folder(partial)
        if target.is_dir():
            _replace_files(partial, target, key, owned(target))
        else:
            os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _like_a_new_folder(folder: Path) -> None:
    """Temporary folders are private; this one gets the mode of any new folder."""
    plain = folder / "mode"
    plain.mkdir()
    os.chmod(folder, plain.stat().st_mode)
    plain.rmdir()


def _replace_files(source: Path, target: Path, key: str, old: Iterable[str]) -> None:
    for name in (key, *old):
        (target / name).unlink(missing_ok=True)
    for path in sorted(source.iterdir(), key=lambda path: path.name == key):
        os.replace(path, target / path.name)
