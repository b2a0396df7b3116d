# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of elementwise ops, tensors or numbers, in their common type.

16-bit floats: torch computes an op with a Python number in float32 and rounds once; so do the casts inserted here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend import promotion
from qcomp.frontend.builder import HALF, Builder, Number, dtype_of, shape_of
from qcomp.frontend.graph import Node

Binary = Callable[[SSAValue, SSAValue], Operation]
Operand = SSAValue | Number


def operand(b: Builder, node: Node, name: str) -> Operand:
    """An argument that is a tensor or a number."""
    return b.operand(node, name)


def describe(value: Operand) -> promotion.Operand:
    """What promotion needs to know of it."""
    if isinstance(value, SSAValue):
        return promotion.of_tensor(dtype_of(value), len(shape_of(value)))
    return promotion.of_number(value)


def common_dtype(*values: Operand) -> str:
    """The dtype torch computes with."""
    return promotion.result_type([describe(value) for value in values])


def as_dtype(b: Builder, value: Operand, dtype: str) -> SSAValue:
    """A tensor cast, or a number made a 0-d constant."""
    return b.cast(value, dtype) if isinstance(value, SSAValue) else b.scalar(value, dtype)


def is_float(dtype: str) -> bool:
    """Whether a dtype is a float."""
    return promotion.category(dtype) == 2


def floating(b: Builder, value: SSAValue) -> SSAValue:
    """The operand of a function over the reals: integers become float32."""
    return value if is_float(dtype_of(value)) else b.cast(value, promotion.DEFAULT_FLOAT)


_ON_BOOL: dict[object, str] = {nn.AddOp: "or", nn.MulOp: "and", nn.MaximumOp: "or", nn.MinimumOp: "and"}


def binary(b: Builder, make: Binary, left: Operand, right: Operand, to_float: bool = False) -> SSAValue:
    """`make` on both operands in their common type; with `to_float`, integers in float32.

    On truth values sums are `or`, products `and`.
    """
    dtype = common_dtype(left, right)
    if to_float and not is_float(dtype):
        dtype = promotion.DEFAULT_FLOAT
    if dtype == "bool":
        if make not in _ON_BOOL:
            raise QcompError(
                "arithmetic on bool tensors is not supported", code="unsupported-dtype", hint="cast to int first"
            )
        return function(b, _ON_BOOL[make], as_dtype(b, left, dtype), as_dtype(b, right, dtype))
    numbers = [value for value in (left, right) if not isinstance(value, SSAValue)]
    compute = "float32" if dtype in HALF and numbers else dtype
    return b.cast(b.add(make(as_dtype(b, left, compute), as_dtype(b, right, compute))), dtype)


def function(b: Builder, name: str, left: SSAValue, right: SSAValue) -> SSAValue:
    """A binary function by name."""
    return b.add(nn.BinaryFunctionOp.of(name, left, right))


def by_name(name: str) -> Binary:
    """What makes a binary function by name."""
    return lambda left, right: nn.BinaryFunctionOp.of(name, left, right)


def compare(b: Builder, predicate: str, left: Operand, right: Operand) -> SSAValue:
    """``left predicate right`` in their common type."""
    dtype = common_dtype(left, right)
    return b.add(nn.CompareOp(predicate, as_dtype(b, left, dtype), as_dtype(b, right, dtype)))


def choose(b: Builder, condition: SSAValue, yes: Operand, no: Operand, dtype: str | None = None) -> SSAValue:
    """``condition ? yes : no`` in their common type."""
    dtype = dtype or common_dtype(yes, no)
    return b.add(nn.SelectOp(b.cast(condition, "bool"), as_dtype(b, yes, dtype), as_dtype(b, no, dtype)))


def unary(b: Builder, name: str, value: SSAValue, *parameters: float) -> SSAValue:
    """A function of one number by name."""
    return b.add(nn.FunctionOp.of(value, name, *parameters))


def product(b: Builder, *values: Operand) -> SSAValue:
    """The product, from the left."""
    return _folded(b, nn.MulOp, values)


def total(b: Builder, *values: Operand) -> SSAValue:
    """The sum, from the left."""
    return _folded(b, nn.AddOp, values)


def difference(b: Builder, left: Operand, right: Operand) -> SSAValue:
    """left - right."""
    return binary(b, nn.SubOp, left, right)


def quotient(b: Builder, left: Operand, right: Operand) -> SSAValue:
    """left / right, a float."""
    return binary(b, nn.DivOp, left, right, to_float=True)


def _folded(b: Builder, make: Binary, values: Sequence[Operand]) -> SSAValue:
    result = values[0]
    for value in values[1:]:
        result = binary(b, make, result, value)
    assert isinstance(result, SSAValue)
    return result
