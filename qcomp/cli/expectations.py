# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``--verify-diagnostics``: the diagnostics a file announces against those that came.

A comment ``// expected-error@+1 {{text}}`` announces an error one line below whose message contains `text`. Also
``expected-remark`` and ``expected-warning``; ``@above``, ``@below``, ``@-2``, ``@unknown`` (no line known), or nothing
for the comment's own line; ``expected-error-re`` where `text` holds regular expressions in ``{{...}}`` of MLIR's kind,
written ``{{a is not {{.*}} b}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from qcomp.cli.diagnostics import Diagnostic

_ANNOTATION = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)(?P<re>-re)?\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*"
    r"\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Expectation:
    """A diagnostic of `kind` that should come at `line` (None: one without a line) with a message that `matches`."""

    kind: str
    line: int | None
    text: str
    pattern: re.Pattern[str]
    stands_at: int

    def matches(self, diagnostic: Diagnostic, file: str) -> bool:
        """Whether `diagnostic` is the announced one; lines of other files count as unknown."""
        line = diagnostic.line if diagnostic.file == file else None
        return (self.kind, self.line) == (diagnostic.kind, line) and self.pattern.search(diagnostic.message) is not None


def parse_expectations(text: str, line_offset: int = 0) -> list[Expectation]:
    """The annotations in `text`, whose first line has number `line_offset` + 1 in its file."""
    found: list[Expectation] = []
    for number, line in enumerate(text.splitlines(), line_offset + 1):
        if (match := _ANNOTATION.search(line)) is None:
            continue
        pattern = _regular(match["text"]) if match["re"] else re.escape(match["text"])
        line_meant = _line(match["where"], number)
        found.append(Expectation(match["kind"], line_meant, match["text"], re.compile(pattern), number))
    return found


def check(expected: Iterable[Expectation], came: Iterable[Diagnostic], file: str) -> list[Diagnostic]:
    """What is wrong: an error for each diagnostic that nothing announced and each announced one that did not come."""
    open_expectations = list(expected)
    problems: list[Diagnostic] = []
    for diagnostic in came:
        match = next((item for item in open_expectations if item.matches(diagnostic, file)), None)
        if match is not None:
            open_expectations.remove(match)
        else:
            problems.append(
                Diagnostic(
                    f"unexpected {diagnostic.kind}: {diagnostic.message}",
                    "error",
                    diagnostic.file,
                    diagnostic.line,
                    diagnostic.column,
                )
            )
    for item in open_expectations:
        where = "without a line" if item.line is None else f"at line {item.line}"
        text = f'expected {item.kind} "{item.text}" {where} was not produced'
        problems.append(Diagnostic(text, "error", file, item.stands_at))
    return problems


def _line(where: str | None, number: int) -> int | None:
    if where is None:
        return number
    if where == "unknown":
        return None
    return number + {"above": -1, "below": 1}[where] if where in ("above", "below") else number + int(where)


def _regular(text: str) -> str:
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(part if at % 2 else re.escape(part) for at, part in enumerate(parts))
