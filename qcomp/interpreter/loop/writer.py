# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python source under construction: a variable for each SSA value, named constants, lines."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import cast

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from qcomp.dialects.loop import tile_element
from qcomp.errors import QcompError
from qcomp.interpreter.loop.runtime import NAMES, element_dtype

DEEPEST = 18
"""Python allows 20 nested loops."""


def is_buffer(value: SSAValue) -> bool:
    """Whether `value` is a memref."""
    return isinstance(value.type, MemRefType)


class Writer:
    """The body of one function being written.

    `checked`: accesses are checked. `batched`: the values that have a leading batch dimension here; `batch`: a variable
    that has nothing else, empty outside a batch. `callee` returns the compiled function of a symbol.
    """

    def __init__(self, checked: bool, batching: bool, callee: Callable[[Operation, str], object]):
        self.checked = checked
        self.batching = batching
        self.callee = callee
        self.batched: set[SSAValue] = set()
        self.batch = ""
        self.names: dict[SSAValue, str] = {}
        self.globals: dict[str, object] = dict(NAMES)
        self.lines: list[str] = []
        self.depth = 1

    def read(self, value: SSAValue) -> str:
        """The variable that holds `value`."""
        return self.names[value]

    def is_batched(self, *values: SSAValue) -> bool:
        """Whether any of `values` has the batch dimension."""
        return any(value in self.batched for value in values)

    def bind(self, value: SSAValue) -> str:
        """A fresh variable for `value`."""
        self.names[value] = name = f"v{len(self.names)}"
        return name

    def assign(self, value: SSAValue, text: str) -> None:
        """`value` is the expression `text`."""
        self.line(f"{self.bind(value)} = {text}")
        if is_buffer(value):
            self.view_elements(value)

    def view_elements(self, buffer: SSAValue) -> None:
        """Make the typed view of `buffer` that `elements` names."""
        name = self.names[buffer]
        element = cast(MemRefType[Attribute], buffer.type).element_type
        self.line(f"{name}t = typed({name}, {self.dtype(element)})")

    def elements(self, buffer: SSAValue) -> str:
        """The variable that holds the elements of `buffer` as an array of its element type."""
        return self.names[buffer] + "t"

    def dtype(self, kind: Attribute) -> str:
        """The name of the dtype of a scalar, tile or element type."""
        element = tile_element(kind)
        if isinstance(element, IndexType):
            return "i64"
        element_dtype(element)
        return str(element)

    def constant(self, value: object) -> str:
        """A global name for `value`."""
        name = f"c{len(self.globals)}"
        self.globals[name] = value
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def indented(self, op: Operation) -> Generator[None]:
        """The body of a Python block that stands for `op`."""
        if self.depth > DEEPEST:
            raise QcompError.at(op, f"loops nest deeper than {DEEPEST}", code="loop-depth")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def block(self, block: Block, write: Callable[[Writer, Operation], None]) -> None:
        """All ops of `block` but its terminator."""
        for op in block.ops:
            if op is not block.last_op:
                write(self, op)

    def expressions(self, indices: AffineMap, operands: Sequence[SSAValue]) -> list[str]:
        """The results of an affine map applied to `operands`, dimensions first."""
        names = [self.read(value) for value in operands]
        return [_expression(expr, names[: indices.num_dims], names[indices.num_dims :]) for expr in indices.results]


_OPERATORS = {
    AffineBinaryOpKind.Add: "({} + {})",
    AffineBinaryOpKind.Mul: "({} * {})",
    AffineBinaryOpKind.Mod: "({} % {})",
    AffineBinaryOpKind.FloorDiv: "({} // {})",
    AffineBinaryOpKind.CeilDiv: "(-(-{} // {}))",
}


def _expression(expr: AffineExpr, dims: Sequence[str], symbols: Sequence[str]) -> str:
    match expr:
        case AffineConstantExpr():
            return str(expr.value)
        case AffineDimExpr():
            return dims[expr.position]
        case AffineSymExpr():
            return symbols[expr.position]
        case AffineBinaryOpExpr():
            sides = (_expression(side, dims, symbols) for side in (expr.lhs, expr.rhs))
            return _OPERATORS[expr.kind].format(*sides)
        case _:
            raise QcompError(f"unknown affine expression {expr}", code="unsupported-op")
