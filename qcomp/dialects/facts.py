# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts about the sizes of a program, and the questions they answer.

`Facts` knows what every call is checked for: the ranges of symbols and the guards. What follows from them needs no
check of its own.

    facts = Facts([Symbol("n", 4, 64)], [compare(n % 4, "==", 0)])
    facts.bounds(64 - n) == (0, 60)
    facts.decide(compare(n, ">", 3)) is True          # None: depends on the sizes

During an import comparisons of sizes ask `Assumptions`, so that handlers write ``if start < 0`` for numbers and symbols
alike. What the facts leave open goes the way that the export took - by the ranges it states, else at the sizes of its
example - and becomes a guard, which the importer puts on main: other sizes are refused at the call, with the op's line.

What an op handler does, with a `qcomp.frontend.builder.Builder` b and `qcomp.frontend.size_facts`:

    if size < 0:                                            ask, and demand the answer where the facts leave it open
    b.assumptions.facts.decide(compare(n, "==", m))         ask only: True, False, or None when it is not known
    demand(b, compare(n, "<=", m))                          have a condition checked at each call, with the op's line
    require_same(b, n, m)                                   two sizes that an op makes equal: proved by the facts, or
                                                            one symbol becomes the other: the import starts again
Types are compared by their normal forms: guards do not make two types equal, `require_same` does. What an op itself
cannot do at some sizes (a slice beyond its tensor) is a condition in `qcomp.dialects.nn.conditions` instead.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf

from qcomp.dialects.binding import Symbol, symbol_ranges
from qcomp.dialects.dim import DECIDER, Decider, Dim, Monomial, substitute, symbols_of
from qcomp.dialects.guard import Guard, opposite
from qcomp.dialects.intervals import interval
from qcomp.errors import QcompError

MAX_FORMS, MAX_TERMS, FEW_FORMS = 16, 8, 4
"""Guards that take part in proofs, and their longest; the others are only checked. So few take part in pairs."""


class Facts:
    """What holds for the sizes at every call."""

    def __init__(self, symbols: Sequence[Symbol], guards: Iterable[Guard] = ()):
        self.ranges: dict[str, tuple[float, float]] = dict(symbol_ranges(symbols))
        self._forms: list[Dim] = []
        self._nonzero: set[int] = set()
        self._known: dict[int, tuple[float, float]] = {}
        for guard in guards:
            self.add(guard)

    def add(self, guard: Guard) -> None:
        """Take `guard` for granted from now on."""
        self._known.clear()
        if guard.relation == "!=":
            self._nonzero |= {guard.size, -guard.size}
            return
        for size in (guard.size, -guard.size) if guard.relation == "==" else (guard.size,):
            if isinstance(size, Dim) and not self._narrow(size) and len(size.terms) <= MAX_TERMS:
                self._forms.append(size)

    def _narrow(self, size: Dim) -> bool:
        """Use ``factor * symbol + constant >= 0`` as an end of the symbol's range."""
        (monomial, factor), *rest = size.terms
        if len(monomial) != 1 or not isinstance(monomial[0], str) or any(more for more, _ in rest):
            return False
        low, high = self.ranges.get(monomial[0], (0, inf))
        end = -sum(number for _, number in rest)
        # An empty range would prove anything: sizes that contradict each other stay open.
        narrowed = (max(low, -(-end // factor)), high) if factor > 0 else (low, min(high, end // factor))
        if narrowed[0] <= narrowed[1]:
            self.ranges[monomial[0]] = narrowed
        return True

    def bounds(self, size: int) -> tuple[float, float]:
        """Numbers between which `size` lies at every call."""
        if not isinstance(size, Dim):
            return size, size
        if size not in self._known:
            depth = 2 if len(self._forms) <= FEW_FORMS else 1
            self._known[size] = (self._lower(size, depth), -self._lower(-size, depth))
        return self._known[size]

    def _lower(self, size: int, depth: int) -> float:
        low = interval(size, self.ranges)[0]
        if low < 0 and depth and isinstance(size, Dim):
            for form in self._forms[:MAX_FORMS]:
                for times, by in _ratios(size, form):
                    # times * size = by * form + rest, and the form is 0 or more.
                    rest = self._lower(size * times - form * by, depth - 1)
                    low = max(low, rest if abs(rest) == inf else -(-rest // times))
        return 1 if low == 0 and size in self._nonzero else low

    def at_least_0(self, size: int) -> bool | None:
        """Whether `size` is never negative; None when that depends on the sizes."""
        low, high = self.bounds(size)
        return True if low >= 0 else False if high < 0 else None

    def decide(self, guard: Guard) -> bool | None:
        """Whether `guard` holds at every call (True), at none (False), or at some (None)."""
        if (known := guard.known()) is not None:
            return known
        if guard.relation == ">=":
            return self.at_least_0(guard.size)
        low, high = self.bounds(guard.size)
        equal = True if low == high == 0 else False if low > 0 or high < 0 or guard.size in self._nonzero else None
        return equal if equal is None or guard.relation == "==" else not equal


def independent(symbols: Sequence[Symbol], guards: Iterable[Guard]) -> list[Guard]:
    """Those of `guards` that follow neither from the ranges nor from those before them."""
    facts, kept = Facts(symbols), list[Guard]()
    for guard in guards:
        if facts.decide(guard) is not True:
            kept.append(guard)
            facts.add(guard)
    return kept


class Assumptions:
    """Answers comparisons during an import, and keeps the guards that answers rest on.

    symbols, guards: what every call is checked for. stated: the symbols' ranges as the export states them; example:
    the sizes it was made with. place: what a new guard's note says.
    """

    def __init__(
        self, symbols: Sequence[Symbol] = (), guards: Sequence[Guard] = (), stated: Sequence[Symbol] = (),
        example: Mapping[str, int] | None = None,
    ):  # fmt: skip
        self.facts = Facts(symbols, guards)
        self.guards: list[Guard] = list(guards)
        self.place: str = ""
        self._stated = Facts(stated, guards)
        self._example = example or {}

    def at_least_0(self, size: int) -> bool | None:
        """Whether `size` is 0 or more, which from now on is so; None when not even the export tells."""
        answer = self.facts.at_least_0(size)
        if answer is not None:
            return answer
        answer = self._stated.at_least_0(size)
        if answer is None and set(symbols_of([size])) <= self._example.keys():
            answer = substitute(size, self._example) >= 0
        if answer is not None:
            self.demand(Guard(size) if answer else opposite(Guard(size)))
        return answer

    def demand(self, guard: Guard) -> None:
        """Have `guard` checked at each call. Raises QcompError when it never holds."""
        answer = self.facts.decide(guard)
        if answer is False:
            raise QcompError(f"{guard} does not hold for any sizes", code="dynamic-shape")
        if answer is None:
            noted = replace(guard, note=guard.note or self.place)
            self.guards.append(noted)
            self.facts.add(noted)
            self._stated.add(noted)

    def fits_example(self, guard: Guard) -> bool:
        """Whether `guard` holds for the sizes that the export was made with; False where those are not known."""
        return set(symbols_of([guard.size])) <= self._example.keys() and guard.holds(self._example)


@contextmanager
def deciding(decider: Decider | None) -> Generator[None]:
    """Have comparisons of sizes ask `decider`."""
    token = DECIDER.set(decider)
    try:
        yield
    finally:
        DECIDER.reset(token)


def _ratios(size: Dim, form: Dim) -> Iterator[tuple[int, int]]:
    """(times, by) such that a monomial with symbols cancels in ``times * size - by * form``; both positive."""
    factors: dict[Monomial, int] = dict(form.terms)
    for monomial, factor in size.terms:
        other = factors.get(monomial, 0) if monomial else 0
        if factor * other > 0:
            yield abs(other), abs(factor)
