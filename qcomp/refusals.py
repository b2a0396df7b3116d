# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of a program is not supported, all at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qcomp.errors import QcompError

_MAX_PLACES = 4
_MAX_KINDS = 40
_PLACE = re.compile(r"(?:(?P<module>.*) \()?(?P<file>[^()]+?):(?P<line>\d{1,9})\)?")


@dataclass(frozen=True)
class Refusal:
    """One op that is not supported: its name, why, where it stands (may be empty), and what to do about it.

    stage: what refused it: ``import``, ``pass``, ``lower`` (to loops) or ``emit`` (as C).
    """

    target: str
    reason: str
    location: str
    hint: str | None = None
    stage: str = "import"


@dataclass(frozen=True)
class Place:
    """Where an op stands: dotted module path, file and line; what is not known is None."""

    module: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True)
class RefusedKind:
    """Equal refusals counted together; `places` are distinct, in order."""

    op: str
    stage: str
    count: int
    reason: str
    hint: str | None
    places: tuple[Place, ...]


class RefusalError(QcompError):
    """An error that lists several ops."""

    def __init__(self, refusals: Sequence[Refusal], what: str, code: str):
        kinds = refused_kinds(refusals)
        lines = [_line(kind) for kind in kinds[:_MAX_KINDS]]
        if len(kinds) > _MAX_KINDS:
            lines.append(f"  and {len(kinds) - _MAX_KINDS} more kinds")
        self.refusals = tuple(refusals)
        count = f"{len(refusals)} op{'s' if len(refusals) != 1 else ''}"
        super().__init__(f"{count} of the program {what}:\n" + "\n".join(lines), code=code, op=kinds[0].op)


def refusal_error(refusals: Sequence[Refusal], what: str = "cannot be imported") -> RefusalError:
    """One error for all `refusals`, equal ones counted together."""
    return RefusalError(refusals, what, "unsupported-op")


def refusal_of(error: QcompError, stage: str) -> Refusal:
    """An error about one op as a refusal."""
    return Refusal(error.op or "program", error.message, error.location or "", error.hint, stage)


def refused_kinds(refusals: Sequence[Refusal]) -> list[RefusedKind]:
    """Equal refusals together, in order of first appearance. Texts come from files: they are made printable."""
    groups: dict[tuple[str, str, str, str | None], list[Refusal]] = {}
    for refusal in refusals:
        key = (refusal.target, refusal.stage, refusal.reason, refusal.hint)
        groups.setdefault(key, []).append(refusal)
    return [
        RefusedKind(
            printable(op), stage, len(found), printable(reason), None if hint is None else printable(hint),
            tuple(_place(text) for text in dict.fromkeys(refusal.location for refusal in found) if text),
        )
        for (op, stage, reason, hint), found in groups.items()
    ]  # fmt: skip


def printable(text: str) -> str:
    """`text` on one line, of sane length, without control characters."""
    return "".join(char if char.isprintable() else "?" for char in text[:1000])


def _place(text: str) -> Place:
    text = printable(text)
    found = _PLACE.fullmatch(text)
    if found is None:
        return Place(text, None, None)
    return Place(found["module"] or None, found["file"], int(found["line"]))


def place_text(place: Place) -> str:
    """``layer1.0 (model.py:12)``."""
    line = f"{place.file}:{place.line}" if place.file else ""
    return f"{place.module} ({line})" if place.module and line else place.module or line


def _line(kind: RefusedKind) -> str:
    shown = ", ".join(map(place_text, kind.places[:_MAX_PLACES])) + (", ..." if len(kind.places) > _MAX_PLACES else "")
    text = f"  {kind.op} x{kind.count}: {kind.reason}"
    return text + (f"; at {shown}" if shown else "") + (f" (hint: {kind.hint})" if kind.hint else "")
