# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one exception that qcomp raises for bad input, unsupported programs and broken promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Operation


class QcompError(Exception):
    """A problem a user can act on.

    code: short stable identifier, e.g. ``unsupported-op``; op: the name of the op or value concerned;
    location: ``module.path (file.py:12)`` or None; hint: what to do about it.
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
        self.message = message
        self.code = code
        self.op = op
        self.location = location
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        text = self.message
        if self.op and self.op not in text:
            text = f"{self.op}: {text}"
        if self.location:
            text = f"{self.location}: {text}"
        return f"{text} (hint: {self.hint})" if self.hint else text

    @staticmethod
    def at(op: Operation, message: str, *, code: str = "error", hint: str | None = None) -> QcompError:
        """The error about an IR op: its name and source location are filled in."""
        from qcomp.dialects.location import describe

        return QcompError(message, code=code, op=op.name, location=describe(op.location), hint=hint)
