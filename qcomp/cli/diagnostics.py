# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One-line messages, ``file:line:col: error: text``, made from any exception or from an op."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, LocationAttr, NameLoc
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, MultipleSpansParseError, ParseError

from qcomp.dialects.plugins import blame
from qcomp.errors import QcompError, plain

_PLACE = re.compile(r"(?:(?P<path>.*) \()?(?P<file>[^()]+?):(?P<line>\d+)(?::(?P<column>\d+))?\)?")
"""What `qcomp.dialects.location.describe` prints: ``module.path (file.py:12)``, or ``file.py:12``; or with a column."""


@dataclass(frozen=True)
class Diagnostic:
    """A message about a place in a file; `line` and `column` count from 1, None when unknown."""

    message: str
    kind: str = "error"
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return plain(f"{place}: {self.kind}: {self.message}" if place else f"{self.kind}: {self.message}")


class LocatedError(Exception):
    """An error with everything its message needs; raised in place of exceptions that lack the op or the pass.

    exit_code: what it ends a tool with.
    """

    def __init__(self, diagnostic: Diagnostic, exit_code: int = 1):
        self.diagnostic = diagnostic
        self.exit_code = exit_code
        super().__init__(str(diagnostic))


_EXPECTED = (LocatedError, QcompError, ParseError, DiagnosticException, OSError, UnicodeDecodeError)


def is_expected(error: BaseException) -> bool:
    """Whether `error` is about the input; every other exception is a fault of the program."""
    return isinstance(error, _EXPECTED)


def from_exception(error: BaseException, op: Operation | None = None) -> Diagnostic:
    """The diagnostic of `error`, which happened at `op` if that is known."""
    if isinstance(error, LocatedError):
        return error.diagnostic
    if isinstance(error, ParseError):
        place = error.span.get_location()
        return Diagnostic(_parse_message(error), "error", place.file, place.line, place.col)
    if isinstance(error, QcompError) and op is None:
        return _from_qcomp_error(error)
    if isinstance(error, OSError) and error.filename is not None:
        return Diagnostic(f"{error.filename}: {error.strerror}")
    return at_op(op, _message(error))


def at_op(op: Operation | None, message: str, kind: str = "error") -> Diagnostic:
    """A diagnostic at the source position of `op`, which its message names."""
    if op is None:
        return Diagnostic(one_line(message), kind)
    path, place = locate(op.location)
    text = message if op.name in message else f"'{op.name}': {message}"
    if path and path not in text:
        text = f"{path}: {text}"
    if place is None:
        return Diagnostic(one_line(text), kind)
    return Diagnostic(one_line(text), kind, place.filename.data, place.line.data, place.column.data)


def locate(location: LocationAttr) -> tuple[str | None, FileLineColLoc | None]:
    """The module path and the file position that `location` holds; the first of a fused one."""
    if isinstance(location, FileLineColLoc):
        return None, location
    if isinstance(location, NameLoc):
        inner = locate(location.location) if isinstance(location.location, LocationAttr) else (None, None)
        return location.desc.data, inner[1]
    if isinstance(location, FusedLoc):
        parts = [locate(part) for part in cast(ArrayAttr[LocationAttr], location.locations)]
        return next((found for found in parts if found != (None, None)), (None, None))
    return None, None


def one_line(text: str) -> str:
    """`text` with its line breaks taken out."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def _message(error: BaseException) -> str:
    text = one_line(str(error))
    if is_expected(error):
        return text or type(error).__name__
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, MemoryError):
        return f"needs more memory than there is{': ' * bool(text)}{text}"
    if (culprit := blame(error)) is not None:
        return culprit
    return f"internal error: {type(error).__name__}: {text}"


def _parse_message(error: ParseError) -> str:
    if isinstance(error, MultipleSpansParseError) and error.ref_text is not None:
        lines = ", ".join(str(span.get_location().line) for span, _ in error.refs)
        return one_line(f"{error.msg}; {error.ref_text} line {lines}")
    return one_line(error.msg)


def _from_qcomp_error(error: QcompError) -> Diagnostic:
    text = error.message.strip()  # may be a list of several lines
    if error.op and error.op not in text:
        text = f"{error.op}: {text}"
    if error.hint:
        text = f"{text} (hint: {error.hint})"
    return at_description(error.location, text)


def at_description(location: str | None, text: str, kind: str = "error") -> Diagnostic:
    """A diagnostic at `location`, which is what `qcomp.dialects.location.describe` printed."""
    if location is None:
        return Diagnostic(text, kind)
    place = _PLACE.fullmatch(location)
    if place is None:
        return Diagnostic(f"{location}: {text}", kind)
    if place["path"]:
        text = f"{place['path']}: {text}"
    column = int(place["column"]) if place["column"] else None
    return Diagnostic(text, kind, place["file"], int(place["line"]), column)
