# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""matmul of codes in bits, of floats within the bound K * eps * sum |a| |b|, with every kind of batch and rest."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import three_way
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import Program, activation, contraction_scale, kind
from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.ir import Attribute

from qcomp.backend.emit_c import emit_program
from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter import interpret

A, SIGNED = activation(0.02, 114), Encoding.make(0.03, -11)
SYMMETRIC = Encoding.make(0.01, 0, qmin=-127)


def check_floats(
    module: ModuleOp, lhs: np.ndarray, rhs: np.ndarray, inputs: list[np.ndarray], commands: tuple[str, ...]
) -> None:
    """All levels within the bound, NaN and infinities at the same places."""
    (expected,) = interpret(module, *inputs)
    with np.errstate(invalid="ignore", over="ignore"):
        limit = np.matmul(np.abs(lhs), np.abs(rhs)) * lhs.shape[-1] * 2.0**-24 + 1e-37
    for target in three_way.TARGETS:
        lowered = three_way.lower(module, target)
        found = [interpret(lowered, *inputs)[0]]
        program = emit_program(lowered, target, "net")
        with tempfile.TemporaryDirectory() as folder:
            for command in commands:
                library = three_way.build(program, command, Path(folder))
                found += three_way.run_c(program, library, inputs, [expected])
        for value in found:
            assert np.array_equal(np.isnan(value), np.isnan(expected))
            finite = np.isfinite(expected)
            assert np.array_equal(value[~finite], expected[~finite], equal_nan=True)
            assert (np.abs(value[finite] - expected[finite]) <= limit[finite]).all()


def floats(
    left: tuple[int, ...], right: tuple[int, ...], constant: bool, commands: tuple[str, ...] = three_way.QUICK
) -> None:
    p = Program(len(left))
    x = p.input(left)
    if constant:
        y = p.add(nn.ConstantOp(p.rng.standard_normal(right).astype(np.float32)))
        rhs = y.owner.array  # pyright: ignore
    else:
        y = p.input(right)
        rhs = p.arrays[1]
    p.arrays[0].reshape(-1)[-1] = np.nan
    p.arrays[0].reshape(-1)[0] = np.inf
    check_floats(p.module(p.add(nn.MatmulOp(x, y))), p.arrays[0], rhs, p.arrays, commands)


SHAPES = [
    ((3, 5), (5, 7)), ((31, 19), (19, 37)), ((1, 9), (9, 64)), ((17, 64), (64, 128)), ((5, 1), (1, 50)),
    ((6, 7), (7, 1)), ((2, 3, 15, 6), (2, 3, 6, 33)), ((2, 1, 4, 6), (1, 3, 6, 20)), ((4, 3, 5), (5, 18)),
    ((3, 5), (2, 4, 5, 17)),
    ((3, 1, 5), (3, 5, 49)), ((1, 1, 1, 1), (1, 1, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("left, right", SHAPES)
def test_floats(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    floats(left, right, False)


@pytest.mark.parametrize("left, right", [SHAPES[1], SHAPES[6], SHAPES[8], SHAPES[9]])
def test_floats_by_a_constant(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    floats(left, right, True)


def test_floats_by_all_compilers() -> None:
    floats((2, 31, 19), (2, 19, 53), False, three_way.COMPILERS)


@settings(max_examples=8, deadline=None)
@given(st.tuples(*[st.integers(1, 40)] * 3), st.sampled_from([((), ()), ((2,), ()), ((2,), (2,)), ((1, 3), (2, 1))]))
def test_any_shape(sizes: tuple[int, int, int], batch: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rows, inner, columns = sizes
    floats((*batch[0], rows, inner), (*batch[1], inner, columns), False)


@pytest.mark.parametrize("left, right", [*SHAPES, ((2, 9, 130), (130, 35))])
@pytest.mark.parametrize("constant", [False, True])
def test_codes(left: tuple[int, ...], right: tuple[int, ...], constant: bool) -> None:
    """To codes of both signs and to reals; per tensor and per column."""
    p = Program(7)
    q = p.input(left, A)
    scale = contraction_scale(left[-1], A.scale)
    columns = Encoding.make(0.01 * (0.3 + p.rng.random(right[-1])), axis=len(right) - 1, qmin=-127)
    sides = [p.codes(right, held) if constant else p.input(right, held) for held in (SYMMETRIC, columns)]
    shape = nn.MatmulOp(q, sides[0]).infer_shape()
    targets = [activation(scale, 101), Encoding.make(scale * 0.9, -7), None]
    results = [p.add(nn.MatmulOp(q, side, kind(shape, target))) for side in sides for target in targets]
    three_way.check(p.module(*results), *p.arrays)


def test_signed_codes_on_the_left() -> None:
    p = Program(8)
    q = p.input((2, 7, 19), SIGNED)
    y = p.input((2, 19, 21), SYMMETRIC)
    three_way.check(p.module(p.add(nn.MatmulOp(q, y, kind((2, 7, 21), A)))), *p.arrays)


def test_codes_by_all_compilers() -> None:
    p = Program(9)
    q, y = p.input((2, 13, 70), A), p.input((2, 70, 37), SYMMETRIC)
    result = p.add(nn.MatmulOp(q, y, kind((2, 13, 37), activation(contraction_scale(70, 0.02), 101))))
    three_way.check(p.module(result), *p.arrays, compilers=three_way.COMPILERS)


def test_mixed_operands() -> None:
    """One side in codes, the other in reals: float32 on reals."""
    p = Program(10)
    q, y, x = p.input((3, 5), A), p.input((5, 18)), p.input((3, 5))
    codes = p.codes((5, 18), SYMMETRIC)
    results = [p.add(nn.MatmulOp(q, y, kind((3, 18)))), p.add(nn.MatmulOp(x, codes, kind((3, 18))))]
    three_way.check(p.module(*results), *p.arrays, relative=1e-6)


def zero_points(
    left: tuple[int, ...], right: tuple[int, ...], constant: bool, commands: tuple[str, ...] = three_way.QUICK
) -> None:
    """Both sides with zero points, of both signs; to codes and to reals."""
    p = Program(12)
    sides = [p.input(left, held) for held in (A, SIGNED, activation(0.03, 0))]
    given = [activation(0.013, 91), Encoding.make(0.017, 25), activation(0.019, 128), activation(0.011, 0)]
    others = [p.codes(right, held) if constant else p.input(right, held) for held in given]
    shape = nn.MatmulOp(sides[0], others[0]).infer_shape()
    target = activation(contraction_scale(left[-1], A.scale, 0.015), 117)
    pairs = [(sides[number % 3], others[number % 4]) for number in range(12)][: None if left == (31, 19) else 5]
    results = [
        p.add(nn.MatmulOp(lhs, rhs, kind(shape, None if number == 1 else target)))
        for number, (lhs, rhs) in enumerate(pairs)
    ]
    three_way.check(p.module(*results), *p.arrays, compilers=commands)


ZERO_POINT_SHAPES = [
    SHAPES[1], SHAPES[6], SHAPES[7], SHAPES[9], ((2, 1, 13, 6), (1, 3, 6, 20)), ((1, 1), (1, 1)), ((29, 3), (3, 131)),
    ((2, 12, 130), (2, 130, 35)), ((3, 14, 4), (3, 4, 16)),
]  # fmt: skip


@pytest.mark.parametrize("left, right", ZERO_POINT_SHAPES)
def test_zero_points(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    zero_points(left, right, False)


def test_zero_points_by_a_constant() -> None:
    zero_points((3, 15, 9), (9, 35), True)


def test_zero_points_by_all_compilers() -> None:
    zero_points((2, 14, 11), (2, 11, 37), False, three_way.COMPILERS)


@settings(max_examples=8, deadline=None)
@given(st.tuples(*[st.integers(1, 40)] * 3), st.sampled_from([((), ()), ((2,), ()), ((2,), (2,)), ((1, 3), (2, 1))]))
def test_zero_points_of_any_shape(sizes: tuple[int, int, int], batch: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rows, inner, columns = sizes
    zero_points((*batch[0], rows, inner), (*batch[1], inner, columns), False)


def test_largest_products_fit() -> None:
    """Sums at the edge of int32 before zero points are taken off, and around it after."""
    p = Program(13)
    q, y = p.input((13, 33_000), activation(0.02, 255)), p.input((33_000, 17), activation(0.03, 255))
    p.arrays[0][:], p.arrays[1][:] = 0, 0
    p.arrays[0][:, ::2], p.arrays[1][:, ::3] = 255, 255
    three_way.check(p.module(p.add(nn.MatmulOp(q, y, kind((13, 17))))), *p.arrays)


def test_what_is_refused() -> None:
    p = Program(11)
    columns = Encoding.make([0.1, 0.2, 0.3, 0.4], [0, 0, 3, 0], axis=1)
    module = p.module(p.add(nn.MatmulOp(p.input((2, 3), A), p.input((3, 4), columns), kind((2, 4)))))
    with pytest.raises(
        QcompError, match="right side is quantized per channel with a zero point that is not 0"
    ) as caught:
        three_way.lower(module, three_way.TARGETS[0])
    assert caught.value.code == "not-integer"


@pytest.mark.parametrize("element, dtype", [(i32, np.int32), (i64, np.int64)])
def test_integers_wrap(element: Attribute, dtype: type[np.int32] | type[np.int64]) -> None:
    p = Program(9)
    info = np.iinfo(dtype)
    arrays = [p.rng.integers(info.min, info.max, shape).astype(dtype) for shape in ((2, 1, 5, 7), (3, 7, 4))]
    values = [p.given(array, element) for array in arrays]
    three_way.check(p.module(p.add(nn.MatmulOp(values[0], values[1]))), *p.arrays)
