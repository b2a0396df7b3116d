# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads symbolic sizes from text.

A .pt2 file holds them either in sympy's constructor form (``Mul(Integer(2), Symbol('s0', integer=True))``) or infix
(``2*s0``). torch evaluates that text; here a parser that knows a fixed list of functions reads it, so a hostile file
can neither run code nor exhaust memory.
"""

from __future__ import annotations

import re
from functools import lru_cache

from qcomp.errors import QcompError
from qcomp.frontend.symbols import Expr, Number, symbol

MAX_TEXT = 4096
"""Longest accepted expression text."""
MAX_DEPTH = 48
"""Deepest accepted nesting of parentheses and calls."""
MAX_OPERATORS = 256
"""Most infix operators in one expression; each may nest the result by one."""

# sympy and torch class names -> our operation; torch.utils._sympy.functions defines the second half.
_FUNCTIONS = {
    "Add": "add",
    "Mul": "mul",
    "Pow": "pow",
    "Max": "max",
    "Min": "min",
    "Abs": "abs",
    "Rational": "truediv",
    "Eq": "eq",
    "Equality": "eq",
    "Ne": "ne",
    "Unequality": "ne",
    "StrictLessThan": "lt",
    "LessThan": "le",
    "StrictGreaterThan": "gt",
    "GreaterThan": "ge",
    "And": "and",
    "Or": "or",
    "Not": "not",
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "CeilDiv": "ceildiv",
    "IntTrueDiv": "truediv",
    "FloatTrueDiv": "truediv",
    "Mod": "mod",
    "PythonMod": "mod",
    "PowByNatural": "pow",
    "FloatPow": "pow",
    "ToFloat": "float",
    "TruncToInt": "trunc",
    "TruncToFloat": "trunc",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "RoundToInt": "round",
    "Where": "where",
    "floor": "floor",
    "ceiling": "ceil",
}
_CONSTANTS: dict[str, bool] = {"true": True, "True": True, "false": False, "False": False}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<string>'[^'\\]*')|(?P<mark>\*\*|//|[-+*/%(),=]))"
)
# mark -> (operation, binding strength); ** is right associative
_BINARY = {
    "+": ("add", 1),
    "-": ("sub", 1),
    "*": ("mul", 2),
    "/": ("truediv", 2),
    "//": ("floordiv", 2),
    "%": ("mod", 2),
}


@lru_cache(maxsize=4096)
def parse_expr(text: str) -> Expr | Number:
    """The expression written in `text`. Raises QcompError for anything outside the known functions."""
    if len(text) > MAX_TEXT:
        raise QcompError(f"symbolic size of {len(text)} characters is too long", code="malformed-pt2")
    return Parser(text).parse()


class Parser:
    """Precedence climbing over the tokens of one expression. Subclasses read other atoms."""

    token_pattern = _TOKEN

    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self.depth = self.operators = 0
        self.kind = self.token = ""
        self.advance()

    def fail(self) -> QcompError:
        return QcompError(f"cannot read symbolic size {self.text[:80]!r}", code="malformed-pt2")

    def advance(self) -> None:
        match = self.token_pattern.match(self.text, self.position)
        if match is None:
            if self.text[self.position :].strip():
                raise self.fail()
            self.kind = self.token = ""
            return
        self.position = match.end()
        self.kind, self.token = str(match.lastgroup), match.group(str(match.lastgroup))

    def expect(self, mark: str) -> None:
        if self.token != mark:
            raise self.fail()
        self.advance()

    def parse(self) -> Expr | Number:
        result = self.binary(0)
        if self.kind:
            raise self.fail()
        return result

    def binary(self, strength: int) -> Expr | Number:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail()
        left = self.unary()
        while self.kind == "mark" and self.token in _BINARY and _BINARY[self.token][1] > strength:
            operation, inner = _BINARY[self.token]
            self.operators += 1
            if self.operators > MAX_OPERATORS:
                raise self.fail()
            self.advance()
            right = self.binary(inner)
            left = make("add", left, make("mul", -1, right)) if operation == "sub" else make(operation, left, right)
        self.depth -= 1
        return left

    def unary(self) -> Expr | Number:
        if self.token == "-" and self.kind == "mark":
            self.advance()
            return make("mul", -1, self.binary(2))
        base = self.atom()
        if self.token == "**":
            self.advance()
            return make("pow", base, self.binary(2))
        return base

    def atom(self) -> Expr | Number:
        kind, token = self.kind, self.token
        self.advance()
        if kind == "number":
            return int(token) if token.isdigit() and len(token) <= 20 else float(token)
        if kind == "mark" and token == "(":
            inner = self.nested()
            self.expect(")")
            return inner
        if kind != "name":
            raise self.fail()
        if self.token == "(":
            return self.call(token)
        return _CONSTANTS[token] if token in _CONSTANTS else symbol(token)

    def nested(self) -> Expr | Number:
        """What stands in parentheses, or is an argument."""
        return self.binary(0)

    def call(self, name: str) -> Expr | Number:
        if name in ("Symbol", "Float"):
            return self.named(name)
        arguments = self.arguments()
        if name in ("Integer", "Identity") and len(arguments) == 1:
            return arguments[0]
        if name not in _FUNCTIONS or not arguments:
            raise QcompError(f"symbolic size uses {name[:40]!r}, which qcomp does not know", code="unsupported-symbol")
        return make(_FUNCTIONS[name], *arguments)

    def named(self, name: str) -> Expr | Number:
        """``Symbol('s0', assumptions...)`` or ``Float('1.5', precision=53)``."""
        self.expect("(")
        if self.kind != "string":
            raise self.fail()
        content = self.token[1:-1]
        self.advance()
        while self.token == ",":
            self.advance()
            self.keyword()
        self.expect(")")
        if name == "Symbol":
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", content):
                raise self.fail()
            return symbol(content)
        try:
            return float(content)
        except ValueError:
            raise self.fail() from None

    def keyword(self) -> None:
        """An assumption such as ``positive=True``; it does not change the value."""
        if self.kind != "name":
            raise self.fail()
        self.advance()
        self.expect("=")
        if self.kind not in ("name", "number"):
            raise self.fail()
        self.advance()

    def arguments(self) -> list[Expr | Number]:
        self.expect("(")
        found: list[Expr | Number] = []
        while self.token != ")":
            found.append(self.nested())
            if self.token == "," and self.kind == "mark":
                self.advance()
            elif self.token != ")":
                raise self.fail()
        self.advance()
        return found


def make(operation: str, *args: Expr | Number) -> Expr | Number:
    """`operation` on `args`, folded when all are numbers."""
    expression = Expr(operation, args)
    if any(isinstance(arg, Expr) for arg in args):
        return expression
    return expression.evaluate({})
