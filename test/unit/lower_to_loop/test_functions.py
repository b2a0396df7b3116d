# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions by name, comparison and choice: equal in bits in the nn interpreter, loops and C, for all element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_programs import program
from three_way import check
from xdsl.dialects.builtin import IntegerType, TensorType, bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from qcomp.dialects import nn
from qcomp.dialects.element import is_float, numpy_dtype, ui8
from qcomp.dialects.nn.functions import (
    BINARY_FUNCTIONS,
    BOOL_FUNCTIONS,
    INTEGER_FUNCTIONS,
    ONLY_INTEGER,
    PREDICATES,
    UNARY_FUNCTIONS,
)
from qcomp.interpreter.reference.narrow_floats import narrow

Array = np.ndarray[Any, np.dtype[Any]]
NUMBERS = {
    "elu": (1.5, 1.25, 0.75), "hardshrink": (0.5,), "softshrink": (0.25,), "nan_to_num": (0.5, 7.0, -9.0),
    "round_decimals": (1.0,), "softplus": (2.0, 20.0), "threshold": (0.1, 20.0), "wrap_index": (128.0,),
}  # fmt: skip
SPECIALS = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-39, 3.4e38, -3.4e38, 1, -1, 0.5, -0.5, 2, 2.5, 100, -7, 1e9]
SHAPE = (5, 37)


def reals(seed: int, element: Attribute) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(SHAPE) * 3
    values.reshape(-1)[: 2 * len(SPECIALS)] = rng.permutation(SPECIALS * 2)
    if element == f64:
        return values
    return narrow(values.astype(np.float32), element)


def wholes(seed: int, element: IntegerType) -> Array:
    rng = np.random.default_rng(seed)
    if element == i1:
        return rng.random(SHAPE) < 0.5
    dtype: Any = numpy_dtype(element)
    limits = np.iinfo(dtype)
    values = rng.integers(-9 if limits.min else 0, 9, SHAPE).astype(dtype)
    values[0, :5] = limits.min, limits.max, limits.min, limits.max, 0
    values[1, :] = rng.integers(limits.min, limits.max, SHAPE[1], dtype=dtype)
    return values


def sample(seed: int, element: Attribute) -> Array:
    return wholes(seed, element) if isinstance(element, IntegerType) else reals(seed, element)


def exists(name: str, element: Attribute) -> bool:
    if is_float(element):
        return name not in ONLY_INTEGER
    return name in (BOOL_FUNCTIONS if element == i1 else INTEGER_FUNCTIONS) and name != "wrap_index"


ELEMENTS = [f32, f64, f16, bf16, i1, i8, ui8, i16, i32, i64]


def everything(add: Any, x: Any, y: Any) -> list[Any]:
    element = x.type.element_type
    results: list[Any] = [
        add(nn.FunctionOp.of(x, name, *NUMBERS.get(name, ()))) for name in UNARY_FUNCTIONS if exists(name, element)
    ]
    results += [add(nn.BinaryFunctionOp.of(name, x, y)) for name in BINARY_FUNCTIONS if exists(name, element)]
    results += [add(nn.CompareOp(name, x, y)) for name in PREDICATES]
    results += [add(nn.SelectOp(results[-1], x, y))]
    if element != i1:
        arithmetic = [nn.AddOp, nn.SubOp, nn.MulOp, nn.MaximumOp, nn.MinimumOp]
        results += [add(op(x, y)) for op in arithmetic + ([nn.DivOp] if is_float(element) else [])]
        results += [add(op(x)) for op in (nn.NegOp, nn.AbsOp, nn.ReluOp)] + [add(nn.ClampOp.of(x, -3.0, 2.0))]
    return results


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_all_levels_agree_on_every_function(element: Attribute):
    kind = TensorType(element, SHAPE)
    check(program(everything, kind, kind), sample(1, element), sample(2, element))


@pytest.mark.parametrize("element", [f32, f16, i8, i64], ids=str)
def test_operands_are_broadcast(element: Attribute):
    kinds = [TensorType(element, (SHAPE[0], 1)), TensorType(element, (SHAPE[1],))]

    def build(add: Any, x: Any, y: Any) -> list[Any]:
        chosen = add(nn.CompareOp("lt", x, y))
        return [chosen, add(nn.SelectOp(chosen, x, y)), add(nn.MaximumOp(y, x))]

    check(program(build, *kinds), sample(1, element)[:, :1].copy(), sample(2, element)[0].copy())


@pytest.mark.parametrize("source", ELEMENTS, ids=str)
def test_casts_between_all_element_types(source: Attribute):
    def build(add: Any, x: Any) -> list[Any]:
        return [add(nn.CastOp(x, TensorType(target, SHAPE))) for target in ELEMENTS if target != source]

    check(program(build, TensorType(source, SHAPE)), sample(3, source))
