# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards: conditions on the sizes of symbols, checked at each call. Needs neither xDSL nor numpy.

A guard compares an expression with 0. Boolean combinations are expressions as well: "and" is a minimum, "or" a maximum
of expressions that are 0 or more exactly where the parts hold, so that one kind of guard says everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from qcomp.dialects.dim import Call, Dim, Monomial, larger, smaller, substitute, symbols_of
from qcomp.dialects.dim_json import from_plain, to_plain

_HOLDS: dict[str, Callable[[int], bool]] = {
    ">=": lambda value: value >= 0,
    "==": lambda value: value == 0,
    "!=": lambda value: value != 0,
}
RELATIONS = ("==", "!=", "<=", ">=", "<", ">")
"""The comparisons that text may use."""


@dataclass(frozen=True)
class Guard:
    """The condition ``size >= 0``, ``size == 0`` or ``size != 0``; note: where it comes from, for messages."""

    size: int
    relation: str = ">="
    note: str = ""

    def __post_init__(self) -> None:
        if self.relation not in _HOLDS:
            raise ValueError(f"a guard compares by {', '.join(_HOLDS)}, not by {self.relation}")

    def sides(self) -> tuple[int, int]:
        """`size` as a difference of two sums without negative terms, for text."""
        size = _with_mod(self.size)
        terms = size.terms if isinstance(size, Dim) else (((), size),)
        right = sum((_term(monomial, -factor) for monomial, factor in terms if factor < 0), 0)
        return size + right, right

    def __str__(self) -> str:
        left, right = self.sides()
        return f"{left} {self.relation} {right}"

    @property
    def condition(self) -> tuple[int, str]:
        """Everything but the note."""
        return self.size, self.relation

    def known(self) -> bool | None:
        """The answer when it depends on no symbol."""
        return None if isinstance(self.size, Dim) else _HOLDS[self.relation](self.size)

    def at(self, values: Mapping[str, int]) -> Guard:
        """The guard with the symbols of `values` replaced."""
        return Guard(substitute(self.size, values), self.relation, self.note)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether sizes of all symbols satisfy the guard."""
        return bool(self.at(values).known())

    def problem(self, values: Mapping[str, int]) -> str:
        """The message for sizes that violate the guard."""
        sizes = ", ".join(f"{name} = {values[name]}" for name in symbols_of([self.size]) if name in values)
        need = f"{self.size} must not be negative" if self.relation == ">=" else f"it needs {self}"
        return f"the program does not work for {sizes}: {need}{f', from {self.note}' if self.note else ''}"

    def to_json(self) -> object:
        """As plain data."""
        return {"size": to_plain(self.size), "relation": self.relation, "note": self.note}

    @staticmethod
    def from_json(data: Any) -> Guard:
        """The guard that `to_json` gave; of a size alone that it is 0 or more. Raises what `from_plain` does."""
        if not isinstance(data, dict):
            return Guard(from_plain(data))
        fields = cast("dict[str, Any]", data)
        if fields.keys() != {"size", "relation", "note"} or type(fields["note"]) is not str:
            raise TypeError("a guard has a size, a relation and a note")
        return Guard(from_plain(fields["size"]), fields["relation"], fields["note"])


def compare(left: int, relation: str, right: int, note: str = "") -> Guard:
    """The guard ``left relation right``, by any of `RELATIONS`."""
    match relation:
        case "<=":
            return Guard(right - left, ">=", note)
        case "<":
            return Guard(right - left - 1, ">=", note)
        case ">":
            return Guard(left - right - 1, ">=", note)
        case _:
            return Guard(left - right, relation, note)


def degree(guard: Guard) -> int:
    """An expression that is 0 or more exactly where `guard` holds."""
    match guard.relation:
        case "==":
            return smaller(guard.size, -guard.size)
        case "!=":
            return larger(guard.size, -guard.size) - 1
        case _:
            return guard.size


def both(first: Guard, second: Guard) -> Guard:
    """Holds where both do."""
    return Guard(smaller(degree(first), degree(second)))


def either(first: Guard, second: Guard) -> Guard:
    """Holds where one of them does."""
    return Guard(larger(degree(first), degree(second)))


def opposite(guard: Guard) -> Guard:
    """Holds where `guard` does not."""
    match guard.relation:
        case "==":
            return Guard(guard.size, "!=", guard.note)
        case "!=":
            return Guard(guard.size, "==", guard.note)
        case _:
            return Guard(-guard.size - 1, ">=", guard.note)


def _term(monomial: Monomial, factor: int) -> int:
    return cast(int, Dim(((monomial, factor),))) if monomial else factor


def _with_mod(size: int) -> int:
    """`size` with ``mod``, which the normal form lacks, where that is shorter. To be printed only."""
    for monomial, factor in size.terms if isinstance(size, Dim) else ():
        atom = monomial[0] if len(monomial) == 1 else None
        if not isinstance(atom, Call) or atom.name != "floordiv" or isinstance(atom.args[1], Dim):
            continue
        top, under = atom.args
        times, odd = divmod(factor, under)
        rest = size - _term(monomial, factor) + top * times
        if not odd and _length(rest) < _length(size) - 1:
            return _with_mod(rest + _term((Call("mod", (top, under)),), -times))
    return size


def _length(size: int) -> int:
    return len(size.terms) if isinstance(size, Dim) else 1 if size else 0
