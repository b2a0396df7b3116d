# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes: the expressions torch.export uses for dynamic dimensions, as a small closed type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

from qcomp.dialects import dim as dims
from qcomp.errors import QcompError

Number = int | float | bool


@dataclass(frozen=True)
class Expr:
    """``op`` applied to ``args``; a symbol is ``Expr("symbol", ("s0",))``, plain numbers stand for themselves."""

    op: str
    args: tuple[Expr | int | float | bool | str, ...]

    def __str__(self) -> str:
        if self.op == "symbol":
            return str(self.args[0])
        shown = [f"({arg})" if isinstance(arg, Expr) and arg.op in _INFIX else str(arg) for arg in self.args]
        if self.op in _INFIX:
            return f" {_INFIX[self.op]} ".join(shown)
        return f"{self.op}({', '.join(str(arg) for arg in self.args)})"

    def symbols(self) -> frozenset[str]:
        """The names of the symbols in the expression."""
        if self.op == "symbol":
            return frozenset((str(self.args[0]),))
        return frozenset(name for arg in self.args if isinstance(arg, Expr) for name in arg.symbols())

    def evaluate(self, values: Mapping[str, Number]) -> Number:
        """The number the expression stands for; raises QcompError when a symbol has no value or on division by 0."""
        if self.op == "symbol":
            name = str(self.args[0])
            if name not in values:
                raise QcompError(f"symbol {name} has no value", code="symbol")
            return values[name]
        operands = [arg.evaluate(values) if isinstance(arg, Expr) else arg for arg in self.args]
        try:
            result: Number = _MEANING[self.op](*operands)
            return result
        except (ArithmeticError, TypeError, ValueError, IndexError) as error:
            raise QcompError(f"{self} has no value: {error}", code="symbol") from None


    def dim(self) -> int:
        """The expression as a size of the IR. Raises QcompError for operations that sizes do not have."""
        if self.op == "symbol":
            return dims.symbol(str(self.args[0]))
        inner = self.args[0]
        if self.op in _ROUNDED and isinstance(inner, Expr) and inner.op == "truediv":
            return _ROUNDED[self.op](*map(_size, inner.args))
        if self.op in ("trunc", "floor") and isinstance(inner, Expr) and inner.op == "mul" and len(inner.args) == 2:
            factor, size = sorted(inner.args, key=lambda arg: isinstance(arg, Expr))
            if isinstance(factor, float) and isinstance(size, Expr) and size.op == "float":
                return dims.times_real(_size(size.args[0]), factor)
        if self.op == "pow" and isinstance(self.args[1], int):
            return _size(inner) ** self.args[1]
        if self.op not in _SIZES:
            raise QcompError(f"a size {self} is not supported", code="dynamic-shape")
        return reduce(_SIZES[self.op], map(_size, self.args))


def _size(value: Expr | float | bool | str) -> int:
    if isinstance(value, Expr):
        return value.dim()
    if not isinstance(value, int):
        raise QcompError(f"a size of {value} is not supported", code="dynamic-shape")
    return value


_SIZES: dict[str, Callable[[int, int], int]] = {"add": operator.add, "mul": operator.mul, **dims.FUNCTIONS}
_ROUNDED: dict[str, Callable[[int, int], int]] = {
    "floor": dims.floor_divide, "trunc": dims.floor_divide, "ceil": dims.ceil_divide,
}  # fmt: skip

Dim = int | Expr
"""A dimension: static, or an expression over symbols."""


def symbol(name: str) -> Expr:
    """The symbol called `name`."""
    return Expr("symbol", (name,))


_INFIX = {"add": "+", "mul": "*", "pow": "**", "floordiv": "//", "mod": "%", "truediv": "/"}


def _power(base: Number, exponent: Number) -> Any:
    if abs(exponent) * (int(abs(base)).bit_length() if abs(base) < 2.0**256 else 257) > 256:
        raise OverflowError("power too large")
    return base**exponent


_MEANING: dict[str, Callable[..., Any]] = {
    "add": lambda *v: sum(v),
    "mul": lambda *v: prod(v),
    "pow": _power,
    "floordiv": lambda *v: v[0] // v[1],
    "ceildiv": lambda *v: -(-v[0] // v[1]),
    "truediv": lambda *v: v[0] / v[1],
    "mod": operator.mod,
    "max": lambda *v: max(v),
    "min": lambda *v: min(v),
    "abs": operator.abs,
    "float": float,
    "trunc": int,
    "floor": lambda *v: math.floor(v[0]),
    "ceil": lambda *v: math.ceil(v[0]),
    "round": lambda *v: round(v[0]),
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": lambda *v: all(v),
    "or": lambda *v: any(v),
    "not": operator.not_,
    "where": lambda *v: v[1] if v[0] else v[2],
}
