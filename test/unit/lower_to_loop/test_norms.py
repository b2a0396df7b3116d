# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""softmax, layer norm and batch norm in bits at all levels, in every layout, and close to torch."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import Program, activation, kind
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.interpreter import interpret
from qcomp.interpreter.reference.norm import layer_norm
from qcomp.interpreter.reference.reduction import mean

A, C = activation(0.02, 114), activation(1 / 256, 0)
SHAPES = [(3, 37), (2, 3, 5, 49), (4, 16), (2, 5, 3), (1, 17, 1), (7,)]


def positive(p: Program, size: int) -> SSAValue:
    return p.add(nn.ConstantOp(np.abs(p.rng.standard_normal(size)).astype(np.float32)))


def planted(array: np.ndarray) -> None:
    """Rows with NaN, infinities, nothing but -inf, and equal elements."""
    rows = array.reshape(-1, array.shape[-1])
    rows *= 5
    for row, value in zip(rows, (np.nan, np.inf, -np.inf, 3e38), strict=False):
        row[-1] = value
    if len(rows) > 6:
        rows[4], rows[5] = -np.inf, 0.25


@pytest.mark.parametrize("shape", SHAPES)
def test_softmax(shape: tuple[int, ...]) -> None:
    p = Program(1)
    x, q = p.input(shape), p.input(shape, A)
    planted(p.arrays[0])
    results = [p.add(nn.SoftmaxOp(x, dim)) for dim in range(-1, len(shape) - 1)]
    results += [p.add(nn.SoftmaxOp(q, 0, kind(shape, C))), p.add(nn.SoftmaxOp(q, -1, kind(shape)))]
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("shape", [(2, 19, 5, 37), (1, 3, 4, 16)])
def test_softmax_of_images(shape: tuple[int, ...]) -> None:
    """Channels last with the border of a later convolution."""
    p = Program(2)
    x = p.add(nn.MaxPool2dOp(p.input(shape), (1, 1), (1, 1)))
    results = [p.add(nn.SoftmaxOp(x, dim)) for dim in range(4)]
    weight = p.reals((3, shape[1], 3, 3))
    module = p.module(*results)
    three_way.check(module, *p.arrays)
    p = Program(2)
    x = p.add(nn.MaxPool2dOp(p.input(shape), (1, 1), (1, 1)))
    weight = p.reals((3, shape[1], 3, 3))
    module = p.module(p.add(nn.Conv2dOp(p.add(nn.SoftmaxOp(x, 1)), weight, padding=(1, 1))))
    three_way.check(module, *p.arrays, relative=1e-5)


@pytest.mark.parametrize(
    "shape, axes", [((3, 37), 1), ((2, 3, 5, 49), 1), ((2, 3, 5, 7), 2), ((4, 16), 2), ((2, 3), 1)]
)
@pytest.mark.parametrize("affine", [(True, True), (False, True), (True, False), (False, False)])
def test_layer_norm(shape: tuple[int, ...], axes: int, affine: tuple[bool, bool]) -> None:
    p = Program(3)
    x, q = p.input(shape), p.input(shape, A)
    planted(p.arrays[0])
    normalized = shape[len(shape) - axes :]
    weight, bias = (p.reals(normalized) if present else None for present in affine)
    results = [
        p.add(nn.LayerNormOp(x, normalized, weight, bias, 1e-5)),
        p.add(nn.LayerNormOp(q, normalized, weight, bias, 1e-12, kind(shape, A))),
    ]
    three_way.check(p.module(*results), *p.arrays)


EQUAL = (3.3, -0.1, 1e4 / 3, 2.0**24 + 2, 1e-45, -1e-40, 2.0**-126, 1e38, float(np.finfo(np.float32).max), -0.0, 0.0)
"""Values whose sum over a row is rounded, denormal, or overflows."""


def test_equal_elements_have_no_deviation() -> None:
    """In lanes, in registers, over several dimensions, of reals and of codes: exactly 0, or the bias."""
    p, count = Program(9), len(EQUAL)
    x, image, q = p.input((count, 37)), p.input((3, 17, count)), p.input((3, 21), A)
    p.arrays[0][:], p.arrays[1][:] = np.array(EQUAL, np.float32)[:, None], np.array(EQUAL, np.float32)
    p.arrays[2][:] = np.array([[3], [114], [255]], np.uint8).view(p.arrays[2].dtype)
    bias = p.input((37,))
    normal = [p.add(nn.LayerNormOp(x, (37,), p.reals((37,)), bias, 1e-5))]
    normal += [
        p.add(nn.LayerNormOp(x, (37,), None, None, 1e-12)),
        p.add(nn.LayerNormOp(q, (21,), None, None, 1e-5, kind((3, 21)))),
    ]
    means = [p.add(nn.MeanOp(x, (1,), True, shifted=True))]
    means += [p.add(nn.MeanOp(image, axes, True, shifted=True)) for axes in ((1,), (0, 1))]
    apart = [p.add(nn.SubOp(value, mean)) for value, mean in zip((x, image, image), means, strict=True)]
    affine, *zeros = three_way.check(p.module(*normal, *apart), *p.arrays)
    assert all(not zero.any() for zero in zeros)
    assert (affine == p.arrays[3]).all()


@settings(max_examples=60, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 3000), st.sampled_from(["f", "d"]))
def test_any_number_of_any_equal_elements(value: float, count: int, dtype: str) -> None:
    row = np.full((1, count), value, dtype)
    assert not layer_norm(row, 1, None, None, 1e-12).any()
    assert mean(row, (1,), False, shifted=True) == value


@pytest.mark.parametrize("size", [5, 768])
def test_mean_is_at_least_as_near_as_a_plain_one(size: int) -> None:
    """Elements far from 0 gain by the shift; an outlier in any place costs nothing."""
    rows = np.random.default_rng(10).standard_normal((400, size)).astype(np.float32)
    far, outlier = rows + np.float32(1e4), np.where(np.arange(size) == 0, np.float32(1e4), rows)
    errors: list[list[float]] = []
    for x in (rows, far, outlier):
        exact = x.astype(np.float64).mean(1)
        found = [mean(x, (1,), False, shifted=shifted) for shifted in (True, False)]
        errors.append([float(np.sqrt(((value - exact) ** 2).mean())) for value in found])
    assert errors[1][0] < 0.9 * errors[1][1]
    # The deviations are around 1: what three elements on one side of the mean cost is nothing beside their rounding.
    assert all(ours <= 1.1 * plain + 2.0**-26 for ours, plain in errors)


def test_norms_by_all_compilers() -> None:
    p = Program(4)
    x = p.input((5, 3, 53))
    planted(p.arrays[0])
    weight = p.input((53,))
    results = [p.add(nn.SoftmaxOp(x, dim)) for dim in range(3)]
    results.append(p.add(nn.LayerNormOp(x, (53,), weight, p.reals((53,)), 1e-5)))
    three_way.check(p.module(*results), *p.arrays, compilers=three_way.COMPILERS)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 35), min_size=1, max_size=4), st.data())
def test_any_shape(shape: list[int], data: st.DataObject) -> None:
    p = Program(5)
    x = p.input(shape)
    axes = data.draw(st.integers(1, len(shape)))
    dim = data.draw(st.integers(0, len(shape) - 1))
    normalized = tuple(shape[len(shape) - axes :])
    results = [p.add(nn.SoftmaxOp(x, dim)), p.add(nn.LayerNormOp(x, normalized, None, None, 1e-5))]
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("shape", [(2, 19, 3, 5), (3, 7), (2, 18, 4)])
@pytest.mark.parametrize("affine", [(True, True), (False, False)])
def test_batch_norm(shape: tuple[int, ...], affine: tuple[bool, bool]) -> None:
    p = Program(6)
    x, q = p.input(shape), p.input(shape, A)
    planted(p.arrays[0])
    values = [x, p.add(nn.MaxPool2dOp(x, (1, 1), (1, 1)))] if len(shape) == 4 else [x]
    mean, var = p.reals((shape[1],)), positive(p, shape[1])
    weight, bias = (p.reals((shape[1],)) if present else None for present in affine)
    results = [p.add(nn.BatchNormOp(value, mean, var, weight, bias, 1e-3)) for value in values]
    results.append(p.add(nn.BatchNormOp(q, mean, var, weight, bias, 1e-3, kind(shape, A))))
    three_way.check(p.module(*results), *p.arrays)


def test_batch_norm_needs_constants() -> None:
    p = Program(7)
    module = p.module(p.add(nn.BatchNormOp(p.input((2, 3)), p.input((3,)), p.reals((3,)), None, None, 1e-3)))
    with pytest.raises(QcompError, match="batch norm is lowered to loops with constant") as caught:
        three_way.lower(module, three_way.TARGETS[0])
    assert caught.value.op == "nn.batch_norm"


def test_close_to_torch() -> None:
    p = Program(8)
    x = p.input((4, 3, 197))
    p.arrays[0] *= 7
    results = [p.add(nn.SoftmaxOp(x, dim)) for dim in range(3)]
    results.append(p.add(nn.LayerNormOp(x, (3, 197), p.reals((3, 197)), p.reals((3, 197)), 1e-5)))
    module = p.module(*results)
    for ours, torchs in zip(interpret(module, *p.arrays), interpret(module, *p.arrays, evaluator="torch"), strict=True):
        np.testing.assert_allclose(ours, torchs, rtol=1e-4, atol=1e-6)
