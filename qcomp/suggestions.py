# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hints about names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, choices: Iterable[str], otherwise: str | None = None) -> str:
    """Return the hint about `name`, which is none of `choices`: those that look like it.

    otherwise: the hint when none does; by default it lists them all.
    """
    known = list(dict.fromkeys(choices))
    # Letter case is no difference to a person.
    lower = {choice.lower(): choice for choice in reversed(known)}
    close = difflib.get_close_matches(name.lower(), lower, 3)
    if close:
        return f"did you mean {' or '.join(lower[choice] for choice in close)}?"
    return otherwise if otherwise is not None else f"one of {', '.join(known)}"
