# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that only the deep run makes: `pytest -m deep`; .ci/run makes it on every change, `pytest` alone does not.

A test is marked so where another case of the same test shows the same kind of fault in less time.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest


def except_for(every_run: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Return parameters for all `cases`; those not in `every_run` are deep."""
    return [case if case in every_run else _deep(case) for case in cases]


def in_turn(names: Iterable[Any], targets: Sequence[str]) -> list[Any]:
    """Return (name, target) for all pairs; each name's turn in every run is on one of the targets, the rest is deep."""
    turns = itertools.cycle(targets)
    pairs: list[Any] = []
    for name in names:
        now = next(turns)
        pairs += [(name, target) if target == now else _deep(name, target) for target in targets]
    return pairs


def _deep(*values: Any) -> Any:
    """Return the parameters `values`, a tuple of them if there is only one."""
    if len(values) == 1 and isinstance(values[0], tuple):
        values = values[0]
    return pytest.param(*values, marks=pytest.mark.deep)
