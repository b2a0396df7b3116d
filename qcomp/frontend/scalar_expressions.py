# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the graph that are computed at run time, from sizes and from elements of tensors, as 0-d tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from qcomp.dialects.nn import AddOp, DivOp, MulOp, RsqrtOp, SqrtOp
from qcomp.errors import QcompError
from qcomp.frontend.symbols import Expr, Number

if TYPE_CHECKING:
    from qcomp.frontend.builder import Builder

REAL: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "add": AddOp, "mul": MulOp, "truediv": DivOp, "pow": AddOp, "float": AddOp,
}  # fmt: skip
"""The operations on real numbers that sizes take part in; `pow` and `float` have forms of their own."""


def whole_number(b: Builder, value: Expr | Number | str) -> SSAValue:
    """A sum or product of whole numbers read from tensors, in int64."""
    if isinstance(value, Expr) and value.op == "symbol" and str(value.args[0]) in b.items:
        return b.cast(b.items[str(value.args[0])], "int64")
    if isinstance(value, Expr) and value.op in ("add", "mul"):
        parts = [whole_number(b, arg) for arg in value.args]
        return reduce(lambda left, right: b.add(REAL[value.op](left, right)), parts)
    if isinstance(value, str) or (isinstance(value, Expr) and not b.items.keys().isdisjoint(value.symbols())):
        raise QcompError(f"{value}, which depends on data, is not supported", code="dynamic-value")
    return b.scalar(b.size(value) if isinstance(value, Expr) else value, "int64")


def real_number(b: Builder, expression: Expr) -> SSAValue:
    """A real expression over sizes, computed in float32."""
    if expression.op == "symbol":
        return _float(b, expression)
    parts = [real_number(b, part) if isinstance(part, Expr) and part.op in REAL else part for part in expression.args]
    held = [part if isinstance(part, SSAValue) else _float(b, part) for part in parts]
    if expression.op == "float":
        return held[0]
    if expression.op == "pow":
        if expression.args[1] == 0.5:
            return b.add(SqrtOp(held[0]))
        if expression.args[1] == -0.5:
            return b.add(RsqrtOp(held[0]))
        if expression.args[1] == -1:
            return b.add(DivOp(_float(b, 1.0), held[0]))
        raise QcompError(f"{expression}, which depends on sizes, is not supported", code="dynamic-value")
    total = held[0]
    for part in held[1:]:
        total = b.add(REAL[expression.op](total, part))
    return total


def _float(b: Builder, value: Expr | Number | str) -> SSAValue:
    if isinstance(value, Expr) and not b.items.keys().isdisjoint(value.symbols()):
        return b.cast(b.items[str(value.args[0])] if value.op == "symbol" else whole_number(b, value), "float32")
    if isinstance(value, str):
        raise QcompError(f"{value} is no number", code="dynamic-value")
    return b.scalar(b.size(value) if isinstance(value, Expr) else value, "float32")
