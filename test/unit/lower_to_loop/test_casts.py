# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts between all element types that buffers hold, and integer arithmetic, in bits at all levels."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from layers import Program
from xdsl.dialects.builtin import IntegerType, TensorType, f32, i8, i32, i64
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.element import numpy_dtype, ui8
from qcomp.errors import QcompError

ELEMENTS: list[Attribute] = [f32, i8, ui8, i32, i64, IntegerType(1)]
REALS = np.array(
    [0.0, -0.0, 0.5, -0.5, 1.99, -1.99, 127.9, -128.9, 255.7, 256.0, 300.3, -300.3, 2.0**31, -(2.0**31), 2147483520.0,
     2.0**63, -(2.0**63), 1e30, np.inf, -np.inf, np.nan, 1e-45, 3.5, 2.0**24 + 2],
    np.float32,
)  # fmt: skip
WHOLE = np.array([0, 1, -1, 127, 128, -128, -129, 255, 256, 300, 2**24 + 1, 2**31 - 1, -(2**31)], np.int64)
WIDE = np.array([2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**32], np.int64)


def values(element: Attribute, count: int) -> np.ndarray:
    """`count` values of an element type, all awkward ones first."""
    dtype = numpy_dtype(element)
    if element == f32:
        return np.resize(REALS, count)
    if element == IntegerType(1):
        return np.arange(count) % 3 == 0
    whole = np.concatenate([WHOLE, WIDE]) if element == i64 else WHOLE
    return np.resize(whole, count).astype(dtype)


def argument(p: Program, element: Attribute, shape: tuple[int, ...]) -> SSAValue:
    """An argument of awkward values."""
    return p.given(values(element, int(np.prod(shape))).reshape(shape), element)


@pytest.mark.parametrize("source", ELEMENTS, ids=str)
def test_casts(source: Attribute) -> None:
    p = Program(1)
    argument(p, source, (3, 17))
    results = [p.add(nn.CastOp(p.block.args[0], TensorType(target, (3, 17)))) for target in ELEMENTS]
    three_way.check(p.module(*results), *p.arrays, compilers=("gcc -O0", "gcc -O3 -march=native"))


@pytest.mark.parametrize("shape", [(1,), (), (2, 3, 5, 7)])
def test_cast_shapes(shape: tuple[int, ...]) -> None:
    p = Program(2)
    argument(p, i64, shape)
    argument(p, f32, shape)
    first = p.add(nn.CastOp(p.block.args[0], TensorType(f32, shape)))
    results = [first, p.add(nn.CastOp(p.block.args[1], TensorType(i32, shape)))]
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("element", [i32, i64], ids=str)
def test_integer_arithmetic_wraps(element: Attribute) -> None:
    p = Program(3)
    argument(p, element, (19, 1))
    argument(p, element, (1, 19))
    ops = (nn.AddOp, nn.SubOp, nn.MulOp, nn.MaximumOp, nn.MinimumOp)
    results = [p.add(op(p.block.args[0], p.block.args[1])) for op in ops]
    three_way.check(p.module(*results), *p.arrays, compilers=("gcc -O3", "gcc -O0"))


@pytest.mark.parametrize("element", [i32, i64], ids=str)
def test_functions_of_integers(element: Attribute) -> None:
    """-x and |x| of the smallest number are that number; bounds outside the type are its ends."""
    p = Program(3)
    argument(p, element, (37,))
    x = p.block.args[0]
    makes = [
        nn.ReluOp(x),
        nn.NegOp(x),
        nn.AbsOp(x),
        nn.ClampOp.of(x, -3, 300),
        nn.ClampOp.of(x, high=5.0),
        nn.ClampOp.of(x, 7, 2),
    ]
    three_way.check(p.module(*map(p.add, makes)), *p.arrays)


def test_what_is_refused() -> None:
    p = Program(4)
    argument(p, i32, (3,))
    module = p.module(p.add(nn.DivOp(p.block.args[0], p.block.args[0])))
    with pytest.raises(QcompError, match=r"nn\.div of i32 is not lowered to loops"):
        three_way.lower(module, three_way.TARGETS[0])
    p = Program(6)
    argument(p, i32, (3,))
    module = p.module(p.add(nn.ClampOp.of(p.block.args[0], 0.5, 2)))
    with pytest.raises(QcompError, match=r"clamp of integers to 0\.5"):
        three_way.lower(module, three_way.TARGETS[0])
    p = Program(7)
    argument(p, i32, (3,))
    module = p.module(p.add(nn.TanhOp(p.block.args[0])))
    with pytest.raises(QcompError, match=r"nn\.tanh of i32 is not lowered"):
        three_way.lower(module, three_way.TARGETS[0])
