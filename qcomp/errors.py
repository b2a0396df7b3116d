# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one exception that qcomp raises for bad input, unsupported programs and broken promises; its warnings."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Operation


def plain(text: str) -> str:
    """`text` without control characters but line breaks: messages quote names and texts from files."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


class QcompError(Exception):
    """A problem a user can act on.

    code: short stable identifier, e.g. ``unsupported-op``; op: the name of the op or value concerned;
    location: ``module.path (file.py:12)`` or None; hint: what to do about it. Control characters become ``?``.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        op: str | None = None,
        location: str | None = None,
        hint: str | None = None,
    ):
        self.message = plain(message)
        self.code = code
        self.op = None if op is None else plain(op)
        self.location = None if location is None else plain(location)
        self.hint = None if hint is None else plain(hint)
        super().__init__(str(self))

    def __str__(self) -> str:
        text = self.message
        if self.op and self.op not in text:
            text = f"{self.op}: {text}"
        if self.location:
            text = f"{self.location}: {text}"
        return f"{text} (hint: {self.hint})" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the constructor, whose parameters differ: workers hand errors to who started them."""
        return _unpickled, (type(self), self.args, self.__dict__)

    @staticmethod
    def at(op: Operation, message: str, *, code: str = "error", hint: str | None = None) -> QcompError:
        """The error about an IR op: its name and source location are filled in."""
        from qcomp.dialects.location import describe

        return QcompError(message, code=code, op=op.name, location=describe(op.location), hint=hint)


def _unpickled(kind: type[QcompError], args: tuple[object, ...], state: dict[str, object]) -> QcompError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def warn(text: str) -> None:
    """Warn at the line of the user's code that called qcomp, however deep inside the reason is found."""
    import inspect

    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "qcomp":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
