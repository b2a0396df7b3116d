# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hints about names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_LETTERS = 80
"""Names are compared up to here: a hostile one may be long."""


def did_you_mean(name: str, choices: Iterable[str], otherwise: str | None = None) -> str:
    """Return the hint about `name`, which is none of `choices`: those that look like it.

    otherwise: the hint when none does; by default it lists them all.
    """
    known = list(dict.fromkeys(choices))
    close = close_names(name, known)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return otherwise if otherwise is not None else f"one of {', '.join(known)}"


def close_names(name: str, choices: Iterable[str]) -> list[str]:
    """Return the up to three of `choices` that look most like `name`; letter case is no difference to a person."""
    lower: dict[str, str] = {}
    for choice in choices:
        lower.setdefault(choice.lower(), choice)
    text = name.lower()[:MOST_LETTERS]
    close = difflib.get_close_matches(text, lower, 3)
    likeness = [difflib.SequenceMatcher(None, choice, text).ratio() for choice in close]
    return [lower[choice] for choice, ratio in zip(close, likeness, strict=True) if ratio > likeness[0] - 0.1]
