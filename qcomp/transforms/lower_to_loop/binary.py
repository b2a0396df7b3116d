# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of binary arithmetic with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from qcomp.dialects import loop, nn
from qcomp.interpreter.ops.elementwise import code_table_by_constant
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.held import algebra, lower_pointwise, real_element, wrapped
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import ALL, FLOATS, lowers
from qcomp.transforms.lower_to_loop.tables import lower_table
from qcomp.transforms.lower_to_loop.unary import whole_bounds

_FORMULAS: dict[type[Operation], Callable[[Reals, SSAValue, SSAValue], SSAValue]] = {
    nn.AddOp: lambda m, x, y: m.add(x, y),
    nn.SubOp: lambda m, x, y: m.subtract(x, y),
    nn.MulOp: lambda m, x, y: m.multiply(x, y),
    nn.DivOp: lambda m, x, y: m.divide(x, y),
    nn.MaximumOp: lambda m, x, y: m.larger(x, y),
    nn.MinimumOp: lambda m, x, y: m.smaller(x, y),
}


def lower_by_number(lowering: Lowering, op: nn.BinaryOp | nn.CompareOp, name: str) -> bool:
    """Emit the look-up that `op` is when one side holds 8-bit codes and the other is one constant number."""
    found = code_table_by_constant(op)
    if found is None:
        return False
    source = lowering.operand(found[0])
    lower_table(lowering, source, lowering.define(op.result, op.location), found[1], op.location, name)
    return True


@lowers(nn.AddOp, nn.SubOp, nn.MulOp, nn.MaximumOp, nn.MinimumOp, elements=ALL, symbolic=True)
@lowers(nn.DivOp, elements=FLOATS, symbolic=True)
def lower_binary(lowering: Lowering, op: nn.BinaryOp) -> None:
    """A table between codes where one side is a constant number; else arithmetic and the activation. Integers wrap."""
    if lower_by_number(lowering, op, op.name.removeprefix("nn.")):
        return
    element, formula = real_element(op.lhs), _FORMULAS[type(op)]
    bounds = whole_bounds(op.activation.bounds, element) if op.activation is not None else None

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        m = algebra(b, loop.tile_shape(x[0].type), element)
        value = formula(m, x[0], x[1])
        return value if bounds is None else m.clamp(wrapped(b, value, element), *bounds)

    name = op.name.removeprefix("nn.")
    lower_pointwise(lowering, op, name, (name, bounds), compute, op.recipe)
