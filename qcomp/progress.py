# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Progress of long work, for whoever listens: the command line on a terminal, nobody otherwise."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int], None]
"""Called with the step that begins, and when it is counted its number from 1 and how many there are, else 0 and 0."""

T = TypeVar("T")
_listener: ContextVar[Listener | None] = ContextVar("progress", default=None)


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Call `listener` at every step within."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def step(name: str, number: int = 0, total: int = 0) -> None:
    """Tell that a step begins."""
    listener = _listener.get()
    if listener is not None:
        listener(name, number, total)


def counted(name: str, items: Iterable[T]) -> Iterator[T]:
    """Yield `items`; each is a step."""
    total = len(items) if isinstance(items, Sized) else 0
    for number, item in enumerate(items, 1):
        step(name, number, total)
        yield item
