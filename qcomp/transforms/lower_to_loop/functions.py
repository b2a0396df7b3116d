# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of functions by name, comparison and choice: the reference's formulas over loop ops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.element import is_integer
from qcomp.errors import QcompError
from qcomp.interpreter.ops.elementwise import code_table
from qcomp.interpreter.reference.functions import BINARY, FUNCTIONS, Formula, Function
from qcomp.transforms.lower_to_loop.binary import lower_by_number
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.held import algebra, is_true, lower_pointwise, real_element, truth, wrapped
from qcomp.transforms.lower_to_loop.registry import ALL, lowers
from qcomp.transforms.lower_to_loop.tables import has_table, lower_table
from qcomp.transforms.lower_to_loop.unary import whole_bounds


def _formula(function: Function, name: str, element: Attribute) -> Formula:
    formula = function.whole if is_integer(element) else function.real
    if formula is None:
        raise QcompError(f"{name} of {element} is not lowered to loops", code="lower")
    return formula


@lowers(nn.FunctionOp, elements=ALL, symbolic=True)
def lower_function(lowering: Lowering, op: nn.FunctionOp) -> None:
    """A table between codes; else the formula."""
    name = op.function.data
    source = lowering.operand(op.input)
    table = code_table(op)
    if table is not None:
        target = lowering.define(op.result, op.location)
        assert has_table(source, target)
        lower_table(lowering, source, target, table, op.location, name)
        return
    function, element, numbers = FUNCTIONS[name], real_element(op.input), op.numbers
    formula = _formula(function, name, element)

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        return formula(algebra(b, loop.tile_shape(x[0].type), element), x[0], *numbers)

    lower_pointwise(lowering, op, name, (name, *numbers), compute, op.recipe, not function.lanes)


@lowers(nn.BinaryFunctionOp, elements=ALL, symbolic=True)
def lower_binary_function(lowering: Lowering, op: nn.BinaryFunctionOp) -> None:
    """A table between codes where one side is a constant number; else the formula, then the activation."""
    name = op.function.data
    if lower_by_number(lowering, op, name):
        return
    function, element = BINARY[name], real_element(op.lhs)
    formula = _formula(function, name, element)
    bounds = whole_bounds(op.activation.bounds, element) if op.activation is not None else None

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        m = algebra(b, loop.tile_shape(x[0].type), element)
        value = formula(m, x[0], x[1])
        return value if bounds is None else m.clamp(wrapped(b, value, element), *bounds)

    lower_pointwise(lowering, op, name, (name, bounds), compute, op.recipe, not function.lanes)


@lowers(nn.CompareOp, elements=ALL, symbolic=True)
def lower_compare(lowering: Lowering, op: nn.CompareOp) -> None:
    """0 or 1; of codes and a number by a table."""
    predicate = op.predicate.data
    if lower_by_number(lowering, op, f"compare_{predicate}"):
        return

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        return truth(b, b.add(loop.CompareOp(predicate, x[0], x[1])))

    lower_pointwise(lowering, op, f"compare_{predicate}", ("compare", predicate), compute)


@lowers(nn.SelectOp, elements=ALL, symbolic=True)
def lower_select(lowering: Lowering, op: nn.SelectOp) -> None:
    """One or the other; codes of one encoding are not looked at."""

    def compute(b: Builder, x: Sequence[SSAValue]) -> SSAValue:
        return b.add(loop.SelectOp(is_true(b, x[0]), x[1], x[2]))

    lower_pointwise(lowering, op, "select", ("select",), compute, codes_as_bytes=op.moves_codes)
