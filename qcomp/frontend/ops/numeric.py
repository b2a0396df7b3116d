# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisions, powers, extremes and what is composed of sums and products."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import (
    HALF,
    Operand,
    as_dtype,
    binary,
    by_name,
    choose,
    common_dtype,
    compare,
    difference,
    floating,
    is_float,
    operand,
    product,
    quotient,
    total,
    unary,
)
from qcomp.frontend.ops.table import op


def _pair(b: Builder, node: Node) -> tuple[Operand, Operand]:
    return operand(b, node, "self"), operand(b, node, "other")


@op("div.Tensor_mode", "div.Scalar_mode", "divide.Tensor_mode", "divide.Scalar_mode")
def divide(b: Builder, node: Node) -> Result:
    """A quotient that is rounded: not, down, or towards 0."""
    left, right = _pair(b, node)
    mode = node.argument("rounding_mode")
    if mode is None:
        return quotient(b, left, right)
    if mode == "floor":
        return _floor_divide(b, left, right)
    if not is_float(common_dtype(left, right)):
        return binary(b, by_name("trunc_divide"), *_not_bool(left, right))
    return binary(b, lambda x, y: nn.FunctionOp.of(b.add(nn.DivOp(x, y)), "trunc"), left, right)


def _not_bool(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    if common_dtype(left, right) == "bool":
        raise QcompError("division of truth values is not supported", code="unsupported-dtype")
    return left, right


def _floor_divide(b: Builder, left: Operand, right: Operand) -> SSAValue:
    return binary(b, by_name("floor_divide"), *_not_bool(left, right))


@op("floor_divide.default", "floor_divide.Scalar")
def floor_divide(b: Builder, node: Node) -> Result:
    """The quotient rounded down."""
    return _floor_divide(b, *_pair(b, node))


@op("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(b: Builder, node: Node) -> Result:
    """What is left, with the sign of the divisor."""
    return binary(b, by_name("remainder"), *_not_bool(*_pair(b, node)))


@op("fmod.Tensor", "fmod.Scalar")
def fmod(b: Builder, node: Node) -> Result:
    """What is left, with the sign of the dividend."""
    return binary(b, by_name("fmod"), *_not_bool(*_pair(b, node)))


def _register(name: str, *targets: str, to_float: bool = False) -> None:
    @op(*targets)
    def _(b: Builder, node: Node) -> Result:
        return binary(b, by_name(name), *_pair(b, node), to_float=to_float)


_register("atan2", "atan2.default", "arctan2.default", to_float=True)
_register("hypot", "hypot.default")
_register("copysign", "copysign.Tensor", "copysign.Scalar", to_float=True)
_register("logaddexp", "logaddexp.default")
_register(
    "xlogy", "xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other", "special_xlogy.default",
    "special_xlogy.self_scalar", "special_xlogy.other_scalar", to_float=True,
)  # fmt: skip


@op("heaviside.default")
def heaviside(b: Builder, node: Node) -> Result:
    """0 below 0, 1 above, `values` at 0."""
    value, at_zero = b.tensor(node, "self"), b.tensor(node, "values")
    dtype = dtype_of(value)
    if is_float(dtype):
        return binary(b, by_name("heaviside"), value, at_zero)
    zero, one = b.scalar(0, dtype), b.scalar(1, dtype)
    above = choose(b, compare(b, "gt", value, zero), one, zero)
    return choose(b, compare(b, "eq", value, zero), b.cast(at_zero, dtype), above)


def _register_extreme(name: str, make: type[nn.BinaryOp]) -> None:
    @op(f"{name}.default")
    def _(b: Builder, node: Node) -> Result:
        left, right = _pair(b, node)
        return binary(b, by_name(name) if is_float(common_dtype(left, right)) else make, left, right)


_register_extreme("fmax", nn.MaximumOp)
_register_extreme("fmin", nn.MinimumOp)


@op("clamp.Tensor", "clip.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def clamp(b: Builder, node: Node) -> Result:
    """Between tensors, which may each be missing."""
    low, high = b.optional(node, "min"), b.optional(node, "max")
    bounds = [bound for bound in (low, high) if bound is not None]
    value = b.tensor(node, "self")
    dtype = common_dtype(value, *bounds)
    value = b.cast(value, dtype)
    if low is not None:
        value = binary(b, nn.MaximumOp, value, b.cast(low, dtype))
    return value if high is None else binary(b, nn.MinimumOp, value, b.cast(high, dtype))


@op("pow.Tensor_Scalar", "pow.Scalar", "pow.Tensor_Tensor")
def power(b: Builder, node: Node) -> Result:
    """Products and roots where the exponent is a number that allows it, as torch computes them."""
    base, exponent = operand(b, node, "self"), operand(b, node, "exponent")
    if isinstance(base, SSAValue) and not isinstance(exponent, SSAValue):
        dtype = common_dtype(base, exponent)
        short = _short_power(b, b.cast(base, dtype), exponent, dtype)
        if short is not None:
            return short
    return _power(b, base, exponent)


def _power(b: Builder, base: Operand, exponent: Operand) -> SSAValue:
    dtype = common_dtype(base, exponent)
    if dtype == "bool":
        raise QcompError("powers of truth values are not supported", code="unsupported-dtype")
    if isinstance(exponent, int) and exponent < 0 and not is_float(dtype):
        raise QcompError("integers to negative powers", code="malformed-graph")
    return binary(b, by_name("pow"), base, exponent)


def _short_power(b: Builder, base: SSAValue, exponent: float, dtype: str) -> SSAValue | None:
    if dtype == "bool":
        return None
    if exponent == 0:
        return b.expand(b.scalar(1, dtype), shape_of(base))
    if exponent == 1:
        return base
    if exponent in (2, 3):
        return product(b, *[base] * int(exponent))
    if not is_float(dtype):
        return None
    match exponent:
        case 0.5 if dtype != "float16":  # of float16 torch computes a power, which -inf has and -0.0 has too
            return b.add(nn.SqrtOp(base))
        case -0.5 if dtype != "float16":
            return b.add(nn.RsqrtOp(base))
        case -1:
            return unary(b, "reciprocal", base)
        case -2:
            # The square of a 16-bit float may overflow where its reciprocal is still a number.
            wide = b.cast(base, "float32") if dtype in HALF else base
            return b.cast(unary(b, "reciprocal", product(b, wide, wide)), dtype)
        case _:
            return None


@op("float_power.Tensor_Scalar", "float_power.Scalar", "float_power.Tensor_Tensor")
def float_power(b: Builder, node: Node) -> Result:
    """A power in float64."""
    base, exponent = (as_dtype(b, operand(b, node, name), "float64") for name in ("self", "exponent"))
    return _power(b, base, exponent)


@op("addcmul.default")
def addcmul(b: Builder, node: Node) -> Result:
    """self + value * tensor1 * tensor2."""
    (start, first, second), dtype = _wide(b, node, "self", "tensor1", "tensor2")
    value = b.number(node, "value", 1)
    return b.cast(total(b, start, product(b, *([] if value == 1 else [value]), first, second)), dtype)


def _wide(b: Builder, node: Node, *names: str) -> tuple[list[Operand], str]:
    """The arguments, 16-bit floats in float32, and the dtype to round to in the end: torch rounds once."""
    values = [operand(b, node, name) for name in names]
    dtype = common_dtype(*values)
    if dtype in HALF:
        values = [b.cast(value, "float32") if isinstance(value, SSAValue) else value for value in values]
    return values, dtype


@op("addcdiv.default")
def addcdiv(b: Builder, node: Node) -> Result:
    """self + value * tensor1 / tensor2."""
    (start, first, second), dtype = _wide(b, node, "self", "tensor1", "tensor2")
    value = b.number(node, "value", 1)
    scaled = first if value == 1 else product(b, value, first)
    return b.cast(total(b, start, quotient(b, scaled, second)), dtype)


@op("lerp.Scalar", "lerp.Tensor")
def lerp(b: Builder, node: Node) -> Result:
    """self + weight (end - self), from the nearer end."""
    (start, end, weight), dtype = _wide(b, node, "self", "end", "weight")
    return b.cast(_lerp(b, start, end, weight), dtype)


def _lerp(b: Builder, start: Operand, end: Operand, weight: Operand) -> SSAValue:
    apart = difference(b, end, start)
    if not isinstance(weight, SSAValue):
        if abs(weight) < 0.5:
            return total(b, start, product(b, apart, weight))
        return difference(b, end, product(b, apart, 1 - weight))
    near = total(b, start, product(b, weight, apart))
    far = difference(b, end, product(b, apart, difference(b, 1, weight)))
    small = compare(b, "lt", b.add(nn.AbsOp(weight)), b.scalar(0.5, dtype_of(weight)))
    return choose(b, small, near, far)


@op("ldexp.Tensor")
def ldexp(b: Builder, node: Node) -> Result:
    """self * 2^other."""
    scale = unary(b, "exp2", floating(b, b.tensor(node, "other")))
    return product(b, b.tensor(node, "self"), scale)


@op("deg2rad.default", "rad2deg.default")
def angles(b: Builder, node: Node) -> Result:
    """Between degrees and radians."""
    factor = math.pi / 180 if node.target == "aten.deg2rad.default" else 180 / math.pi
    return product(b, floating(b, b.tensor(node, "self")), factor)


@op("square.default")
def square(b: Builder, node: Node) -> Result:
    """self * self."""
    value = b.tensor(node, "self")
    if dtype_of(value) == "bool":
        value = b.cast(value, "int64")
    return product(b, value, value)


@op("reciprocal.default")
def reciprocal(b: Builder, node: Node) -> Result:
    """1 / self."""
    return unary(b, "reciprocal", floating(b, b.tensor(node, "self")))


@op("logaddexp2.default")
def logaddexp2(b: Builder, node: Node) -> Result:
    """log2(2^self + 2^other): the larger + log1p(2^-distance) / ln 2; of equal ones, infinite too, one more."""
    (left, right), dtype = _wide(b, node, "self", "other")
    apart = b.add(nn.NegOp(b.add(nn.AbsOp(difference(b, left, right)))))
    rest = product(b, unary(b, "log1p", unary(b, "exp2", apart)), 1.0 / math.log(2))
    result = total(b, binary(b, nn.MaximumOp, left, right), rest)
    return b.cast(choose(b, compare(b, "eq", left, right), total(b, left, 1.0), result), dtype)


@op("special_xlog1py.default", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar")
def xlog1py(b: Builder, node: Node) -> Result:
    """x log(1 + y), 0 where x is unless y is NaN."""
    (left, right), dtype = _wide(b, node, "self", "other")
    dtype = dtype if is_float(dtype) else "float32"
    right = floating(b, as_dtype(b, right, dtype if dtype not in HALF else "float32"))
    left = as_dtype(b, left, dtype_of(right))
    curve = product(b, left, unary(b, "log1p", right))
    zero = choose(b, compare(b, "eq", left, b.scalar(0, dtype_of(left))), b.scalar(0, dtype_of(left)), curve)
    return b.cast(choose(b, compare(b, "ne", right, right), right, zero), dtype)


@op("sinc.default", "special_sinc.default")
def sinc(b: Builder, node: Node) -> Result:
    """sin(pi x) / (pi x), 1 at 0."""
    (value,), dtype = _wide(b, node, "self")
    dtype = dtype if is_float(dtype) else "float32"
    value = product(b, as_dtype(b, value, "float32" if dtype in HALF else dtype), math.pi)
    curve = quotient(b, unary(b, "sin", value), value)
    zero = compare(b, "eq", value, b.scalar(0, dtype_of(value)))
    return b.cast(choose(b, zero, b.scalar(1, dtype_of(value)), curve), dtype)


@op("special_entr.default")
def entr(b: Builder, node: Node) -> Result:
    """-x log(x); 0 at 0, -inf below."""
    value = floating(b, b.tensor(node, "self"))
    dtype = dtype_of(value)
    wide = b.cast(value, "float32") if dtype in HALF else value
    zero = b.scalar(0, dtype_of(wide))
    curve = b.add(nn.NegOp(binary(b, by_name("xlogy"), wide, wide)))
    below = choose(b, compare(b, "lt", wide, zero), b.scalar(-math.inf, dtype_of(wide)), curve)
    return b.cast(choose(b, compare(b, "eq", wide, zero), zero, below), dtype)
