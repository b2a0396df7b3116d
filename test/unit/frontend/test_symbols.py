# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes: what torch writes is read, anything else is refused without being run."""

from __future__ import annotations

import pytest

from qcomp.errors import QcompError
from qcomp.frontend.symbol_text import parse_expr
from qcomp.frontend.symbols import Expr, symbol

SYMBOL = "Symbol('s0', positive=True, integer=True)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SYMBOL, 7),
        (f"Mul(Integer(2), {SYMBOL})", 14),
        (f"Add(Integer(-3), {SYMBOL}, {SYMBOL})", 11),
        (f"FloorDiv(Add({SYMBOL}, Integer(1)), Integer(3))", 2),
        (f"PythonMod({SYMBOL}, Integer(4))", 3),
        (f"Max(Integer(1), Min({SYMBOL}, Integer(5)))", 5),
        (f"Pow({SYMBOL}, Integer(2))", 49),
        (f"CeilToInt(IntTrueDiv({SYMBOL}, Integer(2)))", 4),
        (f"Where(GreaterThan({SYMBOL}, Integer(7)), Integer(1), Integer(0))", 1),
        ("2*s0 + 1", 15),
        ("(s0 + 3)//4", 2),
        ("s0 - 2 - 1", 4),
        ("-s0**2", -49),
        ("2**3**2 - 500", 12),
        ("s0 % 4 * 2", 6),
        ("12", 12),
    ],
)
def test_values(text: str, expected: int) -> None:
    found = parse_expr(text)
    assert (found.evaluate({"s0": 7}) if isinstance(found, Expr) else found) == expected


def test_symbols_and_text() -> None:
    found = parse_expr(f"Add(Mul(Integer(2), {SYMBOL}), Symbol('u1'))")
    assert isinstance(found, Expr)
    assert found.symbols() == {"s0", "u1"}
    assert str(found) == "(2 * s0) + u1"
    assert parse_expr("2*s0 + u1") == found
    assert parse_expr(SYMBOL) == symbol("s0")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch pwned')",
        "Symbol('s0').__class__",
        "eval('1')",
        "open('x')",
        "lambda: 1",
        "Symbol('s0'; 1)",
        "Symbol('a\nb')",
        'Symbol("s0")',
        "Integer(1",
        "s0 s1",
        "",
        "(" * 3000 + "1" + ")" * 3000,
        "-" * 4000 + "1",
        "1+" * 3000 + "1",
        "9**9**9**9",
        "Pow(Pow(Pow(Integer(99999999), Integer(64)), Integer(64)), Integer(64))",
        "1//0",
        "s0[0]",
        "Add()",
        "Symbol('" + "s" * 100 + "')",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(QcompError):
        parse_expr(text)


def test_missing_symbol() -> None:
    with pytest.raises(QcompError, match="s0 has no value"):
        symbol("s0").evaluate({})
