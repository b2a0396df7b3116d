# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes: the normal form means what its operations mean, and inputs give symbols their sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qcomp.dialects.binding import UNKNOWN, Symbol, bind, can_bind, check_sizes
from qcomp.dialects.dim import (
    FUNCTIONS,
    bounds,
    ceil_divide,
    is_symbolic,
    substitute,
    symbol,
    symbols_of,
)
from qcomp.dialects.dim_json import from_plain, to_plain
from qcomp.dialects.facts import independent
from qcomp.dialects.guard import Guard
from qcomp.errors import QcompError

b, s = symbol("b"), symbol("s")
VALUES = [{"b": x, "s": y} for x, y in ((0, 1), (1, 0), (2, 7), (7, 2), (33, 5))]


def exprs() -> st.SearchStrategy[tuple[int, Callable[[dict[str, int]], int]]]:
    """Sizes paired with functions that compute them from values."""
    leaves = st.one_of(
        st.integers(-3, 9).map(lambda n: (n, lambda v: n)),
        st.sampled_from(["b", "s"]).map(lambda n: (symbol(n), lambda v: v[n])),
    )

    def grow(inner: st.SearchStrategy[tuple[int, Callable[[dict[str, int]], int]]]) -> st.SearchStrategy[object]:
        plain = st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), inner, inner).map(_combined)
        divided = st.tuples(st.sampled_from(["floordiv", "ceildiv", "mod"]), inner, st.integers(1, 6)).map(
            lambda item: _combined((item[0], item[1], (item[2], lambda v: item[2])))
        )
        return st.one_of(plain, divided)

    return st.recursive(leaves, grow, max_leaves=6)  # pyright: ignore[reportArgumentType, reportReturnType]


MEANING: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "max": max, "min": min,
    "floordiv": lambda x, y: x // y, "ceildiv": lambda x, y: -(-x // y), "mod": lambda x, y: x % y,
}  # fmt: skip


def _combined(item: tuple[str, tuple[int, Callable[..., int]], tuple[int, Callable[..., int]]]):
    name, (left, one), (right, other) = item
    size = FUNCTIONS[name](left, right) if name in FUNCTIONS else MEANING[name](left, right)
    return size, lambda v: MEANING[name](one(v), other(v))


@given(exprs())
@settings(max_examples=300, deadline=None)
def test_arithmetic_means_what_it_means_on_numbers(pair: tuple[int, Callable[[dict[str, int]], int]]):
    size, meaning = pair
    low, high = bounds(size)
    for values in VALUES:
        assert substitute(size, values) == meaning(values)
        assert low <= meaning(values) <= high
        partly = substitute(size, {"b": values["b"]})
        assert substitute(partly, values) == meaning(values)
    assert from_plain(to_plain(size)) == size


def test_equal_sizes_are_equal_objects():
    assert (b + 1) * (b - 1) == b * b - 1
    assert (s - 1) // 2 + 1 == (s + 1) // 2
    assert (b + 5) // 4 // 2 == (b + 5) // 8
    assert (2 * b + 1) // 4 == b // 2
    assert 3136 * b % 64 == 0 and not is_symbolic(3136 * b % 64)
    assert (b * s + b) // (s + 1) == b
    assert ceil_divide(b, 1) == b
    assert b != s and b != 1 and b + 1 != b
    assert symbols_of([2 * s + b, (b + 1) // 3]) == ["b", "s"]


@pytest.mark.parametrize(
    "ask", [lambda: b < 3, lambda: max(b, 3), lambda: range(b), lambda: int(b), lambda: bool(b), lambda: [0] * b]
)
def test_what_a_symbol_cannot_answer_is_refused(ask: Callable[[], object]):
    with pytest.raises(QcompError) as caught:
        ask()
    assert caught.value.code == "dynamic-shape"
    assert b >= 0 and not b + 1 <= 0 and b + 1


B, S = Symbol("b", 0, 64), Symbol("s", 1)


def test_inputs_give_symbols_their_sizes():
    shapes = [(2 * s, b, 5), (b, s + 3, UNKNOWN)]
    assert bind([B, S], ["x", "y"], shapes, [(6, 4, 5), (4, 6, 9)]) == {"b": 4, "s": 3}
    assert bind([B, S], ["x", "y"], [(b * s,), (b,)], [(12,), (4,)]) == {"b": 4, "s": 3}
    assert can_bind([(b * s, 3)]) == set() and can_bind([(b * s, b)]) == {"b", "s"} and can_bind([(2 * s,)]) == {"s"}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(6, 4), (4, 6)], "input x: expected shape [2 * s, b, 5], got [6, 4]"),
        ([(6, 4, 5), (3, 6, 9)], "dimension 0 of input y is 3, expected b = 4, b = 4 by dimension 1 of input x"),
        ([(7, 4, 5), (4, 6, 9)], "dimension 0 of input x is 7, which 2 * s cannot be"),
        ([(6, 65, 5), (65, 6, 9)], "dimension 1 of input x: b is 65, allowed are 0 to 64"),
        ([(0, 4, 5), (4, 3, 9)], "dimension 0 of input x: s is 0, allowed are 1 to any"),
        ([(6, 4, 8), (4, 6, 9)], "dimension 2 of input x is 8, expected 5"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes: list[tuple[int, ...]], message: str):
    with pytest.raises(QcompError) as caught:
        bind([B, S], ["x", "y"], [(2 * s, b, 5), (b, s + 3, UNKNOWN)], shapes)
    assert caught.value.message == message


def test_conditions_on_sizes():
    assert independent([B, S], map(Guard, [s - 1, b - 1, s * b, 4])) == [Guard(b - 1)]
    check_sizes([Guard(b - 1)], {"b": 1})
    with pytest.raises(QcompError, match=r"does not work for b = 0: b - 1 must not be negative"):
        check_sizes([Guard(b - 1)], {"b": 0})
    with pytest.raises(QcompError, match="no input gives the size of s"):
        bind([B, S], ["x"], [(b,)], [(4,)])
