# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes as plain data for JSON."""

from __future__ import annotations

from typing import Any, cast

from qcomp.dialects.dim import FUNCTIONS, Atom, Dim, symbol


def to_plain(size: int) -> object:
    """`size` as plain data for JSON: an int, or a list of [factor, atoms]."""
    if not isinstance(size, Dim):
        return size
    return [[factor, [_plain_atom(atom) for atom in monomial]] for monomial, factor in size.terms]


def _plain_atom(atom: Atom) -> object:
    return atom if isinstance(atom, str) else [atom.name, *map(to_plain, atom.args)]


def from_plain(data: Any) -> int:
    """What `to_plain` gave. Raises TypeError, ValueError or KeyError for anything else."""
    if type(data) is int:
        return data
    terms = cast("list[Any]", data)
    if not isinstance(data, list) or not data or not all(isinstance(atoms, list) for _, atoms in terms):
        raise TypeError("a size is a whole number or a list of terms")
    total = 0
    for factor, atoms in terms:
        term = from_plain(factor)
        for atom in atoms:
            known = symbol(atom) if isinstance(atom, str) else FUNCTIONS[atom[0]](*map(from_plain, atom[1:]))
            term = known * term
        total = term + total
    return total
