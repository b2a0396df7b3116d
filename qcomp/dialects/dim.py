# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes: `Dim`, an integer expression over named symbols in a normal form.

A dimension is a number, a `Dim` or unknown. A `Dim` takes part in arithmetic as a number does, so that code which
computes shapes serves both; the type checker sees `int`, because every function of shapes would otherwise have two
types. What the code asks of a number and a symbol cannot answer raises QcompError (code `UNDECIDED`): a comparison
that depends on the symbols' values, `range`, a conversion to int. `==` means: equal for all values.

The normal form is a polynomial over symbols, ``floordiv``, ``max`` and ``min``; ceildiv and mod are written by
floordiv. Equal polynomials are equal objects; two ways to write one floordiv may not be found equal, never the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import index
from typing import Protocol, cast

from qcomp.errors import QcompError

MAX_TERMS = 256
"""Terms of the largest polynomial: products of sums grow without bound."""
FIX = "give the sizes: dims={...}, --dim NAME=SIZE or the pass specialize-dims"
"""What to do where sizes must be numbers."""
UNDECIDED = "dynamic-shape"
"""Code of the errors about a question that symbols leave open."""


@dataclass(frozen=True)
class Call:
    """``floordiv``, ``max`` or ``min`` of two dimensions."""

    name: str
    args: tuple[int, int]

    def __str__(self) -> str:
        first, second = self.args
        if self.name in ("floordiv", "mod"):
            return f"{_wrapped(first)} {self.name} {_wrapped(second)}"
        return f"{self.name}({first}, {second})"


Atom = str | Call
Monomial = tuple[Atom, ...]
"""Atoms in order, one for each power; () is 1."""
Terms = tuple[tuple[Monomial, int], ...]


class Dim:
    """A size that depends on symbols. Immutable; never constant: constants are ints."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Terms):
        self.terms = terms
        self._hash = hash(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            size = "" if abs(factor) == 1 and monomial else str(abs(factor))
            atoms = [
                f"({atom})" if isinstance(atom, Call) and atom.name in ("floordiv", "mod") else str(atom)
                for atom in monomial
            ]
            sign = ("- " if factor < 0 else "+ ") if text else ("-" if factor < 0 else "")
            text += (" " if text else "") + sign + " * ".join([size] * bool(size) + atoms)
        return text

    __repr__ = __str__

    def __add__(self, other: int) -> int:
        return _from({**dict(self.terms)}, terms_of(other))

    __radd__ = __add__

    def __neg__(self) -> int:
        return self * -1

    def __sub__(self, other: int) -> int:
        return self + other * -1

    def __rsub__(self, other: int) -> int:
        return self * -1 + other

    def __mul__(self, other: int) -> int:
        found: dict[Monomial, int] = {}
        for monomial, factor in self.terms:
            for more, by in terms_of(other):
                product = tuple(sorted((*monomial, *more), key=str))
                found[product] = found.get(product, 0) + factor * by
        return _from(found)

    __rmul__ = __mul__

    def __pow__(self, power: int) -> int:
        if power < 0 or power > 8:
            raise QcompError(f"{self} to the power {power} is no size", code=UNDECIDED)
        return reduce(lambda total, _: total * cast(int, self), range(power), 1)

    def __floordiv__(self, other: int) -> int:
        return floor_divide(cast(int, self), other)

    def __rfloordiv__(self, other: int) -> int:
        return floor_divide(other, cast(int, self))

    def __mod__(self, other: int) -> int:
        return self - (self // other) * other

    def __rmod__(self, other: int) -> int:
        return other - (other // self) * self

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __lt__(self, other: int) -> bool:
        return self._compare(other, "<")

    def __le__(self, other: int) -> bool:
        return self._compare(other, "<=")

    def __gt__(self, other: int) -> bool:
        return self._compare(other, ">")

    def __ge__(self, other: int) -> bool:
        return self._compare(other, ">=")

    def _compare(self, other: int, sign: str) -> bool:
        # At least 0 is asked, of `size`; the answer for the others is the opposite.
        size = self - other if sign in (">=", "<") else other - self
        low, high = bounds(size)
        asked = DECIDER.get() if low < 0 <= high else None
        answer = (low >= 0) if low >= 0 or high < 0 else asked.at_least_0(size) if asked is not None else None
        if answer is not None:
            return answer == (sign in (">=", "<="))
        raise QcompError(f"whether {self} {sign} {other} depends on the sizes", code=UNDECIDED, hint=FIX)

    def __bool__(self) -> bool:
        return self != 0 and not self._compare(0, "<=")

    def __index__(self) -> int:
        raise QcompError(f"a number is needed here, the size is {self}", code=UNDECIDED, hint=FIX)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __truediv__(self, other: float) -> float:
        return self.__index__() / other

    def __rtruediv__(self, other: float) -> float:
        return other / self.__index__()


class Decider(Protocol):
    """Answers what intervals leave open: see `qcomp.dialects.facts`."""

    def at_least_0(self, size: int) -> bool | None:
        """Whether `size` is never negative; None when that is not known."""
        ...


DECIDER: ContextVar[Decider | None] = ContextVar("DECIDER", default=None)
"""Who is asked by comparisons that depend on the sizes."""


def symbol(name: str) -> int:
    """The symbol called `name`."""
    return cast(int, Dim((((name,), 1),)))


def is_symbolic(size: object) -> bool:
    """Whether `size` depends on symbols."""
    return isinstance(size, Dim)


def symbols_of(sizes: Iterable[int]) -> list[str]:
    """The names of the symbols in `sizes`, in order of appearance."""
    found: dict[str, None] = {}
    for size in sizes:
        for monomial, _ in size.terms if isinstance(size, Dim) else ():
            for atom in monomial:
                found.update(dict.fromkeys(symbols_of(atom.args) if isinstance(atom, Call) else [atom]))
    return list(found)


def substitute(size: int, values: Mapping[str, int]) -> int:
    """`size` with the symbols of `values` replaced. Raises QcompError for a division by 0."""
    if not isinstance(size, Dim):
        return size
    total = 0
    for monomial, factor in size.terms:
        for atom in monomial:
            factor = _replaced(atom, values) * factor
        total = factor + total
    return total


def _replaced(atom: Atom, values: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return values[atom] if atom in values else symbol(atom)
    first, second = (substitute(arg, values) for arg in atom.args)
    return FUNCTIONS[atom.name](first, second)


def bounds(size: int, symbols: Mapping[str, tuple[float, float]] | None = None) -> tuple[float, float]:
    """An interval that holds `size`; `symbols` gives those of symbols, by default 0 and more."""
    if not isinstance(size, Dim):
        return size, size
    from qcomp.dialects.intervals import interval

    return interval(cast(int, size), symbols)


def floor_divide(size: int, by: int) -> int:
    """``size // by``, rounded down. Raises QcompError for a division by 0."""
    if by == 0:
        raise QcompError(f"{size} is divided by 0", code=UNDECIDED)
    if not isinstance(size, Dim) and not isinstance(by, Dim):
        return size // by
    exact = _exact_quotient(size, by)
    if exact is not None:
        return exact
    if isinstance(by, Dim):
        return _call("floordiv", size, by)
    if by < 0:
        return floor_divide(size * -1, -by)
    whole = {monomial: factor // by for monomial, factor in terms_of(size)}
    rest = _from({monomial: factor % by for monomial, factor in terms_of(size)})
    if not isinstance(rest, Dim):
        return _from(whole)  # The constant's floor is the floor: all else divides.
    return _from(whole) + _small_quotient(rest, by)


def _small_quotient(size: Dim, by: int) -> int:
    """``size // by`` with coefficients from 0 to by - 1: a common factor taken out, nested divisions joined."""
    common = reduce(gcd, (factor for monomial, factor in size.terms if monomial), by)
    if common > 1:
        terms = {monomial: factor // common for monomial, factor in size.terms}
        return floor_divide(_from(terms), by // common)
    if 2 * size.terms[0][1] > by:
        # floor(x / b) is -ceil(-x / b): one form for both spellings of a size rounded up, with small factors.
        return -floor_divide(by - 1 - cast(int, size), by)
    ((atom, *others), factor), *constant = size.terms
    plain = factor == 1 and not others and len(constant) <= 1 and not any(monomial for monomial, _ in constant)
    if plain and isinstance(atom, Call) and atom.name == "floordiv" and not isinstance(atom.args[1], Dim):
        return floor_divide(atom.args[0] + sum(number for _, number in constant) * atom.args[1], atom.args[1] * by)
    return _call("floordiv", cast(int, size), by)


def _exact_quotient(size: int, by: int) -> int | None:
    """The polynomial that times `by` is `size`; None when there is none."""
    quotient, rest = 0, size
    (lead, lead_factor), *_ = terms_of(by)
    for _ in range(MAX_TERMS):
        if rest == 0:
            return quotient
        monomial, factor = terms_of(rest)[0]
        atoms = _without(monomial, lead)
        if atoms is None or factor % lead_factor:
            return None
        term = _from({atoms: factor // lead_factor})
        quotient, rest = quotient + term, rest - term * by
    return None


def _without(monomial: Monomial, lead: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in lead:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def ceil_divide(size: int, by: int) -> int:
    """``size / by``, rounded up."""
    return floor_divide(size * -1, by) * -1 if isinstance(by, Dim) else floor_divide(size + by - 1, by)


def times_real(size: int, by: float) -> int:
    """``floor(size * by)`` for a number whose products with sizes are exact: a whole number of 1024ths, 0 or more.

    Raises QcompError for other numbers.
    """
    parts, rest = divmod(by * 1024, 1)
    if rest or not 0 <= parts < 2**30:
        raise QcompError(f"a size {size} times {by} is not supported", code=UNDECIDED, hint="use a whole number")
    return floor_divide(size * int(parts), 1024)


def modulo(size: int, by: int) -> int:
    """``size mod by``, of the sign of `by`."""
    return size - floor_divide(size, by) * by


def larger(first: int, second: int) -> int:
    """The larger of two dimensions."""
    return _extreme("max", first, second)


def smaller(first: int, second: int) -> int:
    """The smaller of two dimensions."""
    return _extreme("min", first, second)


def _extreme(name: str, first: int, second: int) -> int:
    low, high = bounds(first - second)
    if low >= 0 or high <= 0:
        return first if (low >= 0) == (name == "max") else second
    return _call(name, *sorted((first, second), key=str))


FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": floor_divide, "ceildiv": ceil_divide, "mod": modulo, "max": larger, "min": smaller,
}  # fmt: skip
"""Functions of two dimensions, by the names they have in text."""


def _call(name: str, first: int, second: int) -> int:
    return cast(int, Dim((((Call(name, (first, second)),), 1),)))


def terms_of(size: int) -> Terms:
    """The terms of a number or symbolic size. Raises QcompError for other objects."""
    if isinstance(size, Dim):
        return size.terms
    try:
        return (((), index(size)),)
    except TypeError:
        raise QcompError(f"sizes do not go together with {size}", code=UNDECIDED, hint=FIX) from None


def _from(terms: Mapping[Monomial, int], more: Terms = ()) -> int:
    """The sum of `terms` and `more`: an int when nothing depends on a symbol."""
    found = dict(terms)
    for monomial, factor in more:
        found[monomial] = found.get(monomial, 0) + factor
    kept = [(monomial, factor) for monomial, factor in found.items() if factor]
    if not any(monomial for monomial, _ in kept):
        return sum(factor for _, factor in kept)
    if len(kept) > MAX_TERMS:
        raise QcompError(f"a size of more than {MAX_TERMS} terms", code=UNDECIDED)
    return cast(int, Dim(tuple(sorted(kept, key=_rank))))


def _rank(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    return -len(term[0]), tuple(map(str, term[0]))


def _wrapped(size: int) -> str:
    single = not isinstance(size, Dim) or (len(size.terms) == 1 and size.terms[0] == ((str(size),), 1))
    return str(size) if single and str(size)[0] != "-" else f"({size})"
