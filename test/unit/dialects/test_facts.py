# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What facts say of sizes is true: intervals and decisions against all small sizes; guards are kept whole."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qcomp.dialects.binding import Symbol
from qcomp.dialects.dim import floor_divide, is_symbolic, larger, modulo, smaller, substitute, symbol
from qcomp.dialects.facts import Assumptions, Facts, deciding, independent
from qcomp.dialects.guard import RELATIONS, Guard, both, compare, either, opposite
from qcomp.dialects.sample_sizes import sample_sizes
from qcomp.errors import QcompError

a, b = symbol("a"), symbol("b")
SMALL = 13


def sizes() -> st.SearchStrategy[int]:
    """Expressions over a and b."""

    def grown(inner: st.SearchStrategy[int]) -> st.SearchStrategy[int]:
        pairs = st.tuples(inner, inner)
        divided = st.tuples(inner, st.sampled_from([2, 3, 4, 8]))
        return st.one_of(
            pairs.map(lambda p: p[0] + p[1]), pairs.map(lambda p: p[0] - p[1]), pairs.map(lambda p: p[0] * p[1]),
            pairs.map(lambda p: larger(*p)), pairs.map(lambda p: smaller(*p)),
            divided.map(lambda p: floor_divide(*p)), divided.map(lambda p: modulo(*p)),
        )  # fmt: skip

    return st.recursive(st.sampled_from([a, b, -3, -1, 1, 2, 4, 7]), grown, max_leaves=6)


RANGES = st.tuples(st.integers(0, 5), st.integers(0, 7) | st.none()).map(lambda p: (p[0], p[1] and p[0] + p[1]))


@settings(max_examples=250, deadline=None)
@given(sizes(), st.lists(st.tuples(sizes(), st.sampled_from(RELATIONS), sizes()), max_size=3), RANGES, RANGES)
def test_decisions_are_true_at_all_small_sizes(
    size: int, given_guards: list[tuple[int, str, int]], first: tuple[int, int | None], second: tuple[int, int | None]
):
    symbols = [Symbol("a", *first), Symbol("b", *second)]
    guards = [compare(*parts) for parts in given_guards]
    facts = Facts(symbols, guards)
    spans = [range(s.low, min(SMALL, SMALL if s.high is None else s.high) + 1) for s in symbols]
    points = [{"a": x, "b": y} for x, y in product(*spans)]
    allowed = [values for values in points if all(guard.holds(values) for guard in guards)]
    found = [substitute(size, values) for values in allowed]
    low, high = facts.bounds(size)
    assert all(low <= value <= high for value in found)
    for relation in (">=", "==", "!="):
        guard = Guard(size, relation)
        answers = {guard.holds(values) for values in allowed}
        decided = facts.decide(guard)
        assert decided is None or answers <= {decided}
    # What is left out follows from what is kept.
    kept = independent(symbols, guards)
    assert allowed == [values for values in points if all(guard.holds(values) for guard in kept)]


@settings(max_examples=100, deadline=None)
@given(sizes(), st.sampled_from(RELATIONS), sizes(), sizes(), st.sampled_from(RELATIONS), sizes())
def test_guards_mean_what_python_means(x: int, first: str, y: int, z: int, second: str, w: int):
    left, right = compare(x, first, y), compare(z, second, w)
    for values in ({"a": p, "b": q} for p, q in product((0, 1, 4, 7), (0, 2, 5))):
        truth = [
            eval(f"p {relation} q", {"p": substitute(p, values), "q": substitute(q, values)})
            for p, relation, q in ((x, first, y), (z, second, w))
        ]
        assert [left.holds(values), right.holds(values)] == truth
        assert both(left, right).holds(values) == all(truth)
        assert either(left, right).holds(values) == any(truth)
        assert opposite(left).holds(values) != truth[0]
        assert Guard.from_json(left.to_json()) == left
        # The two sides of the text are the guard.
        p, q = (substitute(_plain(side), values) for side in left.sides())
        assert eval(f"p {left.relation} q", {"p": p, "q": q}) == truth[0]


def _plain(size: int) -> int:
    """`size` without the ``mod`` that only text has."""
    total = 0
    for monomial, factor in getattr(size, "terms", (((), size),)):
        term = factor
        for atom in monomial:
            term = term * (symbol(atom) if isinstance(atom, str) else _called(atom))
        total = total + term
    return total


def _called(atom: object) -> int:
    name, args = atom.name, [_plain(arg) for arg in atom.args]  # type: ignore[attr-defined]
    return {"mod": modulo, "floordiv": floor_divide, "max": larger, "min": smaller}[name](*args)


GUARDS = [compare(a * b, "<", 100), compare(b % 8, "!=", 0), compare(b, ">", a)]
FACTS = Facts([Symbol("a", 4, 64), Symbol("b")], GUARDS)


@pytest.mark.parametrize(
    ("size", "ends"),
    [
        (64 - a, (0, 60)),
        (a - 1, (3, 63)),
        (8 * ((b + 7) // 8) - b, (0, 7)),
        (-b % 8, (0, 7)),
        (b % 8, (1, 7)),
        (b - b // 2, (0, inf)),
        (larger(0, 1 - b - 2 * (-b // 2)), (1, 2)),
        ((b + 3) // 4 + 3 * b // 4 - b, (0, 0)),
        (b - a, (1, inf)),
        (2 * b - 2 * a - 2, (0, inf)),
        (100 - a * b, (1, 100)),
    ],
)
def test_bounds(size: int, ends: tuple[float, float]):
    assert FACTS.bounds(size) == ends


def test_two_spellings_of_a_size_rounded_up_are_one():
    assert 8 * ((b + 7) // 8) - b == -b % 8 == (8 - b % 8) % 8
    assert str((b + 7) // 8) == "((b + 7) floordiv 8)"


def test_what_stays_open_goes_the_way_of_the_export_and_is_demanded():
    export = Assumptions([Symbol("a"), Symbol("b")], [], [Symbol("a", 2), Symbol("b", 2)], {"a": 12, "b": 30})
    export.place = "aten.pad.default at model.py:7"
    with deciding(export):
        assert a + b >= 0 and not export.guards  # always so
        assert a - 1 >= 0  # by the stated range
        assert b > a  # by the example
        assert b - a >= 1 and a > 0  # known now
        with pytest.raises(QcompError, match="depends on the sizes"):
            bool(symbol("c") > a)
    assert [str(guard) for guard in export.guards] == ["a >= 1", "b >= a + 1"]
    assert {guard.note for guard in export.guards} == {"aten.pad.default at model.py:7"}
    with pytest.raises(QcompError, match="a >= b does not hold for any sizes"):
        export.demand(compare(a, ">=", b))
    with pytest.raises(QcompError, match="depends on the sizes"):
        bool(b > a)


def test_sizes_that_guards_allow_are_found():
    symbols = [Symbol("a"), Symbol("b", 0, 40)]
    guards = [compare(a % 4, "==", 1), compare(b, ">", 3 * a), compare(a, ">", 2)]
    found = sample_sizes(symbols, guards, {"a": 2, "b": 2})
    assert all(guard.holds(found) for guard in guards) and is_symbolic(a)
    with pytest.raises(QcompError, match="works for no small sizes"):
        sample_sizes(symbols, [compare(b, ">", 50)], {"a": 2, "b": 2})
