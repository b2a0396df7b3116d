# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cannot be imported, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qcomp.errors import QcompError

_MAX_PLACES = 4
_MAX_KINDS = 40


@dataclass(frozen=True)
class Refusal:
    """One op that cannot be imported: its target, why, where it stands (may be empty), and what to do about it."""

    target: str
    reason: str
    location: str
    hint: str | None = None


def refusal_error(refusals: Sequence[Refusal]) -> QcompError:
    """One error for all `refusals`, equal ones counted together."""
    groups: dict[tuple[str, str, str | None], list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.target, refusal.reason, refusal.hint), []).append(refusal)
    lines = [_line(key, found) for key, found in list(groups.items())[:_MAX_KINDS]]
    if len(groups) > _MAX_KINDS:
        lines.append(f"  and {len(groups) - _MAX_KINDS} more kinds")
    count = len(refusals)
    first = refusals[0]
    return QcompError(
        f"{count} op{'s' if count != 1 else ''} of the program cannot be imported:\n" + "\n".join(lines),
        code="unsupported-op",
        op=_printable(first.target),
    )


def _printable(text: str | None) -> str:
    """`text` on one line without control characters: targets and names come from files."""
    return "".join(char if char.isprintable() else "?" for char in (text or "")[:1000])


def _line(key: tuple[str, str, str | None], found: Sequence[Refusal]) -> str:
    target, reason, hint = (_printable(part) for part in key)
    places = list(dict.fromkeys(_printable(refusal.location) for refusal in found if refusal.location))
    shown = ", ".join(places[:_MAX_PLACES]) + (", ..." if len(places) > _MAX_PLACES else "")
    text = f"  {target} x{len(found)}: {reason}"
    return text + (f"; at {shown}" if shown else "") + (f" (hint: {hint})" if hint else "")
