# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index expressions and sizes as C text.

Kernels spell sizes out where they stand. The entry function calls every kernel with offsets into the arena, sums of
many products and quotients, so there each size is a local variable, computed once (`SizeNames`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from qcomp.backend.emit_c.names import distinct
from qcomp.dialects.dim import Atom, Call, Dim, Monomial
from qcomp.errors import QcompError


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a row-major buffer."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def linear(expr: AffineExpr, names: Sequence[str], dims: int = 0) -> tuple[dict[str, int], int]:
    """`expr` as factors of C expressions and a constant. Operands are never negative where they are divided."""
    match expr:
        case AffineConstantExpr():
            return {}, expr.value
        case AffineSymExpr():
            return _name(names[dims + expr.position])
        case AffineBinaryOpExpr():
            left, left_constant = linear(expr.lhs, names, dims)
            right, right_constant = linear(expr.rhs, names, dims)
            if expr.kind == AffineBinaryOpKind.Add:
                merged = dict(left)
                for name, factor in right.items():
                    merged[name] = merged.get(name, 0) + factor
                return merged, left_constant + right_constant
            if expr.kind == AffineBinaryOpKind.Mul and (not right or not left):
                factor, terms, constant = (right_constant, left, left_constant) if not right else (
                    left_constant, right, right_constant
                )  # fmt: skip
                return {name: factor * value for name, value in terms.items()}, factor * constant
            return _divided(expr.kind, linear_text(left, left_constant), right_constant)
        case _:
            return _name(names[cast(AffineDimExpr, expr).position])


def _name(text: str) -> tuple[dict[str, int], int]:
    return ({}, int(text)) if text.lstrip("-").isdigit() else ({text: 1}, 0)


def _divided(kind: AffineBinaryOpKind, text: str, divisor: int) -> tuple[dict[str, int], int]:
    match kind:
        case AffineBinaryOpKind.FloorDiv:
            return _name(f"(({text}) / {divisor})")
        case AffineBinaryOpKind.CeilDiv:
            return _name(f"(({text} + {divisor - 1}) / {divisor})")
        case AffineBinaryOpKind.Mod:
            return _name(f"(({text}) % {divisor})")
        case _:
            raise QcompError(f"index expression {text} is not affine", code="emit")


def linear_text(terms: dict[str, int], constant: int) -> str:
    """A linear expression as C text."""
    parts = [name if factor == 1 else f"{factor} * {name}" for name, factor in terms.items() if factor]
    if constant or not parts:
        parts.append(str(constant))
    return " + ".join(parts).replace("+ -", "- ")


def size_text(size: int, symbols: Mapping[str, str]) -> str:
    """A size as a C expression over the C names of symbols, in parentheses where it is a sum."""
    if not isinstance(size, Dim):
        return str(size)
    text = linear_text(
        {
            " * ".join(atom_text(atom, symbols) for atom in monomial): factor
            for monomial, factor in size.terms
            if monomial
        },
        sum(factor for monomial, factor in size.terms if not monomial),
    )
    return f"({text})" if len(size.terms) > 1 else text


def atom_text(atom: Atom, symbols: Mapping[str, str]) -> str:
    """A symbol, quotient, maximum or minimum as C text."""
    if isinstance(atom, str):
        if atom not in symbols:
            raise QcompError(f"no input gives the size of {atom}", code="emit")
        return symbols[atom]
    first, second = (size_text(arg, symbols) for arg in atom.args)
    return call_text(atom.name, first, second)


def call_text(name: str, first: str, second: str) -> str:
    """``floordiv``, ``max`` or ``min`` of two C expressions."""
    if name == "floordiv":
        return f"floor_divide({first}, {second})"
    return f"({first} {'>' if name == 'max' else '<'} {second} ? {first} : {second})"


def times(terms: Mapping[str, int], constant: int, stride: int, symbols: Mapping[str, str]) -> dict[str, int]:
    """A linear expression times a stride that depends on symbols."""
    assert isinstance(stride, Dim)
    found: dict[str, int] = {}
    for monomial, by in stride.terms:
        size = " * ".join(atom_text(atom, symbols) for atom in monomial)
        for name, factor in {**terms, "": constant}.items():
            text = " * ".join(part for part in (name, size) if part)
            merge(found, {text or "1": factor * by})
    return {text: factor for text, factor in found.items() if factor}


def merge(terms: dict[str, int], more: Mapping[str, int]) -> None:
    """Add `more` to `terms`."""
    for name, factor in more.items():
        terms[name] = terms.get(name, 0) + factor


class SizeNames:
    """Local variables of a function for the sizes that are more than a multiple of one symbol.

    lines: their definitions, in order. symbols: the C names of symbols; taken: names that may not be used.
    """

    def __init__(self, symbols: Mapping[str, str], taken: set[str]):
        self.lines: list[str] = []
        self._symbols = symbols
        self._taken = taken
        self._names: dict[Dim | Monomial | Call, str] = {}

    def text(self, size: int) -> str:
        """The C text of `size`: a name where it is a sum; products and quotients within it have names, too."""
        if not isinstance(size, Dim):
            return str(size)
        if size not in self._names:
            terms = {self._product(monomial): factor for monomial, factor in size.terms if monomial}
            text = linear_text(terms, sum(factor for monomial, factor in size.terms if not monomial))
            self._names[size] = text if len(size.terms) == 1 else self._define(text)
        return self._names[size]

    def _product(self, monomial: Monomial) -> str:
        factors = [self._atom(atom) for atom in monomial]
        if len(factors) == 1:
            return factors[0]
        if monomial not in self._names:
            self._names[monomial] = self._define(" * ".join(factors))
        return self._names[monomial]

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, str):
            return atom_text(atom, self._symbols)
        if atom not in self._names:
            first, second = (self.text(argument) for argument in atom.args)
            self._names[atom] = self._define(call_text(atom.name, first, second))
        return self._names[atom]

    def _define(self, text: str) -> str:
        name = distinct(f"size_{len(self.lines)}", self._taken)
        self.lines.append(f"  const int64_t {name} = {text};")
        return name
