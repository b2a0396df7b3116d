# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn.take and nn.resample at all levels, bits equal, on codes, reals and integers, in both layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import three_way
from layers import Program, activation, kind
from xdsl.dialects.builtin import i64

from qcomp.dialects import nn
from qcomp.interpreter import interpret
from qcomp.interpreter.reference import resampling

A, C = activation(0.021, 113), activation(0.017, 91, True)
MIRROR = [2, 1, 0, 1, 2, 3, 4, 3, 2, 1, 0, 4, 4]


@pytest.mark.parametrize("last", [False, True])
def test_take(last: bool) -> None:
    """Channels last and row-major; of other codes than the result's; of single elements."""
    p = Program(1)
    q, x, n = p.input((2, 19, 5, 6), A), p.input((2, 19, 5, 6)), p.given(np.arange(30).reshape(5, 6), i64)
    if last:
        q, x = (p.add(nn.MaxPool2dOp(value, (1, 1), (1, 1))) for value in (q, x))
    results = [p.add(nn.TakeOp(value, 2, MIRROR)) for value in (q, x)]
    results += [p.add(nn.TakeOp(value, 3, [5, 0, 0, 2])) for value in (q, x)]
    results += [p.add(nn.TakeOp(value, 1, [18, 3])) for value in (q, x)]
    results += [p.add(nn.TakeOp(q, 2, [4], kind((2, 19, 1, 6), C))), p.add(nn.TakeOp(n, 1, [5, 5, 0]))]
    results.append(p.add(nn.TakeOp(n, 0, [])))
    few = p.input((2, 3, 5, 37), A)
    few = p.add(nn.MaxPool2dOp(few, (1, 1), (1, 1))) if last else few
    results.append(p.add(nn.TakeOp(few, 2, MIRROR)))
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("last", [False, True])
def test_resample(last: bool) -> None:
    """Two, four and many taps, of reals and of codes, to codes and to reals."""
    p = Program(2)
    q, x = p.input((2, 19, 5, 6), A), p.input((2, 19, 5, 6))
    if last:
        q, x = (p.add(nn.MaxPool2dOp(value, (1, 1), (1, 1))) for value in (q, x))
    tables = [
        (2, resampling.linear(5, 9, None, False, np.float32)), (3, resampling.cubic(6, 4, 0.7, True, np.float32)),
        (2, resampling.smoothed(5, 2, None, False, np.float32, "cubic")),
        (1, resampling.linear(19, 7, None, True, np.float32)),
    ]  # fmt: skip
    results: list[Any] = []
    for dim, (indices, weights) in tables:
        places, factors = (p.add(nn.ConstantOp(array)) for array in (indices, weights))
        results.append(p.add(nn.ResampleOp(x, places, factors, dim)))
        sizes = list(results[-1].type.get_shape())
        results.append(p.add(nn.ResampleOp(q, places, factors, dim, kind(sizes, C))))
    module = p.module(*results)
    found = three_way.check(module, *p.arrays)
    pytest.importorskip("torch")
    expected = interpret(module, *p.arrays, evaluator="torch")
    assert all(np.allclose(left, right, 1e-6, 1e-6) for left, right in zip(found, expected, strict=True))
