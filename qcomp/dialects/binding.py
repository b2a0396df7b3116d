# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the shapes of inputs to the sizes of symbols, with checks that all agrees. Needs neither xDSL nor numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from qcomp.dialects.dim import Dim, substitute, symbols_of
from qcomp.dialects.guard import Guard
from qcomp.errors import QcompError

UNKNOWN = -(2**63)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Symbol:
    """A symbol and the sizes it may take; `high` None: any."""

    name: str
    low: int = 0
    high: int | None = None

    def __str__(self) -> str:
        return f"{self.name}, {self.low}" + ("" if self.high is None else f", {self.high}")

    def check(self, size: int) -> str | None:
        """What is wrong with `size`; None when the symbol may take it."""
        if size < self.low or (self.high is not None and size > self.high):
            return f"{self.name} is {size}, allowed are {self.low} to {'any' if self.high is None else self.high}"
        return None


def bind(
    symbols: Sequence[Symbol], names: Sequence[str], wanted: Sequence[Shape], given: Sequence[Shape]
) -> dict[str, int]:
    """The sizes of `symbols` for inputs `names` of shapes `given`, of which the program says `wanted`.

    Raises QcompError (code "input") naming input, dimension and symbol where a shape does not fit, a symbol is outside
    its range, two places give different sizes, or no place gives one.
    """
    values: dict[str, int] = {}
    places: dict[str, str] = {}
    dims = [
        (f"dimension {axis} of input {name}", expected, size)
        for name, sizes, shape in zip(names, wanted, given, strict=True)
        for axis, (expected, size) in enumerate(zip(sizes, shape, strict=False))
    ]
    for name, sizes, shape in zip(names, wanted, given, strict=True):
        if len(sizes) != len(shape):
            raise QcompError(f"input {name}: expected shape [{_text(sizes)}], got {list(shape)}", code="input")
    for _ in dims:
        found = [_solve(place, expected, size, values) for place, expected, size in dims]
        new = [item for item in found if item is not None and item[0] not in values]
        if not new:
            break
        for symbol, size, place in new:
            values.setdefault(symbol, size)
            places.setdefault(symbol, place)
    check_ranges(symbols, values, places)
    for place, expected, size in dims:
        _agree(place, expected, size, values, places)
    return {symbol.name: values[symbol.name] for symbol in symbols}


def check_ranges(symbols: Sequence[Symbol], values: Mapping[str, int], places: Mapping[str, str] | None = None) -> None:
    """Raise QcompError unless every symbol has a size in its range; places: what gave it."""
    for symbol in symbols:
        if symbol.name not in values:
            raise QcompError(f"no input gives the size of {symbol.name}", code="input")
        problem = symbol.check(values[symbol.name])
        if problem:
            place = f"{places[symbol.name]}: " if places and symbol.name in places else ""
            raise QcompError(place + problem, code="input")


def _solve(place: str, expected: int, size: int, values: Mapping[str, int]) -> tuple[str, int, str] | None:
    """(symbol, size, place) when `expected` is ``factor * symbol + constant`` but for symbols that are known."""
    left = substitute(expected, values)
    if not isinstance(left, Dim):
        return None
    (monomial, factor), *rest = left.terms
    constant = sum(number for _, number in rest)
    if len(monomial) != 1 or not isinstance(monomial[0], str) or any(more for more, _ in rest):
        return None
    found, odd = divmod(size - constant, factor)
    if odd or found < 0:
        raise QcompError(f"{place} is {size}, which {expected} cannot be", code="input")
    return monomial[0], found, place


def _agree(place: str, expected: int, size: int, values: Mapping[str, int], places: Mapping[str, str]) -> None:
    meant = substitute(expected, values)
    if meant in (size, UNKNOWN):
        return
    names = symbols_of([expected])
    reason = "".join(f", {name} = {values[name]} by {places[name]}" for name in names if name in places)
    what = f"{expected} = {meant}" if names else str(meant)
    raise QcompError(f"{place} is {size}, expected {what}{reason}", code="input")


def can_bind(wanted: Sequence[Sequence[int]]) -> set[str]:
    """The symbols whose size inputs of shapes `wanted` give."""
    known: set[str] = set()
    sizes = [size for shape in wanted for size in shape if isinstance(size, Dim)]
    for _ in sizes:
        values = dict.fromkeys(known, 7)
        for size in sizes:
            left = substitute(size, values)
            if isinstance(left, Dim) and len(symbols_of([left])) == 1 and len(left.terms[0][0]) == 1:
                if isinstance(left.terms[0][0][0], str) and all(not more for more, _ in left.terms[1:]):
                    known.update(symbols_of([left]))
    return known


def symbol_ranges(symbols: Sequence[Symbol]) -> dict[str, tuple[float, float]]:
    """The least and the largest size of symbols by name, as `bounds` takes them."""
    return {symbol.name: (symbol.low, inf if symbol.high is None else symbol.high) for symbol in symbols}


def check_sizes(conditions: Sequence[Guard], values: Mapping[str, int]) -> None:
    """Raise QcompError when sizes of all symbols violate one of `conditions`: the program means nothing for them."""
    for condition in conditions:
        if not condition.holds(values):
            raise QcompError(condition.problem(values), code="input")


def _text(sizes: Shape) -> str:
    return ", ".join("?" if size == UNKNOWN else str(size) for size in sizes)
