# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every op on every element type: what the table of lowerings says is true, and no rewrite makes an op without a
kernel."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from op_examples import FEW_FORMS, Example, arguments, examples, program, with_element
from tensor_programs import same_bits
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64

import qcomp
from qcomp.backend.compile import pipelines
from qcomp.backend.target import find_target
from qcomp.dialects import nn
from qcomp.dialects.element import ui8
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import is_narrow, widen
from qcomp.transforms.lower_to_loop.registry import refusal
from qcomp.transforms.pipeline import run_passes

ELEMENTS = {str(element): element for element in (i1, ui8, i8, i16, i32, i64, f16, bf16, f32, f64)}
SUMS = (nn.WeightedOp, nn.MatmulOp, nn.RecurrentOp)
"""Float ops that the levels add up in orders of their own."""


@cache
def items(element: str) -> list[Example]:
    """One example of each op class and properties on that element type that means something."""
    found = {(item.op.name, len(item.operands), str(item.op.properties)): item for item in examples()}
    made = [with_element(item, ELEMENTS[element]) for item in found.values() if item.op.name.startswith("nn.")]
    return [item for item in made if item is not None and _has_meaning(item)]


def _has_meaning(item: Example) -> bool:
    module = program([item], constants=True)
    try:
        qcomp.interpret(module, *arguments(module))
    except QcompError:
        return False
    return True


def is_lowered(item: Example) -> bool:
    return refusal(type(item.op), item.operands[isinstance(item.op, nn.SelectOp)].element_type) is None


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_table_says_what_is_lowered(element: str) -> None:
    for item in items(element):
        module = program([item], constants=True)
        run_passes(module, "widen-halves,fold-constants")
        if is_lowered(item):
            run_passes(module, "lower-to-loop")
        else:
            with pytest.raises(QcompError, match=rf"{item.op.name} of {element} is not lowered to loops"):
                run_passes(module, "lower-to-loop")


def _is_rewritten(item: Example) -> bool:
    """Whether rewrites tell the op from others of its kind: no formula is known to them."""
    return not isinstance(item.op, nn.UnaryOp) or isinstance(item.op, nn.ReluOp | nn.ClampOp | nn.CastOp)


@pytest.mark.parametrize("element", ELEMENTS)
def test_all_levels_give_what_the_interpreter_gives(element: str) -> None:
    """Integers have contractions by rewriting only. The passes of level 3 are those of 2."""
    contracts = element not in ("i1", "f16", "bf16", "f32", "f64")
    kept = [item for item in items(element) if is_lowered(item) or (contracts and isinstance(item.op, nn.WeightedOp))]
    module = program(list(filter(_is_rewritten, kept)), constants=True, forms=FEW_FORMS[:1])
    inputs = arguments(module)
    want = qcomp.interpret(module, *inputs)
    kinds = [value.type.element_type for value in module.body.block.first_op.body.block.last_op.operands]  # type: ignore
    for level in (0, 1, 2):
        steps = pipelines(module, find_target("generic"), level)
        lowered = module.clone()
        run_passes(lowered, f"{steps.reference},{steps.integer}".removeprefix(","))
        _hold(want, qcomp.interpret(lowered, *inputs), kinds, level)
    run_passes(lowered, "lower-to-loop")
    if element in ("i8", "i32", "f32"):
        _hold(want, qcomp.interpret(lowered, *inputs), kinds, "loops")


def _hold(want: Any, found: Any, kinds: list[Any], level: object) -> None:
    for place, (one, other) in enumerate(zip(want, found, strict=True)):
        near = same_bits(one, other) or _near(one, other, kinds[place])
        assert one.dtype == other.dtype and one.shape == other.shape and near, (level, place, one, other)


def _near(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], kind: Any) -> bool:
    if kind not in ELEMENTS.values() or str(kind)[0] not in "fb":
        return False
    if is_narrow(kind):
        return np.allclose(widen(one, kind), widen(other, kind), rtol=2e-2, atol=2e-2, equal_nan=True)
    return np.allclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)
