# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Intervals of symbolic sizes: numbers between which an expression lies, whatever its symbols are in their ranges.

A lower end is the best of several estimates, each of which holds for all values:

    every monomial at its least value                                      2 * n - m >= 2 * low(n) - high(m)
    symbols counted from their least value, n = 4 + n', n' >= 0            n * m - 4 * m = n' * m >= 0
    a floordiv atom as (a - r) / b, 0 <= r < b: cancels a                  8 * ((n + 7) floordiv 8) - n in [0, 7]
    max(a, b) as a or as b, whichever is smaller; min likewise             max(n, 4) - n >= 0

An upper end is minus the lower end of the negated expression. The estimates are few and the results are kept, so that
the question costs little; intervals are sound but not the narrowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import inf
from typing import cast

from qcomp.dialects.dim import Atom, Call, Dim, Monomial, Terms, symbol

Ranges = tuple[tuple[str, tuple[float, float]], ...]
"""The least and the largest value of symbols; of those that are missing 0 and any."""
MAX_DEPTH = 8
"""Most replacements of atoms in one estimate."""


def interval(size: int, symbols: Mapping[str, tuple[float, float]] | None = None) -> tuple[float, float]:
    """Numbers between which `size` lies; `symbols` gives the ranges of symbols, by default 0 and more."""
    if not isinstance(size, Dim):
        return size, size
    return _interval(size, tuple(sorted(symbols.items())) if symbols else ())


@lru_cache(maxsize=16384)
def _interval(size: Dim, ranges: Ranges) -> tuple[float, float]:
    low, high = _Estimate(ranges).lower(cast(int, size), 0), -_Estimate(ranges).lower(-cast(int, size), 0)
    return low, high


class _Estimate:
    """Lower ends of expressions for symbols in `ranges`."""

    def __init__(self, ranges: Ranges):
        self.ranges = dict(ranges)
        self.key = ranges

    def lower(self, size: int, depth: int) -> float:
        """A number that `size` is never below."""
        if not isinstance(size, Dim):
            return size
        low, high = self.naive(size.terms)
        if low == high or depth >= MAX_DEPTH or (len(size.terms) == 1 and len(size.terms[0][0]) == 1):
            return low
        low = max(low, self.shifted(size))
        atom = _replaceable(size.terms)
        if atom is None:
            return low
        return max(low, self.divided(size, atom, depth) if atom.name == "floordiv" else self.chosen(size, atom, depth))

    def naive(self, terms: Terms) -> tuple[float, float]:
        """Every monomial on its own."""
        low: float = 0
        high: float = 0
        for monomial, factor in terms:
            ends: tuple[float, float] = (factor, factor)
            for atom in monomial:
                ends = _span(_times(a, b) for a in ends for b in self.atom(atom))
            low, high = _plus(low, ends[0]), _plus(high, ends[1])
        return low, high

    def atom(self, atom: Atom) -> tuple[float, float]:
        """The interval of a symbol or call."""
        if isinstance(atom, str):
            return self.ranges.get(atom, (0, inf))
        (a, b), (c, d) = (_interval(arg, self.key) if isinstance(arg, Dim) else (arg, arg) for arg in atom.args)
        if atom.name == "max":
            return max(a, c), max(b, d)
        if atom.name == "min":
            return min(a, c), min(b, d)
        if c <= 0:
            return -inf, inf
        return _span(_quotient(top, under) for top in (a, b) for under in (c, d))

    def shifted(self, size: Dim) -> float:
        """The naive lower end of `size` as a polynomial of the distances of its symbols from their least values."""
        names = {atom for monomial, _ in size.terms for atom in monomial if isinstance(atom, str)}
        moved = {name: int(low) for name in names if 0 < (low := self.ranges.get(name, (0, inf))[0]) < inf}
        if not moved or max(len(monomial) for monomial, _ in size.terms) < 2:
            return -inf
        total = 0
        for monomial, factor in size.terms:
            term = factor
            for atom in monomial:
                base = moved.get(atom, 0) if isinstance(atom, str) else 0
                term = (_single(atom) + base) * term
            total = term + total
        ranges = {**self.ranges, **{name: (0, self.ranges[name][1] - low) for name, low in moved.items()}}
        whole = _Estimate(tuple(sorted(ranges.items())))
        # Calls hold the symbols as they were: only the plain symbols were moved.
        return whole.naive_of_plain(total, self)

    def naive_of_plain(self, size: int, calls: _Estimate) -> float:
        """The naive lower end with the intervals of calls by `calls`."""
        low: float = 0
        for monomial, factor in size.terms if isinstance(size, Dim) else (((), size),):
            ends: tuple[float, float] = (factor, factor)
            for atom in monomial:
                own = self.atom(atom) if isinstance(atom, str) else calls.atom(atom)
                ends = _span(_times(a, b) for a in ends for b in own)
            low = _plus(low, ends[0])
        return low

    def divided(self, size: Dim, atom: Call, depth: int) -> float:
        """`size` with ``q = a floordiv b`` replaced: b * q is at least a - b + 1 and at most a."""
        top, under = atom.args
        if self.lower(under, depth + 1) < 1:
            return -inf
        scaled = 0
        for monomial, factor in size.terms:
            others = list(monomial)
            if atom not in others:
                scaled = _product(others, factor) * under + scaled
                continue
            others.remove(atom)
            if self.naive(((tuple(others), 1),))[0] < 0:
                return -inf
            scaled = _product(others, factor) * (top - under + 1 if factor > 0 else top) + scaled
        return self.quotient(scaled, under, depth)

    def quotient(self, scaled: int, under: int, depth: int) -> float:
        """A lower end of the whole number ``scaled / under``."""
        low = self.lower(scaled, depth + 1)
        if not isinstance(under, Dim):
            return low if abs(low) == inf else -(-low // under)
        # Only the sign is sure. A whole number that times `under` is above -under is 0 or more.
        return 0 if low >= 0 or self.lower(scaled + under - 1, depth + 1) >= 0 else -inf

    def chosen(self, size: Dim, atom: Call, depth: int) -> float:
        """`size` with ``max(a, b)`` or ``min(a, b)`` replaced by each of the two."""
        lows = [self.lower(_replace(size, atom, arg), depth + 2) for arg in atom.args]
        grows = all(
            factor > 0 and self.naive(((_without(monomial, atom), 1),))[0] >= 0
            for monomial, factor in size.terms
            if atom in monomial
        )
        # A maximum that only adds is no smaller than either of the two.
        return max(lows) if atom.name == "max" and grows else min(lows)


def _replaceable(terms: Terms) -> Call | None:
    """The call to replace first: one that is in no other call of the expression."""
    calls = [atom for monomial, _ in terms for atom in monomial if isinstance(atom, Call)]
    # Nested calls appear when the outer one is gone; those with long arguments go first, they hold the others.
    return max(calls, key=lambda call: len(str(call)), default=None)


def _product(atoms: Iterable[Atom], factor: int) -> int:
    total = factor
    for atom in atoms:
        total = _single(atom) * total
    return total


def _single(atom: Atom) -> int:
    return symbol(atom) if isinstance(atom, str) else cast(int, Dim((((atom,), 1),)))


def _replace(size: Dim, atom: Call, by: int) -> int:
    total = 0
    for monomial, factor in size.terms:
        term = factor
        for each in monomial:
            term = (by if each == atom else _single(each)) * term
        total = term + total
    return total


def _without(monomial: Monomial, atom: Atom) -> Monomial:
    rest = list(monomial)
    rest.remove(atom)
    return tuple(rest)


def _quotient(top: float, under: float) -> float:
    if abs(top) == inf:
        return top
    return top // under if under != inf else (-1 if top < 0 else 0)


def _span(values: Iterable[float]) -> tuple[float, float]:
    found = list(values)
    return min(found), max(found)


def _times(a: float, b: float) -> float:
    """Exact for ints of any size; 0 times infinity is 0."""
    if a == 0 or b == 0:
        return 0
    return a * b if abs(a) != inf != abs(b) else inf if (a > 0) == (b > 0) else -inf


def _plus(a: float, b: float) -> float:
    return a if abs(a) == inf else b if abs(b) == inf else a + b
