# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one tensor by name, and activations composed of them."""

from __future__ import annotations

import math

import numpy as np

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import choose, compare, difference, floating, is_float, product, unary
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _register(name: str, *targets: str) -> None:
    @op(*targets)
    def _(b: Builder, node: Node) -> Result:
        return unary(b, name, floating(b, b.tensor(node, "self")))


for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh"):
    _register(_name, f"{_name}.default", f"arc{_name[1:]}.default")
for _name in ("cos", "cosh", "log", "log2", "log10", "sin", "sinh", "tan"):
    _register(_name, f"{_name}.default")
for _name in ("erfc", "exp2", "expm1", "log1p"):
    _register(_name, f"{_name}.default", f"special_{_name}.default")
_register("log_sigmoid", "log_sigmoid.default")
_register("mish", "mish.default")


def _register_whole(name: str, *targets: str) -> None:
    @op(*targets)
    def _(b: Builder, node: Node) -> Result:
        value = b.tensor(node, "self")
        return unary(b, name, value) if is_float(dtype_of(value)) else value


_register_whole("floor", "floor.default")
_register_whole("ceil", "ceil.default")
_register_whole("trunc", "trunc.default", "fix.default")
_register_whole("round", "round.default", "special_round.default")


@op("round.decimals")
def round_decimals(b: Builder, node: Node) -> Result:
    """Half to even at a decimal place."""
    value, decimals = b.tensor(node, "self"), b.integer(node, "decimals")
    if not is_float(dtype_of(value)):
        return value
    return unary(b, "round_decimals", value, decimals) if decimals else unary(b, "round", value)


@op("frac.default")
def frac(b: Builder, node: Node) -> Result:
    """What is behind the point."""
    value = b.tensor(node, "self")
    return difference(b, value, unary(b, "trunc", value))


@op("sign.default", "sgn.default")
def sign(b: Builder, node: Node) -> Result:
    """1, 0 or -1."""
    value = b.tensor(node, "self")
    return value if dtype_of(value) == "bool" else unary(b, "sign", value)


@op("nan_to_num.default")
def nan_to_num(b: Builder, node: Node) -> Result:
    """NaN and the infinities replaced, by 0 and the largest numbers unless given."""
    value = b.tensor(node, "self")
    dtype = dtype_of(value)
    if not is_float(dtype):
        return value
    largest = float(np.finfo("float32" if dtype == "bfloat16" else dtype).max)
    largest = float(np.array(0x7F7F0000, np.uint32).view(np.float32)) if dtype == "bfloat16" else largest
    given = [None if node.argument(name) is None else b.real(node, name) for name in ("nan", "posinf", "neginf")]
    defaults = (0.0, largest, -largest)
    return unary(b, "nan_to_num", value, *(d if g is None else g for g, d in zip(given, defaults, strict=True)))


@op("logit.default", "special_logit.default")
def logit(b: Builder, node: Node) -> Result:
    """log(x / (1 - x)); with eps, x is first limited to [eps, 1 - eps]."""
    value = floating(b, b.tensor(node, "self"))
    if node.argument("eps") is not None:
        eps = b.real(node, "eps")
        if dtype_of(value) == "float64":
            raise QcompError("logit of float64 with eps is not supported", code="unsupported-dtype")
        value = b.add(nn.ClampOp.of(value, eps, 1 - eps))
    return unary(b, "logit", value)


@op("softplus.default")
def softplus(b: Builder, node: Node) -> Result:
    """log(1 + exp(beta x)) / beta."""
    return unary(b, "softplus", b.tensor(node, "self"), b.real(node, "beta", 1), b.real(node, "threshold", 20))


@op("elu.default")
def elu(b: Builder, node: Node) -> Result:
    """scale x, below 0 scale alpha (exp(input_scale x) - 1)."""
    numbers = (b.real(node, name, 1) for name in ("alpha", "scale", "input_scale"))
    return unary(b, "elu", b.tensor(node, "self"), *numbers)


@op("selu.default")
def selu(b: Builder, node: Node) -> Result:
    """elu with the numbers that keep mean and variance."""
    return unary(b, "elu", b.tensor(node, "self"), _SELU_ALPHA, _SELU_SCALE, 1.0)


@op("celu.default")
def celu(b: Builder, node: Node) -> Result:
    """max(x, 0) + min(0, alpha (exp(x / alpha) - 1))."""
    alpha = b.real(node, "alpha", 1)
    return unary(b, "elu", b.tensor(node, "self"), alpha, 1.0, 1.0 / alpha)


@op("hardshrink.default")
def hardshrink(b: Builder, node: Node) -> Result:
    """0 near 0."""
    return unary(b, "hardshrink", b.tensor(node, "self"), b.real(node, "lambd", 0.5))


@op("softshrink.default")
def softshrink(b: Builder, node: Node) -> Result:
    """Towards 0 by `lambd`."""
    return unary(b, "softshrink", b.tensor(node, "self"), b.real(node, "lambd", 0.5))


@op("threshold.default")
def threshold(b: Builder, node: Node) -> Result:
    """x above `threshold`, else `value`."""
    value = b.tensor(node, "self")
    bound, other = b.number(node, "threshold"), b.number(node, "value")
    if is_float(dtype_of(value)):
        return unary(b, "threshold", value, float(bound), float(other))
    return choose(b, compare(b, "le", value, bound), other, value, dtype_of(value))


@op("prelu.default", "_prelu_kernel.default")
def prelu(b: Builder, node: Node) -> Result:
    """x > 0 ? x : weight x, with a weight per channel, or one for all."""
    value, weight = b.tensor(node, "self"), b.tensor(node, "weight")
    rank = len(shape_of(value))
    if node.target == "aten.prelu.default" and rank > 1 and len(shape_of(weight)) == 1:
        weight = reshape_to(b, weight, (1, *shape_of(weight), *(1,) * (rank - 2)))
    positive = compare(b, "gt", value, b.scalar(0, dtype_of(value)))
    return choose(b, positive, value, product(b, weight, value))


@op("rrelu.default", "rrelu_with_noise.default", "rrelu_with_noise_functional.default")
def rrelu(b: Builder, node: Node) -> Result:
    """Leaky relu with the mean slope; random in training, which is refused."""
    if b.flag(node, "training"):
        raise QcompError("rrelu in training mode", code="training", hint="call model.eval() before exporting")
    value = b.tensor(node, "self")
    slope = (b.real(node, "lower", 0.125) + b.real(node, "upper", 1.0 / 3)) / 2
    positive = compare(b, "gt", value, b.scalar(0, dtype_of(value)))
    result = choose(b, positive, value, product(b, value, slope))
    return [result, None] if node.target.endswith("functional.default") else result


@op("glu.default")
@in_float32
def glu(b: Builder, node: Node) -> Result:
    """The first half times the sigmoid of the second."""
    value = b.tensor(node, "self")
    axis = axis_of(b.integer(node, "dim", -1), len(shape_of(value)))
    size = shape_of(value)[axis]
    first, second = (b.add(nn.SliceOp(value, axis, start, start + size // 2)) for start in (0, size // 2))
    return product(b, first, b.add(nn.SigmoidOp(second)))


@op("angle.default")
def angle(b: Builder, node: Node) -> Result:
    """pi where a real number is negative, 0 elsewhere; NaN stays."""
    value = floating(b, b.tensor(node, "self"))
    turned = choose(b, compare(b, "lt", value, 0.0), math.pi, 0.0, dtype_of(value))
    return choose(b, compare(b, "ne", value, value), value, turned, dtype_of(value))


@op("real.default", "conj_physical.default", "isreal.default")
def real(b: Builder, node: Node) -> Result:
    """A real tensor is its real part."""
    value = b.tensor(node, "self")
    return b.expand(b.scalar(True, "bool"), shape_of(value)) if "isreal" in node.target else value
