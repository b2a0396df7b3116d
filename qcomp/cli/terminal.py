# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Progress on a terminal: one line on stderr that is written over and goes at the end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from qcomp import progress

_INTERVAL = 0.1
"""Seconds between two updates of a counted step."""


class ProgressLine:
    """Writes the current step over the one before."""

    def __init__(self) -> None:
        self._name = ""
        self._latest = 0.0
        self._width = 0

    def __call__(self, name: str, number: int, total: int) -> None:
        now = time.monotonic()
        if name == self._name and number != total and now - self._latest < _INTERVAL:
            return
        self._name, self._latest = name, now
        count = f" {number}/{total}" if total else f" {number}" if number else ""
        text = f"{name}{count} ..."[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Wipe the line."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._name, self._width = "", 0


_shown: ContextVar[ProgressLine | None] = ContextVar("progress line", default=None)


def clear_progress() -> None:
    """Wipe the line, if one is shown: what is printed next stands in its place."""
    line = _shown.get()
    if line is not None:
        line.clear()


@contextmanager
def progress_line(quiet: bool) -> Generator[None]:
    """Show the progress of what runs within, where stderr is a terminal and nobody asked for quiet."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    line = ProgressLine()
    token = _shown.set(line)
    try:
        with progress.listening(line):
            yield
    finally:
        line.clear()
        _shown.reset(token)
