# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read NAME.h: sizes and ports of an artifact whose library does not export them (format version 1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qcomp.dialects.binding import Symbol
from qcomp.dialects.dim import FUNCTIONS, symbol

_PORT = re.compile(r"^ \*   \w+: (input|output), (\w+)\[(.*)\]", re.MULTILINE)
_SYMBOL = re.compile(r"^ \*   (\w+): size, (-?\d+) (?:to (-?\d+)|or more)$", re.MULTILINE)
_TOKEN = re.compile(r"\d+|\w+|[-+*()?:<>,]")


@dataclass(frozen=True)
class HeaderPort:
    """A line about an input or output. sizes: over the C names of symbols; None where the text does not parse."""

    role: str
    c_type: str
    sizes: Sequence[int] | None
    text: str


def macro(header: str, name: str) -> int:
    """The number that `name` is defined as; 0 when there is none."""
    found = re.search(rf"^#define {name} (\d+)$", header, re.MULTILINE)
    return int(found[1]) if found else 0


def header_symbols(header: str) -> list[Symbol]:
    """The symbols by their C names, in order."""
    return [Symbol(name, int(low), int(high) if high else None) for name, low, high in _SYMBOL.findall(header)]


def header_ports(header: str) -> list[HeaderPort]:
    """The inputs and outputs, in order."""
    return [HeaderPort(role, kind, parse_sizes(sizes), sizes) for role, kind, sizes in _PORT.findall(header)]


def parse_sizes(text: str) -> list[int] | None:
    """Sizes out of C expressions between commas, or None. The closing parenthesis of a call may be missing.

    sizes ::= expression {"," expression}
    expression ::= sum [("<" | ">") sum "?" sum ":" sum]      the smaller or the larger of two
    sum ::= ["-"] product {("+" | "-") product};  product ::= factor {"*" factor}
    factor ::= number | name | "floor_divide" "(" sum "," sum ")" | "(" expression ")"
    """
    if not text:
        return []
    tokens = _Tokens(text)
    try:
        sizes = [_expression(tokens)]
        while tokens.take(","):
            sizes.append(_expression(tokens))
    except (ValueError, RecursionError):
        return None
    return None if tokens.next else sizes


class _Tokens:
    """The tokens of an expression; `next` is the one ahead, empty at the end."""

    def __init__(self, text: str):
        self._rest: Iterator[str] = iter(_TOKEN.findall(text))
        self.next = next(self._rest, "")

    def take(self, *wanted: str) -> str:
        """The token ahead when it is one of `wanted`, by default any; else an empty text."""
        token = self.next
        if wanted and token not in wanted:
            return ""
        self.next = next(self._rest, "")
        return token

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise ValueError(f"expected {token}")


def _expression(tokens: _Tokens) -> int:
    first = _sum(tokens)
    compare = tokens.take("<", ">")
    if not compare:
        return first
    second = _sum(tokens)
    for mark in ("?", ":"):
        tokens.expect(mark)
        _sum(tokens)
    return FUNCTIONS["min" if compare == "<" else "max"](first, second)


def _sum(tokens: _Tokens) -> int:
    total = -_product(tokens) if tokens.take("-") else _product(tokens)
    while sign := tokens.take("+", "-"):
        total = total + _product(tokens) * (1 if sign == "+" else -1)
    return total


def _product(tokens: _Tokens) -> int:
    total = _factor(tokens)
    while tokens.take("*"):
        total = total * _factor(tokens)
    return total


def _factor(tokens: _Tokens) -> int:
    token = tokens.take()
    if token.isdigit():
        return int(token)
    if token == "(":
        inner = _expression(tokens)
        tokens.expect(")")
        return inner
    if token == "floor_divide":
        tokens.expect("(")
        first = _sum(tokens)
        tokens.expect(",")
        second = _sum(tokens)
        tokens.take(")")
        return FUNCTIONS["floordiv"](first, second)
    if not token.isidentifier():
        raise ValueError(f"unexpected {token}")
    return symbol(token)
