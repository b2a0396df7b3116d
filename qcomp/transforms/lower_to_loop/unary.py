# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of unary functions: a table between 8-bit codes, formulas elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop, nn, quant
from qcomp.dialects.element import integer_range, is_integer
from qcomp.errors import QcompError
from qcomp.interpreter.ops.elementwise import code_table
from qcomp.transforms.lower_to_loop import transcendental
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import Compute, lower_elementwise
from qcomp.transforms.lower_to_loop.held import algebra, lower_pointwise, real_element
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import ALL, FLOATS, REALS, lowers
from qcomp.transforms.lower_to_loop.tables import has_table, lower_requantize, lower_table

Formula = Callable[[Reals, SSAValue], SSAValue]


def hardsigmoid(m: Reals, x: SSAValue) -> SSAValue:
    """min(max(x + 3, 0), 6) / 6."""
    return m.divide(m.clamp(m.add(x, m.number(3.0)), 0.0, 6.0), m.number(6.0))


def hardswish(m: Reals, x: SSAValue) -> SSAValue:
    """x * min(max(x + 3, 0), 6) / 6."""
    return m.divide(m.multiply(x, m.clamp(m.add(x, m.number(3.0)), 0.0, 6.0)), m.number(6.0))


def rsqrt(m: Reals, x: SSAValue) -> SSAValue:
    """1 / sqrt(x), both rounded."""
    return m.divide(m.number(1.0), m.square_root(x))


_FORMULAS: dict[type[nn.UnaryOp], Formula] = {
    nn.ReluOp: lambda m, x: m.clamp(x, 0.0, math.inf),
    nn.NegOp: Reals.negate,
    nn.AbsOp: Reals.absolute,
    nn.SqrtOp: Reals.square_root,
    nn.RsqrtOp: rsqrt,
    nn.HardsigmoidOp: hardsigmoid,
    nn.HardswishOp: hardswish,
    nn.ExpOp: transcendental.exp,
    nn.TanhOp: transcendental.tanh,
    nn.ErfOp: transcendental.erf,
    nn.SigmoidOp: transcendental.sigmoid,
    nn.SiluOp: transcendental.silu,
}
_OF_ALL = (nn.ReluOp, nn.ClampOp, nn.NegOp, nn.AbsOp)
"""What integers have, too."""
_OF_FLOATS = tuple(kind for kind in _FORMULAS if kind not in _OF_ALL)


def formula(op: nn.UnaryOp) -> tuple[tuple[object, ...], Formula]:
    """What names the function of `op`, and the function over tiles of reals."""
    match op:
        case nn.ClampOp():
            low, high = op.bounds
            return (op.name, low, high), lambda m, x: m.clamp(x, low, high)
        case nn.LeakyReluOp():
            slope = op.negative_slope.value.data
            return (op.name, slope), lambda m, x: m.select("gt", x, 0.0, x, m.multiply(x, m.number(slope)))
        case nn.GeluOp():
            mode = op.approximate.data
            return (op.name, mode), transcendental.gelu_tanh if mode == "tanh" else transcendental.gelu
        case _:
            return (op.name,), _FORMULAS[type(op)]


def _whole_formula(op: nn.UnaryOp, element: IntegerType) -> Formula:
    """The function of `op`, one of `_OF_ALL`, on integers."""
    match op:
        case nn.ReluOp():
            bounds = whole_bounds((0.0, math.inf), element)
            return lambda m, x: m.clamp(x, *bounds)
        case nn.ClampOp():
            bounds = whole_bounds(op.bounds, element)
            return lambda m, x: m.clamp(x, *bounds)
        case nn.NegOp():
            return lambda m, x: m.negate(x)
        case _:
            return lambda m, x: m.absolute(x)


def whole_bounds(bounds: tuple[float, float], element: Attribute) -> tuple[float, float]:
    """The bounds of a clamp; for integers limited to what `element` holds. Raises QcompError for fractions there."""
    if not is_integer(element):
        return bounds
    low, high = integer_range(element)
    first, last = (_whole_bound(bound, low, high) for bound in bounds)
    return first, last


def _whole_bound(bound: float, low: int, high: int) -> int:
    if not math.isinf(bound) and bound != int(bound):
        raise QcompError(f"clamp of integers to {bound}", code="unsupported-type", hint="cast the operand to f32 first")
    return int(min(max(bound, low), high)) if math.isinf(bound) else min(max(int(bound), low), high)


@lowers(*_OF_FLOATS, nn.LeakyReluOp, nn.GeluOp, elements=FLOATS, symbolic=True)
@lowers(*_OF_ALL, elements=ALL, symbolic=True)
def lower_unary(lowering: Lowering, op: nn.UnaryOp) -> None:
    """A table between codes; else the formula, with dequantize and quantize around it where there are codes."""
    source = lowering.operand(op.input)
    short = op.name.removeprefix("nn.")
    table = code_table(op)
    if table is not None:
        lower_table(lowering, source, lowering.define(op.result, op.location), table, op.location, short)
        return
    name, function = formula(op)
    element = real_element(op.input)
    if is_integer(element):
        function = _whole_formula(op, element)
    compute: Compute = lambda b, x: function(algebra(b, loop.tile_shape(x[0].type), element), x[0])  # noqa: E731
    lower_pointwise(lowering, op, short, name, compute, op.recipe)


@lowers(quant.QuantizeOp, quant.DequantizeOp, quant.RequantizeOp, elements=REALS, symbolic=True)
def lower_quantize(lowering: Lowering, op: quant.QuantizeOp | quant.DequantizeOp | quant.RequantizeOp) -> None:
    """Between reals and codes by arithmetic, between codes and codes by a table."""
    recipe = op.recipe if isinstance(op, quant.QuantizeOp | quant.RequantizeOp) else None
    source = lowering.operand(op.input)
    target = lowering.define(op.result, op.location)
    if has_table(source, target):
        lower_requantize(lowering, source, target, recipe, op.location)
        return
    name = op.name.removeprefix("quant.")
    lower_elementwise(lowering, [source], target, op.location, name, (name,), lambda b, x: x[0], recipe)
