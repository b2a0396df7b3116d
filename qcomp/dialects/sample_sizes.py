# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small sizes for the symbols of a program that its ranges and guards allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from qcomp.dialects.binding import Symbol
from qcomp.dialects.guard import Guard
from qcomp.errors import QcompError

STEPS = 64
"""So far from the wanted sizes others are looked for, of all symbols together."""
MAX_TRIES = 4096
"""Combinations that are tried after that, in boxes around the wanted sizes that grow."""


def sample_sizes(symbols: Sequence[Symbol], guards: Sequence[Guard], wanted: Mapping[str, int]) -> dict[str, int]:
    """Sizes of all symbols: those `wanted` where ranges and guards allow them, else near ones, larger or no smaller.

    Raises QcompError when none are found.
    """
    for sizes in _candidates(symbols, wanted):
        if all(guard.holds(sizes) for guard in guards):
            return sizes
    raise QcompError("the program works for no small sizes", code="input")


def _candidates(symbols: Sequence[Symbol], wanted: Mapping[str, int]) -> Iterator[dict[str, int]]:
    for step in range(STEPS):
        yield {each.name: _within(each, wanted[each.name] + step) for each in symbols}
    for width in (4, 8, 16, STEPS):
        for steps in islice(product(range(width), repeat=len(symbols)), MAX_TRIES):
            pairs = zip(symbols, steps, strict=True)
            yield {each.name: _within(each, wanted[each.name] + step) for each, step in pairs}


def _within(symbol: Symbol, size: int) -> int:
    return max(symbol.low, size if symbol.high is None else min(size, symbol.high))
