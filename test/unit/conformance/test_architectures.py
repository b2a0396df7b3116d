# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Well-known architectures in float: exported in three ways, interpreted and compiled, close to eager torch.

Numbers are held to 1e-4 of the largest value of a result, integers and bools to equality.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import deep
import numpy as np
import pytest

import qcomp

torch: Any = pytest.importorskip("torch")
from architectures import ARCHITECTURES, build  # noqa: E402

FORMS = ("non-strict", "strict", "decomposed")
CASES = deep.except_for(
    [(name, FORMS[index // 2 % 3]) for index, name in enumerate(ARCHITECTURES) if index % 2 == 0],
    itertools.product(ARCHITECTURES, FORMS),
)


def exported(model: Any, inputs: Any, form: str) -> Any:
    """The program in one of `FORMS`."""
    program = torch.export.export(model, inputs, strict=form == "strict")
    return program.run_decompositions() if form == "decomposed" else program


def hold(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    """Compare results with eager's."""
    assert len(found) == len(expected)
    for place, (have, want) in enumerate(zip(found, expected, strict=True)):
        assert (have.dtype, have.shape) == (want.dtype, want.shape), (what, place)
        if want.dtype.kind != "f":
            assert np.array_equal(have, want), (what, place)
            continue
        assert np.isfinite(want).all(), "the test does not say much"
        assert np.abs(have - want).max(initial=0.0) <= 1e-4 * np.abs(want).max(initial=0.0), (what, place)


def test_there_are_enough() -> None:
    assert len(ARCHITECTURES) >= 45


@pytest.mark.parametrize(("name", "form"), CASES)
def test_float(name: str, form: str) -> None:
    model, inputs = build(name)
    with torch.no_grad():
        expected = [value.numpy() for value in torch.utils._pytree.tree_leaves(model(*inputs))]
    arrays = [value.numpy() for value in inputs]
    assert len({want.tobytes() for want in expected}) == len(expected)
    module = qcomp.from_torch(exported(model, inputs, form))
    hold(qcomp.interpret(module, *arrays), expected, form)
    hold(qcomp.compile(module).run(arrays), expected, "C")
