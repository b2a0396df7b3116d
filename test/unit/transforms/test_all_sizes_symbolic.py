# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pass on every op with all its sizes symbolic: a rewrite that cannot tell declines, with a reason."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from op_examples import FEW_FORMS, Example, arguments, examples, program, with_symbols
from tensor_programs import same_bits
from xdsl.dialects.builtin import ModuleOp

import qcomp
from qcomp.backend.compile import pipelines
from qcomp.backend.target import find_target
from qcomp.dialects.context import context
from qcomp.refusals import RefusalError
from qcomp.transforms import own_passes
from qcomp.transforms.pipeline import run_passes

LAST = ("lower-to-loop", "plan-memory")


@cache
def items() -> list[Example]:
    """One example of each op class and properties; of layers a second, whose parameters are symbolic, too."""
    found = {(item.op.name, len(item.operands), str(item.op.properties)): item for item in examples()}
    layers = [item for item in found.values() if item.parameters]
    return [*(with_symbols(item, False) for item in found.values()), *(with_symbols(item, True) for item in layers)]


@cache
def everything() -> ModuleOp:
    return program(items(), constants=True, forms=FEW_FORMS)


def test_all_ops_have_symbolic_sizes() -> None:
    assert not [item.name for item in items() if not item.symbols()]


@pytest.mark.parametrize("name", [name for name in own_passes() if name not in LAST])
def test_a_pass_takes_any_sizes(name: str) -> None:
    """As the first pass; `test_all_passes_keep_the_numbers` verifies the module after each."""
    module = everything().clone()
    own_passes()[name]()().apply(context(), module)


def test_all_passes_keep_the_numbers() -> None:
    """What comes out is what the interpreter gives, in bits or, of float contractions, nearly."""
    module = everything().clone()
    run_passes(module, "insert-qdq")
    inputs = arguments(module)
    want = qcomp.interpret(module, *inputs)
    steps = pipelines(module, find_target("generic"), 3)
    run_passes(module, steps.reference)
    run_passes(module, steps.integer)
    _hold(qcomp.interpret(module, *inputs), want)


def test_loops_over_any_sizes() -> None:
    """Loops give the same; what is not lowered is refused by op and line."""
    with pytest.raises(RefusalError) as refused:
        run_passes(program(items(), constants=True), "insert-qdq,lower-batch-norm,widen-halves,lower-to-loop")
    places = [refusal.location for refusal in refused.value.refusals]
    assert all("ops.mlir:1" in place for place in places)
    kept = [item for item in items() if not any(place.startswith(item.name) for place in places)]
    assert len(kept) > 90
    module = program(kept, constants=True, forms=FEW_FORMS[:1])
    run_passes(module, "insert-qdq")
    inputs = arguments(module)
    want = qcomp.interpret(module, *inputs)
    run_passes(module, "lower-batch-norm,widen-halves,lower-to-loop,plan-memory")
    _hold(qcomp.interpret(module, *inputs), want)


def _hold(found: Any, want: Any) -> None:
    for place, (one, other) in enumerate(zip(found, want, strict=True)):
        assert one.dtype == other.dtype and one.shape == other.shape, place
        assert same_bits(one, other) or _near(one, other), (place, one, other)


def _near(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return one.dtype.kind in "f" and np.allclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)
