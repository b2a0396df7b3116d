# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The formulas of `nn.function` and `nn.binary`: one for reals, one for integers, over any `Algebra`.

They hold for float32 and float64 alike; curves take the coefficients of the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from qcomp.interpreter.reference import curves, formulas, powers
from qcomp.interpreter.reference.algebra import Algebra, NumpyAlgebra
from qcomp.interpreter.reference.array import Array

V = TypeVar("V")
Formula = Callable[..., Any]
"""(algebra, operands..., parameters...) -> value"""


def bitwise_not(m: Algebra[V], x: V) -> V:
    """All bits turned."""
    return m.bit_xor(x, m.number(-1))


def sign(m: Algebra[V], x: V) -> V:
    """1, -1 or 0; 0 for NaN."""
    return m.select("gt", x, 0, m.number(1), m.select("lt", x, 0, m.number(-1), m.number(0)))


def floor(m: Algebra[V], x: V) -> V:
    """The next whole number below."""
    near = m.round(x)
    return m.copy_sign(m.select("gt", near, x, m.subtract(near, m.number(1.0)), near), x)


def ceil(m: Algebra[V], x: V) -> V:
    """The next whole number above."""
    return m.negate(floor(m, m.negate(x)))


def trunc(m: Algebra[V], x: V) -> V:
    """The whole number towards zero."""
    return m.copy_sign(powers.truncated(m, m.absolute(x)), x)


def round_decimals(m: Algebra[V], x: V, decimals: float) -> V:
    """Half to even at a decimal place."""
    power = m.number(10.0 ** abs(decimals))
    if decimals < 0:
        return m.multiply(m.round(m.divide(x, power)), power)
    return m.divide(m.round(m.multiply(x, power)), power)


def reciprocal(m: Algebra[V], x: V) -> V:
    """1 / x."""
    return m.divide(m.number(1.0), x)


def nan_to_num(m: Algebra[V], x: V, nan: float, positive: float, negative: float) -> V:
    """NaN and the infinities replaced."""
    x = m.select("eq", x, math.inf, m.number(positive), x)
    x = m.select("eq", x, -math.inf, m.number(negative), x)
    return m.select("ne", x, x, m.number(nan), x)


def threshold(m: Algebra[V], x: V, bound: float, value: float) -> V:
    """x above `bound`, else `value`; NaN stays."""
    return m.select("le", x, bound, m.number(value), x)


def hardshrink(m: Algebra[V], x: V, width: float) -> V:
    """0 within `width` of 0."""
    inner = m.select("le", x, width, m.number(0.0), x)
    return m.select("ge", x, -width, inner, x)


def softshrink(m: Algebra[V], x: V, width: float) -> V:
    """Towards 0 by `width`."""
    above = m.subtract(x, m.number(width))
    below = m.add(x, m.number(width))
    inner = m.select("lt", x, -width, below, m.multiply(x, m.number(0.0)))
    return m.select("gt", x, width, above, inner)


def log_sigmoid(m: Algebra[V], x: V) -> V:
    """min(x, 0) - log1p(exp(-|x|))."""
    lower = m.select("gt", x, 0.0, m.number(0.0), x)
    return m.subtract(lower, curves.log1p(m, formulas.exp(m, m.negate(m.absolute(x)))))


def softplus(m: Algebra[V], x: V, beta: float, bound: float) -> V:
    """log(1 + exp(beta x)) / beta; x where beta x is above `bound`."""
    scaled = m.multiply(x, m.number(beta))
    curve = m.divide(curves.log1p(m, formulas.exp(m, scaled)), m.number(beta))
    return m.select("gt", scaled, bound, x, curve)


def elu(m: Algebra[V], x: V, alpha: float, scale: float, input_scale: float) -> V:
    """scale x, below 0 scale alpha (exp(input_scale x) - 1)."""
    curve = m.multiply(curves.expm1(m, m.multiply(x, m.number(input_scale))), m.number(alpha * scale))
    return m.select("lt", x, 0.0, curve, m.multiply(x, m.number(scale)))


def mish(m: Algebra[V], x: V) -> V:
    """x tanh(log(1 + exp(x)))."""
    return m.multiply(x, formulas.tanh(m, curves.log1p(m, formulas.exp(m, x))))


def logit(m: Algebra[V], x: V) -> V:
    """log(x / (1 - x))."""
    return formulas.log(m, m.divide(x, m.subtract(m.number(1.0), x)))


def wrap_index(m: Algebra[V], x: V, size: float) -> V:
    """Negative indices counted from the end; what is outside then is cut to the first or last."""
    x = m.select("lt", x, 0, m.add(x, m.number(int(size))), x)
    x = m.select("lt", x, 0, m.number(0), x)
    return m.select("ge", x, int(size), m.number(max(int(size) - 1, 0)), x)


def hypot(m: Algebra[V], x: V, y: V) -> V:
    """sqrt(x^2 + y^2) without overflow in between."""
    a, b = m.absolute(x), m.absolute(y)
    high, low = m.select("gt", a, b, a, b), m.select("gt", a, b, b, a)
    # NaN counts as the smaller one, also beside 0.
    ratio = m.select("eq", high, 0.0, low, m.divide(low, high))
    result = m.multiply(high, m.square_root(m.add(m.number(1.0), m.multiply(ratio, ratio))))
    return m.select("eq", a, math.inf, a, m.select("eq", b, math.inf, b, result))


def remainder(m: Algebra[V], x: V, y: V) -> V:
    """Python's: what is left has the sign of y."""
    left = m.float_remainder(x, y)
    moved = m.add(left, y)
    opposite = m.select("lt", left, 0.0, m.select("lt", y, 0.0, left, moved), m.select("lt", y, 0.0, moved, left))
    return m.select("eq", left, 0.0, left, opposite)


def floor_divide(m: Algebra[V], x: V, y: V) -> V:
    """Python's: from the exact remainder, so that a rounded quotient does not reach the next whole number."""
    left = m.float_remainder(x, y)
    quotient = m.divide(m.subtract(x, left), y)
    less = m.subtract(quotient, m.number(1.0))
    signs = m.select("lt", left, 0.0, m.select("lt", y, 0.0, quotient, less), m.select("lt", y, 0.0, less, quotient))
    quotient = m.select("eq", left, 0.0, quotient, signs)
    whole = floor(m, quotient)
    whole = m.select("gt", m.subtract(quotient, whole), 0.5, m.add(whole, m.number(1.0)), whole)
    plain = m.divide(x, y)
    whole = m.select("eq", quotient, 0.0, m.copy_sign(m.number(0.0), plain), whole)
    return m.select("eq", y, 0.0, plain, whole)


def logaddexp(m: Algebra[V], x: V, y: V) -> V:
    """log(exp(x) + exp(y))."""
    high = m.select("gt", x, y, x, y)
    apart = m.negate(m.absolute(m.subtract(x, y)))
    result = m.add(high, curves.log1p(m, formulas.exp(m, apart)))
    result = m.select("eq", m.absolute(x), math.inf, m.select("eq", x, y, x, result), result)
    return m.select("ne", x, x, x, result)


def xlogy(m: Algebra[V], x: V, y: V) -> V:
    """x log(y), 0 where x is."""
    result = m.select("eq", x, 0.0, m.number(0.0), m.multiply(x, formulas.log(m, y)))
    return m.select("ne", y, y, y, result)


def heaviside(m: Algebra[V], x: V, y: V) -> V:
    """0 below 0, 1 above, y at 0; 0 for NaN."""
    return m.select("eq", x, 0.0, y, m.select("gt", x, 0.0, m.number(1.0), m.number(0.0)))


def fmax(m: Algebra[V], x: V, y: V) -> V:
    """The larger, x of equal ones; a number if one is."""
    return m.select("ne", x, x, y, m.select("lt", x, y, y, x))


def fmin(m: Algebra[V], x: V, y: V) -> V:
    """The smaller, x of equal ones; a number if one is."""
    return m.select("ne", x, x, y, m.select("gt", x, y, y, x))


def whole_remainder(m: Algebra[V], x: V, y: V) -> V:
    """Python's %; x for a divisor of 0."""
    return m.subtract(x, m.multiply(m.floor_quotient(x, y), y))


def whole_fmod(m: Algebra[V], x: V, y: V) -> V:
    """C's %; x for a divisor of 0."""
    return m.subtract(x, m.multiply(trunc_divide(m, x, y), y))


def trunc_divide(m: Algebra[V], x: V, y: V) -> V:
    """C's /; 0 for a divisor of 0."""
    quotient = m.floor_quotient(x, y)
    up = m.select("ne", m.multiply(quotient, y), x, m.add(quotient, m.number(1)), quotient)
    return m.select("lt", quotient, 0, m.select("eq", y, 0, quotient, up), quotient)


@dataclass(frozen=True)
class Function:
    """real, whole: the formulas. lanes: whether vector registers have all that it takes."""

    real: Formula | None = None
    whole: Formula | None = None
    lanes: bool = True


def _method(name: str) -> Formula:
    """The formula that is one method of the algebra."""

    def call(m: Any, *values: Any) -> Any:
        return getattr(m, name)(*values)

    return call


FUNCTIONS: dict[str, Function] = {
    **{
        name: Function(getattr(curves, name))
        for name in (
            "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp2", "expm1", "log10", "log1p",
            "log2", "sin", "sinh", "tan",
        )
    },
    "log": Function(formulas.log),
    "erfc": Function(curves.erfc),
    "bitwise_not": Function(whole=bitwise_not),
    "sign": Function(sign, sign),
    "floor": Function(floor),
    "ceil": Function(ceil),
    "trunc": Function(trunc),
    "round": Function(_method("round")),
    "round_decimals": Function(round_decimals),
    "reciprocal": Function(reciprocal),
    "nan_to_num": Function(nan_to_num),
    "threshold": Function(threshold),
    "hardshrink": Function(hardshrink),
    "softshrink": Function(softshrink),
    "log_sigmoid": Function(log_sigmoid),
    "softplus": Function(softplus),
    "elu": Function(elu),
    "mish": Function(mish),
    "logit": Function(logit),
    "wrap_index": Function(whole=wrap_index),
}  # fmt: skip
"""Functions of one number."""

BINARY: dict[str, Function] = {
    "and": Function(whole=_method("bit_and")),
    "or": Function(whole=_method("bit_or")),
    "xor": Function(whole=_method("bit_xor")),
    "shift_left": Function(whole=_method("shift_left_by")),
    "shift_right": Function(whole=_method("shift_right_by")),
    "floor_divide": Function(floor_divide, _method("floor_quotient"), lanes=False),
    "trunc_divide": Function(whole=trunc_divide, lanes=False),
    "remainder": Function(remainder, whole_remainder, lanes=False),
    "fmod": Function(_method("float_remainder"), whole_fmod, lanes=False),
    "pow": Function(powers.power, powers.integer_power),
    "atan2": Function(curves.atan2),
    "hypot": Function(hypot),
    "copysign": Function(_method("copy_sign")),
    "fmax": Function(fmax),
    "fmin": Function(fmin),
    "logaddexp": Function(logaddexp),
    "xlogy": Function(xlogy),
    "heaviside": Function(heaviside),
}
"""Functions of two numbers."""


def evaluate(function: Function, arrays: list[Array], parameters: tuple[float, ...]) -> Array:
    """The function on arrays of one dtype, elementwise with broadcasting; in that dtype, wrapping for integers."""
    dtype = arrays[0].dtype
    formula = function.real if dtype.kind == "f" else function.whole
    assert formula is not None
    result = np.asarray(formula(NumpyAlgebra(dtype), *arrays, *parameters))
    return result.astype(dtype, copy=False)
