# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sum, mean and amax over all sets of dimensions, row-major and channels last, on floats and codes, in bits."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import three_way
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import Program, activation, kind
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.interpreter import interpret

A, C = activation(0.02, 114), activation(0.05, 99)
SETS = [axes for count in range(1, 5) for axes in combinations(range(4), count)]
OPS = (nn.SumOp, nn.MeanOp, nn.AmaxOp)


def reduced(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes)


def planted(array: np.ndarray) -> None:
    """NaN, infinities and zeros of both signs; negative elsewhere now and then."""
    flat = array.reshape(-1)
    flat[::7] = -np.abs(flat[::7])
    flat[1::11], flat[2::13] = -0.0, 0.0
    flat[flat.size // 2] = np.nan
    flat[-1], flat[-3:-2] = np.inf, -np.inf


def results(
    p: Program, x: SSAValue, q: SSAValue, shape: tuple[int, ...], axes: tuple[int, ...], keep: bool
) -> list[SSAValue]:
    """All three reductions of reals and of codes to codes."""
    sizes = reduced(shape, axes, keep)
    found = [p.add(op(x, axes, keep)) for op in OPS]
    found += [p.add(op(q, axes, keep, kind(sizes, A if op is nn.AmaxOp else C))) for op in OPS]
    return [*found, p.add(nn.MeanOp(q, axes, keep, kind(sizes)))]


@pytest.mark.parametrize("shape", [(2, 3, 5, 37), (3, 34, 2, 7), (1, 1, 4, 16)])
def test_row_major(shape: tuple[int, ...]) -> None:
    """Registers of partial results, and partial results of registers, with every rest."""
    p = Program(1)
    x, q = p.input(shape), p.input(shape, A)
    planted(p.arrays[0])
    found = [value for axes in SETS for value in results(p, x, q, shape, axes, axes[0] == 1)]
    three_way.check(p.module(*found), *p.arrays)


@pytest.mark.parametrize("shape", [(2, 19, 5, 37), (1, 65, 3, 7)])
def test_channels_last(shape: tuple[int, ...]) -> None:
    """Behind a pool of windows of one element tensors lie channels last."""
    p = Program(2)
    x, q = p.input(shape), p.input(shape, A)
    x, q = (p.add(nn.MaxPool2dOp(value, (1, 1), (1, 1))) for value in (x, q))
    planted(p.arrays[0])
    found = [value for axes in SETS for value in results(p, x, q, shape, axes, axes[0] == 0)]
    three_way.check(p.module(*found), *p.arrays)


def test_by_all_compilers() -> None:
    p = Program(3)
    x, q = p.input((3, 5, 53)), p.input((3, 5, 53), A)
    found = [value for axes in ((2,), (1,), (0, 1), (0, 2)) for value in results(p, x, q, (3, 5, 53), axes, False)]
    three_way.check(p.module(*found), *p.arrays, compilers=three_way.COMPILERS)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.data())
def test_any_shape(shape: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    p = Program(4)
    x, q = p.input(shape), p.input(shape, A)
    found = results(p, x, q, tuple(shape), tuple(sorted(axes)), data.draw(st.booleans()))
    three_way.check(p.module(*found), *p.arrays)


def test_sums_of_codes_that_pass_int32_on_the_way() -> None:
    """The zero point is taken off once at the end, modulo 2^32; what 32 bits cannot hold is summed in 64."""
    p = Program(5)
    edge = activation(0.5, 255)
    q = p.input((1, 9_000_001), edge)
    p.arrays[0][...] = 0
    p.arrays[0][0, :5] = 3
    (found,) = three_way.check(p.module(p.add(nn.SumOp(q, (1,), False, kind((1,))))), *p.arrays, loops=False)
    assert float(found[0]) == 0.5 * np.float32(15 - 9_000_001 * 255)
    p = Program(5)
    q = p.input((1, 8_421_000), edge)
    p.arrays[0][...] = 255
    p.arrays[0][0, :5] = 3
    three_way.check(p.module(p.add(nn.SumOp(q, (1,), False, kind((1,))))), *p.arrays)


@pytest.mark.parametrize("axes", [(3,), (2, 3), (1, 2, 3)])
def test_close_to_torch(axes: tuple[int, ...]) -> None:
    p = Program(6)
    x = p.input((2, 3, 41, 53))
    module = p.module(*(p.add(op(x, axes, False)) for op in OPS))
    for ours, torchs in zip(interpret(module, *p.arrays), interpret(module, *p.arrays, evaluator="torch"), strict=True):
        np.testing.assert_allclose(ours, torchs, rtol=1e-4, atol=1e-4)


def test_integers() -> None:
    p = Program(7)
    x = p.given(np.arange(-5, 7, dtype=np.int32).reshape(3, 4) * 400_000_001, i32)
    module = p.module(p.add(nn.SumOp(x, (0,), False)), p.add(nn.AmaxOp(x, (1,), True)))
    three_way.check(module, *p.arrays)


def test_without_dimensions() -> None:
    p = Program(9)
    x = p.input(())
    three_way.check(p.module(*(p.add(op(x, (), False)) for op in OPS)), *p.arrays)


def test_what_is_refused() -> None:
    p = Program(8)
    module = p.module(p.add(nn.AmaxOp(p.input((3, 4), A), (0,), False, kind((4,), C))))
    with pytest.raises(QcompError, match="between different encodings"):
        three_way.lower(module, three_way.TARGETS[0])
