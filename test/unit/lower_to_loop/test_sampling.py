# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grid sampling at all levels, bits equal, and close to torch."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from layers import Program, activation, kind

from qcomp.dialects import nn
from qcomp.interpreter import interpret

A, C = activation(0.021, 113), activation(0.017, 91, True)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode: str, align: bool) -> None:
    """All paddings; places far outside and at the edges; an image of one row; codes in and out."""
    p = Program(3)
    x, q, row = p.input((2, 19, 5, 6)), p.input((2, 3, 5, 6), A), p.input((2, 3, 1, 6))
    grid = p.input((2, 4, 7, 2))
    p.arrays[-1] *= 1.5
    p.arrays[-1].reshape(-1)[:12] = [-1, 1, 1, -1, 0, 0, -9, 9, 1e9, -1e9, 0.2, -0.6]
    results = [
        p.add(nn.GridSampleOp(value, grid, mode, padding, align))
        for padding in ("zeros", "border", "reflection")
        for value in (x, row)
    ]
    results.append(p.add(nn.GridSampleOp(q, grid, mode, "zeros", align, kind((2, 3, 4, 7), C))))
    module = p.module(*results)
    found = three_way.check(module, *p.arrays)
    pytest.importorskip("torch")
    expected = interpret(module, *p.arrays, evaluator="torch")
    # So far outside, reflection is a matter of rounding.
    near = np.abs(p.arrays[-1]).max(axis=-1) < 100
    for left, right in zip(found, expected, strict=True):
        assert np.allclose(left.transpose(0, 2, 3, 1)[near], right.transpose(0, 2, 3, 1)[near], 1e-5, 1e-5)
