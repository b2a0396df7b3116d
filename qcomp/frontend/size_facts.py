# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What op handlers ask and demand of sizes, beside comparing them; see `qcomp.dialects.facts`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from qcomp.dialects.binding import Symbol
from qcomp.dialects.dim import symbols_of
from qcomp.dialects.facts import Assumptions
from qcomp.dialects.guard import Guard, compare
from qcomp.errors import QcompError
from qcomp.frontend.graph import Graph
from qcomp.frontend.size_equations import Equal
from qcomp.frontend.specialize import symbol_of

if TYPE_CHECKING:
    from qcomp.frontend.builder import Builder


def assumptions_of(graph: Graph, names: Collection[str], fixed: Mapping[str, int]) -> Assumptions:
    """What is known of the sizes of a program whose inputs give the symbols `names`, some of them `fixed`.

    Raises QcompError for fixed sizes that violate a guard.
    """
    symbols = [symbol_of(graph, name) for name in sorted(names) if name not in fixed]
    stated = [_stated(graph, symbol) for symbol in symbols]
    guards: list[Guard] = []
    for guard in graph.guards:
        left = guard.at(fixed)
        if left.known() is False:
            raise QcompError(guard.problem(fixed), code="dynamic-shape")
        unknown = set(symbols_of([left.size])).difference(names)
        if unknown:
            reason = f"the shapes of the inputs do not give {', '.join(sorted(unknown))}"
            raise QcompError(f"the guard {guard} cannot be checked: {reason}", code="unsupported-guard")
        if left.known() is None:
            guards.append(left)
    return Assumptions(symbols, guards, stated, graph.example)


def _stated(graph: Graph, symbol: Symbol) -> Symbol:
    """The range that the export assumes: a least size of 2 as well, which calls are not checked for."""
    limits = graph.ranges.get(symbol.name)
    return symbol if limits is None else Symbol(symbol.name, max(0, limits.low or 0), limits.high)


def demand(b: Builder, guard: Guard) -> None:
    """Have `guard` checked at each call. Raises QcompError when no sizes satisfy it."""
    b.assumptions.demand(guard)


def require_same(b: Builder, first: int, second: int) -> None:
    """Make two sizes that an op needs to be equal one: by the facts, else from the start of the import on.

    Raises QcompError when neither is possible, `Equal` to start again.
    """
    guard = compare(first, "==", second, b.assumptions.place)
    answer = b.assumptions.facts.decide(guard)
    if answer is True:
        return
    if answer is False or guard.condition in {known.condition for known in b.assumptions.guards}:
        raise QcompError(f"the sizes {first} and {second} are not the same", code="dynamic-shape")
    raise Equal(guard)


def agree(b: Builder, found: Sequence[int], expected: Sequence[int]) -> bool:
    """Whether sizes that were inferred are those of the export, where the facts or its example say so.

    Raises `Equal` to start again where they can become one form.
    """
    if len(found) != len(expected):
        return False
    for first, second in zip(found, expected, strict=True):
        guard = compare(first, "==", second, b.assumptions.place)
        if first == second or b.assumptions.facts.decide(guard) is True:
            continue
        known = {known.condition for known in b.assumptions.guards}
        if guard.condition in known or not b.assumptions.fits_example(guard):
            return False
        raise Equal(guard)
    return True
