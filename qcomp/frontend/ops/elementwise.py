# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops: arithmetic with torch's type promotion, activations, casts and copies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.element import element_type
from qcomp.dialects.nn.base import parameter
from qcomp.errors import QcompError
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import (
    HALF,
    Binary,
    Operand,
    as_dtype,
    binary,
    common_dtype,
    describe,
    floating,
    operand,
)
from qcomp.frontend.ops.table import op

BIT_TYPES = (
    "uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
"""What any bits are elements of; truth values are read only."""


def _with_scaled(b: Builder, node: Node, make: Binary, first: str, second: str) -> SSAValue:
    """`first` and `second` times the argument `alpha` put together; 16-bit floats are rounded once."""
    left, right, alpha = operand(b, node, first), operand(b, node, second), b.number(node, "alpha", 1)
    if alpha == 1:
        return binary(b, make, left, right)
    dtype = common_dtype(left, right)
    if dtype in HALF:
        left, right = (b.cast(value, "float32") if isinstance(value, SSAValue) else value for value in (left, right))
    scaled = binary(b, nn.MulOp, right, alpha) if isinstance(right, SSAValue) else right * alpha
    return b.cast(binary(b, make, left, scaled), dtype)


@op("add.Tensor", "add.Scalar")
def add(b: Builder, node: Node) -> Result:
    """self + alpha * other."""
    return _with_scaled(b, node, nn.AddOp, "self", "other")


@op("sub.Tensor", "sub.Scalar", "subtract.Tensor")
def sub(b: Builder, node: Node) -> Result:
    """self - alpha * other."""
    return _with_scaled(b, node, nn.SubOp, "self", "other")


@op("rsub.Tensor", "rsub.Scalar")
def rsub(b: Builder, node: Node) -> Result:
    """other - alpha * self."""
    return _with_scaled(b, node, nn.SubOp, "other", "self")


def _register_binary(make: Binary, *targets: str, true_divide: bool = False) -> None:
    @op(*targets)
    def _(b: Builder, node: Node) -> Result:
        return binary(b, make, operand(b, node, "self"), operand(b, node, "other"), true_divide)


_register_binary(nn.MulOp, "mul.Tensor", "mul.Scalar", "multiply.Tensor")
_register_binary(nn.DivOp, "div.Tensor", "div.Scalar", "true_divide.Tensor", "divide.Tensor", true_divide=True)
_register_binary(nn.MaximumOp, "maximum.default", "max.other")
_register_binary(nn.MinimumOp, "minimum.default", "min.other")


def _register_unary(make: type[nn.UnaryOp], *targets: str, to_float: bool = True) -> None:
    @op(*targets)
    def _(b: Builder, node: Node) -> Result:
        value = b.tensor(node, "self")
        return b.add(make(floating(b, value) if to_float else value))


_register_unary(nn.ReluOp, "relu.default", to_float=False)
_register_unary(nn.SigmoidOp, "sigmoid.default", "special_expit.default")
_register_unary(nn.TanhOp, "tanh.default")
_register_unary(nn.SiluOp, "silu.default")
_register_unary(nn.HardswishOp, "hardswish.default")
_register_unary(nn.HardsigmoidOp, "hardsigmoid.default")
_register_unary(nn.ExpOp, "exp.default")
_register_unary(nn.SqrtOp, "sqrt.default")
_register_unary(nn.RsqrtOp, "rsqrt.default")
_register_unary(nn.ErfOp, "erf.default", "special_erf.default")
_register_unary(nn.NegOp, "neg.default", "negative.default", to_float=False)
_register_unary(nn.AbsOp, "abs.default", "absolute.default", to_float=False)


def _clamp(b: Builder, value: SSAValue, low: Operand | None, high: Operand | None) -> SSAValue:
    """`value` limited to [low, high] after promotion with the bounds, of which some may be known at run time only."""
    bounds = [bound for bound in (low, high) if bound is not None]
    dtype = promotion.result_type([describe(value), *(describe(bound) for bound in bounds)])
    if dtype == "bool":
        raise QcompError("clamp of truth values is not supported", code="unsupported-dtype")
    if isinstance(low, SSAValue) or isinstance(high, SSAValue) or not _held_by_clamp(bounds, dtype):
        value = b.cast(value, dtype)
        value = value if low is None else b.add(nn.MaximumOp(value, as_dtype(b, low, dtype)))
        return value if high is None else b.add(nn.MinimumOp(value, as_dtype(b, high, dtype)))
    low, high = (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))
    return b.add(nn.ClampOp.of(b.cast(value, dtype), low, high))


def _held_by_clamp(bounds: Sequence[Operand], dtype: str) -> bool:
    """Whether the attributes of nn.clamp, float64 for tensors of that and else float32, can be `bounds`."""
    numbers = [bound for bound in bounds if not isinstance(bound, SSAValue)]
    exact = dtype in (*HALF, "float32", "float64") or all(np.float32(bound) == bound for bound in numbers)
    return exact and not any(math.isnan(bound) for bound in numbers)


def _bound(b: Builder, node: Node, name: str) -> Operand | None:
    return None if node.argument(name) is None else b.operand(node, name)


@op("clamp.default", "clip.default")
def clamp(b: Builder, node: Node) -> Result:
    """Limits that may each be missing."""
    return _clamp(b, b.tensor(node, "self"), _bound(b, node, "min"), _bound(b, node, "max"))


@op("clamp_min.default")
def clamp_min(b: Builder, node: Node) -> Result:
    """A lower limit."""
    return _clamp(b, b.tensor(node, "self"), b.operand(node, "min"), None)


@op("clamp_max.default")
def clamp_max(b: Builder, node: Node) -> Result:
    """An upper limit."""
    return _clamp(b, b.tensor(node, "self"), None, b.operand(node, "max"))


@op("hardtanh.default")
def hardtanh(b: Builder, node: Node) -> Result:
    """clamp with limits -1 and 1 unless given (relu6 is one)."""
    value, bounds = b.tensor(node, "self"), (b.number(node, "min_val", -1), b.number(node, "max_val", 1))
    low, high = bounds if promotion.category(dtype_of(value)) == 2 else (int(bound) for bound in bounds)
    return _clamp(b, value, low, high)


@op("relu6.default")
def relu6(b: Builder, node: Node) -> Result:
    """clamp to [0, 6]."""
    return _clamp(b, b.tensor(node, "self"), 0, 6)


@op("leaky_relu.default")
def leaky_relu(b: Builder, node: Node) -> Result:
    """x > 0 ? x : negative_slope * x."""
    value = floating(b, b.tensor(node, "self"))
    return b.add(nn.LeakyReluOp(value, negative_slope=parameter(b.real(node, "negative_slope", 0.01), value)))


@op("gelu.default")
def gelu(b: Builder, node: Node) -> Result:
    """x * Phi(x), exact or by tanh."""
    return b.add(
        nn.GeluOp(floating(b, b.tensor(node, "self")), approximate=StringAttr(b.text(node, "approximate", "none")))
    )


@op(
    "alias.default", "clone.default", "contiguous.default", "detach.default", "lift_fresh.default",
    "lift_fresh_copy.default", "alias_copy.default", "detach_copy.default", "resolve_conj.default",
    "resolve_neg.default", "positive.default",
)  # fmt: skip
def same(b: Builder, node: Node) -> Result:
    """The value itself: memory formats and copies have no meaning here."""
    return b.tensor(node, "self")


@op("dropout.default", "feature_dropout.default", "alpha_dropout.default", "feature_alpha_dropout.default")
def dropout(b: Builder, node: Node) -> Result:
    """The identity in evaluation; in training it is random and refused."""
    if b.flag(node, "train"):
        raise QcompError("dropout in training mode", code="training", hint="call model.eval() before exporting")
    return b.tensor(node, "input" if node.argument("input") is not None else "self")


@op("native_dropout.default")
def native_dropout(b: Builder, node: Node) -> Result:
    """The same, and what is kept: all."""
    value = dropout(b, node)
    assert isinstance(value, SSAValue)
    return [value, b.expand(b.scalar(True, "bool"), shape_of(value))]


@op("_to_copy.default", "to.dtype", "to.dtype_layout", "to.device", "dim_order_ops._to_dim_order_copy.default")
def to(b: Builder, node: Node) -> Result:
    """A cast, when a dtype is given; devices and layouts mean nothing here."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    return value if dtype is None else b.cast(value, dtype)


@op("view.dtype", "view_copy.dtype")
def view_dtype(b: Builder, node: Node) -> Result:
    """The same bits as elements of another type."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    if dtype is None or dtype == dtype_of(value):
        return value
    if dtype not in BIT_TYPES or dtype_of(value) not in (*BIT_TYPES, "bool"):
        raise QcompError(f"the bits of {dtype_of(value)} as {dtype} are not supported", code="unsupported-type")
    return b.add(nn.BitcastOp(value, element_type(dtype)))


@op("to.other", "type_as.default")
def to_other(b: Builder, node: Node) -> Result:
    """A cast to the type of another tensor."""
    return b.cast(b.tensor(node, "self"), dtype_of(b.tensor(node, "other")))


@op("quantized_decomposed.convert_element_type.no_fuse", "prims.convert_element_type.default")
def convert_element_type(b: Builder, node: Node) -> Result:
    """A cast."""
    name = "input" if node.argument("input") is not None else "a"
    return b.cast(b.tensor(node, name), b.dtype(node) or dtype_of(b.tensor(node, name)))


@op("copy.default")
def copy(b: Builder, node: Node) -> Result:
    """`src` in the shape and type of `self`."""
    target = b.tensor(node, "self")
    return b.expand(b.cast(b.tensor(node, "src"), dtype_of(target)), shape_of(target))
