# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NAME_sizes_ok: which sizes NAME_run takes, as a C function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qcomp.backend.emit_c.function import size_text
from qcomp.backend.emit_c.names import comment
from qcomp.dialects.binding import Symbol
from qcomp.dialects.dim import Call, Dim
from qcomp.dialects.guard import Guard

LIMITS = tuple(1 << bits for bits in range(40, 7, -1))
"""The sizes up to which conditions are computed; the first for which nothing leaves 64 bits is taken."""


@dataclass(frozen=True)
class SizeCheck:
    """The check of the sizes `symbols`, called as `names` says, for the program `name`."""

    name: str
    symbols: Sequence[Symbol]
    names: Mapping[str, str]
    guards: Sequence[Guard]

    def declaration(self) -> str:
        """The lines of the header."""
        if not self.symbols:
            return ""
        notes = [f" *   {comment(text)}" for text in self._texts()]
        end = [" */"] if notes else []
        more = ":" if notes else ". */"
        head = f"/* 1 when the sizes are such that {self.name}_run takes them, else 0: they are in their ranges below"
        head += f",\n   at most {self._limit()}{', and' if notes else ''}{more}"
        return "\n".join([head, *notes, *end, f"{self._head()};", ""])

    def definition(self) -> str:
        """The function."""
        if not self.symbols:
            return ""
        lines = [f"{self._head()} {{"]
        for symbol in self.symbols:
            limit = self._limit() if symbol.high is None else min(symbol.high, self._limit())
            text = self.names[symbol.name]
            lines.append(f"  if ({text} < {symbol.low} || {text} > {limit}) return 0;")
        tested: set[int] = set()
        for guard in self.guards:
            for divisor in _divisors(guard.size):
                if divisor not in tested:
                    tested.add(divisor)
                    lines.append(f"  if ({size_text(divisor, self.names)} == 0) return 0;")
            lines.append(f"  if (!({size_text(guard.size, self.names)} {guard.relation} 0)) return 0;")
        return "\n".join([*lines, "  return 1;", "}", ""])

    def _head(self) -> str:
        sizes = ", ".join(f"int64_t {text}" for text in self.names.values())
        return f"int {self.name}_sizes_ok({sizes})"

    def _texts(self) -> Iterator[str]:
        for guard in self.guards:
            yield f"{guard}{f'  ({guard.note})' if guard.note else ''}"

    def _limit(self) -> int:
        for limit in LIMITS:
            ends = {item.name: limit if item.high is None else min(item.high, limit) for item in self.symbols}
            if all(_magnitude(guard.size, ends) < 1 << 62 for guard in self.guards):
                return limit
        return LIMITS[-1]


def _magnitude(size: int, ends: Mapping[str, int]) -> int:
    """A number that no part of `size` is above, nor below its negative, for symbols from 0 to `ends`."""
    total = 0
    for monomial, factor in size.terms if isinstance(size, Dim) else (((), size),):
        product = abs(factor)
        for atom in monomial:
            product *= max(1, max(_magnitude(arg, ends) for arg in atom.args) if isinstance(atom, Call) else ends[atom])
        total += product
    return total


def _divisors(size: int) -> Iterator[int]:
    """The divisors with symbols in `size`, inner ones first."""
    for monomial, _ in size.terms if isinstance(size, Dim) else ():
        for atom in monomial:
            for arg in atom.args if isinstance(atom, Call) else ():
                yield from _divisors(arg)
            if isinstance(atom, Call) and atom.name == "floordiv" and isinstance(atom.args[1], Dim):
                yield atom.args[1]
