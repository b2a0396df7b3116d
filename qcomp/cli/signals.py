# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ends of a command by Ctrl-C or SIGTERM: everything is tidied up, one line says so, the exit code is the shell's.

The signal is raised as an exception in the main thread, so that `finally` and exit handlers do what they do otherwise.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

_TEXTS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated: the terminal was closed"}
_DEAF_SECONDS = 1.0
"""Time after a signal in which another one is not heard: it would end the tidying."""


class Ended(BaseException):
    """A signal asks for the end of the process."""

    def __init__(self, number: int):
        self.number = number
        super().__init__(number)


def ends_on_signals(main: Callable[[Sequence[str] | None], int]) -> Callable[..., int]:
    """Let a signal end `main` with one line and the exit code 128 + its number, 130 for Ctrl-C and 143 for SIGTERM."""

    @functools.wraps(main)
    def run(args: Sequence[str] | None = None) -> int:
        try:
            with _signals_raise():
                return main(args)
        except KeyboardInterrupt:
            number = int(signal.SIGINT)
        except Ended as end:
            number = end.number
        if args is None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # The process ends; a second Ctrl-C has nothing to add.
        sys.stderr.write(f"error: {_TEXTS[signal.Signals(number).name]}\n")
        return 128 + number

    return run


@contextmanager
def _signals_raise() -> Generator[None]:
    """Raise `Ended` or KeyboardInterrupt for signals that nobody else handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}
    heard = -_DEAF_SECONDS

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        now = time.monotonic()
        if now - heard < _DEAF_SECONDS:
            return
        heard = now
        raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)

    for name in _TEXTS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
