# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions: all levels agree, in bits for integers, and they are what torch computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import three_way
from layers import Program, activation, contraction_scale, kind

from qcomp.dialects import nn
from qcomp.interpreter import interpret

A, R = activation(0.021, 113), activation(0.9, 77)
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "2d stride": (nn.ConvTranspose2dOp, {"x": (2, 7, 5, 4), "o": 19, "k": (3, 3), "stride": (2, 3), "padding": (1, 0),
                  "output_padding": (1, 2)}),
    "2d plain": (nn.ConvTranspose2dOp, {"x": (1, 16, 6, 5), "o": 33, "k": (3, 2), "padding": (1, 1)}),
    "2d dilated": (nn.ConvTranspose2dOp, {"x": (1, 3, 6, 5), "o": 8, "k": (3, 2), "dilation": (2, 3),
                   "stride": (4, 2), "padding": (2, 1), "output_padding": (0, 2)}),
    "2d gaps": (nn.ConvTranspose2dOp, {"x": (1, 5, 4, 3), "o": 6, "k": (1, 2), "stride": (2, 3)}),
    "2d grouped": (nn.ConvTranspose2dOp, {"x": (2, 6, 4, 5), "o": 10, "k": (3, 3), "groups": 2, "stride": (2, 2),
                   "padding": (1, 1)}),
    "2d depthwise": (nn.ConvTranspose2dOp, {"x": (1, 35, 5, 6), "o": 35, "k": (4, 3), "groups": 35, "stride": (2, 2),
                     "padding": (1, 0)}),
    "2d wide padding": (nn.ConvTranspose2dOp, {"x": (1, 4, 7, 8), "o": 5, "k": (2, 2), "padding": (3, 2)}),
    "1d": (nn.ConvTranspose1dOp, {"x": (2, 6, 9), "o": 17, "k": (8,), "stride": (4,), "padding": (2,)}),
    "1d depthwise": (nn.ConvTranspose1dOp, {"x": (2, 16, 9), "o": 16, "k": (5,), "stride": (2,), "groups": 16}),
    "1d single": (nn.ConvTranspose1dOp, {"x": (1, 1, 1), "o": 1, "k": (1,)}),
    "3d": (nn.ConvTranspose3dOp, {"x": (2, 3, 3, 4, 2), "o": 18, "k": (3, 2, 3), "stride": (2, 1, 3),
           "padding": (1, 0, 1), "output_padding": (1, 0, 0)}),
    "3d grouped": (nn.ConvTranspose3dOp, {"x": (1, 4, 2, 3, 4), "o": 6, "k": (2, 3, 2), "stride": (1, 2, 2),
                   "groups": 2, "dilation": (2, 1, 1)}),
}  # fmt: skip
OPTIONS = ("stride", "padding", "output_padding", "dilation", "groups")


def operands(p: Program, case: dict[str, Any], coded: bool) -> tuple[Any, Any, Any, dict[str, Any]]:
    size = (case["o"], case["x"][1] // case.get("groups", 1), *case["k"])
    weight = p.codes(size, p.weight_encoding(case["o"])) if coded else p.reals(size, 0.2)
    options = {name: case[name] for name in OPTIONS if name in case}
    return p.input(case["x"], A if coded else None), weight, p.reals((case["o"],), 0.5), options


@pytest.mark.parametrize("name", CASES)
def test_codes(name: str) -> None:
    """To codes with a residual and relu, and to reals."""
    op, case = CASES[name]
    p = Program(1)
    x, weight, bias, options = operands(p, case, True)
    plain = op(x, weight, bias, **options)
    sizes = plain.infer_shape()
    plain.erase()
    inner = case["x"][1] // case.get("groups", 1) * int(np.prod(case["k"])) // int(np.prod(case.get("stride", 1)))
    target = activation(contraction_scale(max(inner, 1), A.scale), 119)
    residual = p.input(sizes, R)
    added = p.add(op(x, weight, bias, **options, residual=residual, activation=nn.ReluAttr(),
                     result_type=kind(sizes, target)))  # fmt: skip
    real = p.add(op(x, weight, None, **options, result_type=kind(sizes)))
    again = p.add(nn.AddOp(added, added, kind(sizes, target)))
    three_way.check(p.module(added, real, again), *p.arrays)


@pytest.mark.parametrize("name", CASES)
def test_reals_are_what_torch_computes(name: str) -> None:
    pytest.importorskip("torch")
    op, case = CASES[name]
    p = Program(2)
    x, weight, bias, options = operands(p, case, False)
    module = p.module(p.add(op(x, weight, bias, **options, activation=nn.ClampAttr.of(-0.7, 1.9))))
    (found,) = three_way.check(module, *p.arrays, relative=1e-5, compilers=("gcc -O0",), loops=False)
    (expected,) = interpret(module, *p.arrays, evaluator="torch")
    assert np.allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["2d depthwise"])
def test_every_compiler_and_flag(name: str) -> None:
    op, case = CASES[name]
    p = Program(3)
    x, weight, bias, options = operands(p, case, True)
    plain = op(x, weight, bias, **options)
    sizes = plain.infer_shape()
    plain.erase()
    module = p.module(p.add(op(x, weight, bias, **options, result_type=kind(sizes, R))))
    three_way.check(module, *p.arrays, compilers=three_way.COMPILERS, loops=False)
