# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools in three dimensions and adaptive max pools at all levels, bits equal."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from layers import Program, activation, kind
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from qcomp.dialects import nn

A, C = activation(0.021, 113), activation(0.017, 91, True)
WINDOW = ((3, 2, 3), (2, 1, 2), (1, 1, 0))


@pytest.mark.parametrize("shape", [(2, 7, 4, 5, 6), (1, 19, 3, 4, 5), (3, 4, 5, 6)])
def test_three_dimensions(shape: tuple[int, ...]) -> None:
    p = Program(5)
    q, x = p.input(shape, A), p.input(shape)
    x_bits = p.arrays[1].reshape(-1)
    x_bits[:5] = [np.nan, -0.0, np.inf, -np.inf, 0.0]
    results: list[SSAValue] = []
    for encoding, target, value in ((A, C, q), (None, None, x)):
        for ceil in (False, True):
            plain = nn.MaxPool3dOp(value, *WINDOW, (1, 2, 1), ceil)
            results.append(p.add(nn.MaxPool3dOp(value, *WINDOW, (1, 2, 1), ceil, kind(plain.infer_shape(), encoding))))
            plain.erase()
        average = nn.AvgPool3dOp(value, *WINDOW, True, False)
        results.append(p.add(nn.AvgPool3dOp(value, *WINDOW, True, False, None, kind(average.infer_shape(), target))))
        average.erase()
        sizes = (*shape[:-3], 2, 3, 5)
        results.append(p.add(nn.AdaptiveAvgPool3dOp(value, (2, 3, 5), kind(sizes, target))))
        results.append(p.add(nn.AdaptiveMaxPool3dOp(value, (2, 3, 5), kind(sizes, encoding))))
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (9, 7)])
def test_adaptive_max(size: tuple[int, int]) -> None:
    p = Program(7)
    q, x = p.input((2, 21, 9, 7), A), p.input((2, 3, 9, 7))
    p.arrays[1].reshape(-1)[:5] = [np.nan, -0.0, np.inf, -np.inf, 0.0]
    y = p.add(nn.AdaptiveMaxPool2dOp(q, size, kind((2, 21, *size), A)))
    z = p.add(nn.AdaptiveMaxPool2dOp(x, size))
    three_way.check(p.module(y, z), *p.arrays)


def test_integers() -> None:
    p = Program(8)
    small = p.given(p.rng.integers(-(2**31), 2**31, (2, 3, 5, 6)).astype(np.int32), i32)
    large = p.given(p.rng.integers(-(2**63), 2**63 - 1, (2, 3, 5, 6)), i64)
    results = [p.add(nn.MaxPool2dOp(value, (2, 3), (1, 2), (1, 1))) for value in (small, large)]
    three_way.check(p.module(*results), *p.arrays)


def test_indices() -> None:
    """With ties, NaN, windows that reach over the edge; of codes, of an image inside a program."""
    p = Program(9)
    x, q = p.input((2, 7, 9, 6)), p.input((2, 5, 4, 5, 6), A)
    p.arrays[0][:] = np.round(p.arrays[0])
    p.arrays[0].reshape(-1)[:20:4] = [np.nan, -np.inf, -np.inf, np.inf, np.inf]
    image = p.add(nn.MaxPool2dOp(x, (1, 1), (1, 1)))
    results = [p.add(nn.MaxPoolIndices2dOp(value, (3, 2), (2, 1), (1, 1), (2, 1), True)) for value in (x, image)]
    results.append(p.add(nn.MaxPoolIndices3dOp(q, *WINDOW)))
    three_way.check(p.module(*results), *p.arrays)
