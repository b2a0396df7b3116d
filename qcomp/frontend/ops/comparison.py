# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparison, logic and choice."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.frontend.builder import Builder, Result, dtype_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import as_dtype, choose, common_dtype, compare, function, is_float, operand, unary
from qcomp.frontend.ops.table import op

_PREDICATES = {
    "eq": "eq", "ne": "ne", "not_equal": "ne", "lt": "lt", "less": "lt", "le": "le", "less_equal": "le", "gt": "gt",
    "greater": "gt", "ge": "ge", "greater_equal": "ge",
}  # fmt: skip


def _register(name: str, predicate: str) -> None:
    @op(f"{name}.Tensor", f"{name}.Scalar")
    def _(b: Builder, node: Node) -> Result:
        return compare(b, predicate, operand(b, node, "self"), operand(b, node, "other"))


for _name, _predicate in _PREDICATES.items():
    _register(_name, _predicate)


def truth(b: Builder, value: SSAValue) -> SSAValue:
    """Whether each element is not 0."""
    return b.cast(value, "bool")


def _register_logic(name: str, word: str) -> None:
    @op(f"logical_{name}.default")
    def _(b: Builder, node: Node) -> Result:
        return function(b, word, truth(b, b.tensor(node, "self")), truth(b, b.tensor(node, "other")))


for _name in ("and", "or", "xor"):
    _register_logic(_name, _name)


@op("logical_not.default")
def logical_not(b: Builder, node: Node) -> Result:
    """Whether each element is 0."""
    value = b.tensor(node, "self")
    return compare(b, "eq", value, b.scalar(0, dtype_of(value)))


def _register_bitwise(word: str, *targets: str) -> None:
    @op(*targets)
    def _(b: Builder, node: Node) -> Result:
        left, right = operand(b, node, "self"), operand(b, node, "other")
        dtype = common_dtype(left, right)
        return function(b, word, as_dtype(b, left, dtype), as_dtype(b, right, dtype))


for _name in ("and", "or", "xor"):
    _register_bitwise(
        _name, f"bitwise_{_name}.Tensor", f"bitwise_{_name}.Scalar", f"bitwise_{_name}.Scalar_Tensor",
        f"__{_name}__.Tensor", f"__{_name}__.Scalar",
    )  # fmt: skip
for _name, _short in (("left", "lshift"), ("right", "rshift")):
    _register_bitwise(
        f"shift_{_name}", f"bitwise_{_name}_shift.Tensor", f"bitwise_{_name}_shift.Tensor_Scalar",
        f"bitwise_{_name}_shift.Scalar_Tensor", f"__{_short}__.Tensor", f"__{_short}__.Scalar",
    )  # fmt: skip


@op("bitwise_not.default")
def bitwise_not(b: Builder, node: Node) -> Result:
    """All bits turned; of a truth value the other one."""
    return unary(b, "bitwise_not", b.tensor(node, "self"))


@op("isnan.default")
def isnan(b: Builder, node: Node) -> Result:
    """What does not equal itself."""
    value = b.tensor(node, "self")
    return compare(b, "ne", value, value)


def _register_infinity(name: str, predicate: str, bound: float, size: bool, on_integers: str) -> None:
    @op(f"{name}.default")
    def _(b: Builder, node: Node) -> Result:
        value = b.tensor(node, "self")
        if not is_float(dtype_of(value)):
            return compare(b, on_integers, value, value)
        measured = b.add(nn.AbsOp(value)) if size else value
        return compare(b, predicate, measured, b.scalar(bound, dtype_of(value)))


_register_infinity("isinf", "eq", math.inf, True, "ne")
_register_infinity("isfinite", "lt", math.inf, True, "eq")
_register_infinity("isposinf", "eq", math.inf, False, "ne")
_register_infinity("isneginf", "eq", -math.inf, False, "ne")


@op("signbit.default")
def signbit(b: Builder, node: Node) -> Result:
    """Whether the sign is set, of -0.0 too."""
    value = b.tensor(node, "self")
    dtype = dtype_of(value)
    if dtype == "bool":
        return compare(b, "ne", value, value)
    signed = function(b, "copysign", b.scalar(1.0, dtype), value) if is_float(dtype) else value
    return compare(b, "lt", signed, b.scalar(0, dtype))


@op("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(b: Builder, node: Node) -> Result:
    """``condition ? self : other``."""
    return choose(b, b.tensor(node, "condition"), operand(b, node, "self"), operand(b, node, "other"))


@op("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(b: Builder, node: Node) -> Result:
    """`value`, in the type of `self`, where the mask is set."""
    value = b.tensor(node, "self")
    return choose(b, b.tensor(node, "mask"), operand(b, node, "value"), value, dtype_of(value))


@op("isclose.default")
def isclose(b: Builder, node: Node) -> Result:
    """self == other or |self - other| <= atol + rtol |other|, other finite."""
    left, right = b.tensor(node, "self"), b.tensor(node, "other")
    equal = compare(b, "eq", left, right)
    if b.flag(node, "equal_nan") and is_float(dtype_of(left)):
        both = function(b, "and", compare(b, "ne", left, left), compare(b, "ne", right, right))
        equal = function(b, "or", equal, both)
    dtype = common_dtype(left, right)
    dtype = dtype if is_float(dtype) else "float32"
    left, right = b.cast(left, dtype), b.cast(right, dtype)
    apart = b.add(nn.AbsOp(b.add(nn.SubOp(left, right))))
    rtol, atol = (b.scalar(b.real(node, name, default), dtype) for name, default in (("rtol", 1e-5), ("atol", 1e-8)))
    bound = b.add(nn.AddOp(b.add(nn.AbsOp(b.add(nn.MulOp(right, rtol)))), atol))
    finite = compare(b, "lt", apart, b.scalar(math.inf, dtype))
    return function(b, "or", equal, function(b, "and", finite, compare(b, "le", apart, bound)))
