# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions in one and three dimensions, residuals in reals, mixed operands, linear over images, at all levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import three_way
from layers import Program, activation, contraction_scale, kind
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding, QuantizeOp
from qcomp.errors import QcompError
from qcomp.interpreter import interpret

A, R = activation(0.021, 113), activation(0.9, 77)
ONE: dict[str, dict[str, Any]] = {
    "pointwise": {"x": (2, 24, 19), "o": 40, "k": (1,)},
    "wide": {"x": (3, 5, 31), "o": 37, "k": (9,), "padding": (4,)},
    "stride": {"x": (1, 6, 40), "o": 48, "k": (10,), "stride": (5,), "padding": (2,)},
    "dilated": {"x": (2, 3, 29), "o": 17, "k": (3,), "dilation": (4,), "padding": (4,)},
    "uneven": {"x": (1, 7, 18), "o": 16, "k": (4,), "padding": (1, 2)},
    "grouped": {"x": (2, 6, 13), "o": 20, "k": (3,), "groups": 2},
    "depthwise": {"x": (2, 35, 21), "o": 35, "k": (5,), "groups": 35, "padding": (2,)},
    "single": {"x": (1, 1, 1), "o": 1, "k": (1,)},
}
THREE: dict[str, dict[str, Any]] = {
    "pointwise": {"x": (2, 5, 3, 4, 6), "o": 17, "k": (1, 1, 1)},
    "padded": {"x": (2, 3, 5, 6, 7), "o": 18, "k": (3, 3, 3), "padding": (1, 1, 1)},
    "stride": {"x": (1, 4, 7, 9, 8), "o": 33, "k": (3, 2, 3), "stride": (2, 3, 2), "padding": (1, 0, 1)},
    "dilated": {"x": (2, 2, 6, 7, 9), "o": 5, "k": (2, 3, 2), "dilation": (3, 2, 4), "padding": (1, 2, 0)},
    "grouped": {"x": (1, 6, 4, 5, 6), "o": 9, "k": (2, 2, 2), "groups": 3, "padding": (1, 0, 1)},
    "depthwise": {"x": (1, 5, 4, 5, 6), "o": 5, "k": (3, 3, 3), "groups": 5, "padding": (1, 1, 1)},
}
CASES = [(nn.Conv1dOp, ONE[name]) for name in ONE] + [(nn.Conv3dOp, THREE[name]) for name in THREE]
NAMES = [f"1d {name}" for name in ONE] + [f"3d {name}" for name in THREE]


def operands(p: Program, case: dict[str, Any], source: Encoding | None) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Input, weight and bias of a convolution."""
    groups = case.get("groups", 1)
    size = (case["o"], case["x"][1] // groups, *case["k"])
    weight = p.reals(size, 0.2) if source is None else p.codes(size, p.weight_encoding(case["o"]))
    return p.input(case["x"], source), weight, p.reals((case["o"],), 0.5)


def options(case: dict[str, Any]) -> dict[str, Any]:
    return {name: case[name] for name in ("stride", "padding", "dilation", "groups") if name in case}


def result_shape(op: nn.WeightedOp) -> tuple[int, ...]:
    sizes = op.infer_shape()
    op.erase()
    return sizes


@pytest.mark.parametrize("op, case", CASES, ids=NAMES)
def test_codes(op: Any, case: dict[str, Any]) -> None:
    """To codes with a residual, to codes for the next convolution of the same kind, and to reals."""
    p = Program(1)
    inner = case["x"][1] // case.get("groups", 1) * int(np.prod(case["k"]))
    target = activation(contraction_scale(inner, A.scale), 119)
    x, weight, bias = operands(p, case, A)
    sizes = result_shape(op(x, weight, bias, **options(case)))
    residual = p.input(sizes, R)
    added = p.add(op(x, weight, bias, **options(case), residual=residual, activation=nn.ReluAttr(),
                     result_type=kind(sizes, target)))  # fmt: skip
    real = p.add(op(x, weight, None, **options(case), result_type=kind(sizes)))
    taps = (1,) * (len(sizes) - 3) + (3,)
    second = p.codes((21, sizes[1], *taps), p.weight_encoding(21))
    padding = (*(0 for _ in taps[1:]), 1)
    last_sizes = (sizes[0], 21, *sizes[2:])
    last = p.add(op(added, second, None, padding=padding, result_type=kind(last_sizes, R)))
    three_way.check(p.module(added, real, last), *p.arrays)


@pytest.mark.parametrize("op, case", CASES, ids=NAMES)
def test_floats(op: Any, case: dict[str, Any]) -> None:
    p = Program(2)
    x, weight, bias = operands(p, case, None)
    y = p.add(op(x, weight, bias, **options(case), activation=nn.ClampAttr.of(-1.0, 2.0)))
    module = p.module(y)
    (ours,) = three_way.check(module, *p.arrays, relative=3e-6)
    np.testing.assert_allclose(ours, interpret(module, *p.arrays, evaluator="torch")[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("activation", [None, nn.ReluAttr(), nn.ClampAttr.of(-0.25, 1.5)], ids=str)
def test_residuals_in_reals(quantized: bool, activation: nn.ActivationAttr | None) -> None:
    """Added after the contraction is rounded, then the activation."""
    p = Program(3)
    source = A if quantized else None
    x, weight, bias = operands(p, {"x": (2, 5, 6, 7), "o": 19, "k": (3, 3)}, source)
    residual, coded = p.input((2, 19, 6, 7)), p.input((2, 19, 6, 7), R)
    made: list[nn.WeightedOp] = [
        nn.Conv2dOp(x, weight, bias, padding=(1, 1), residual=held, activation=activation,
                    result_type=kind((2, 19, 6, 7)))
        for held in ((residual,) if quantized else (residual, coded))
    ]  # fmt: skip
    rows = p.input((4, 23), source)
    matrix = p.reals((18, 23), 0.2) if source is None else p.codes((18, 23), p.weight_encoding(18))
    made.append(nn.LinearOp(rows, matrix, None, residual=p.input((4, 18)), activation=activation,
                            result_type=kind((4, 18))))  # fmt: skip
    module = p.module(*map(p.add, made))
    three_way.check(module, *p.arrays, relative=None if quantized else 3e-6)


def test_mixed_operands() -> None:
    """Codes by reals and reals by codes compute in float32; a float32 result becomes codes by quantization."""
    p = Program(4)
    x, weight, bias = operands(p, {"x": (1, 3, 5, 6), "o": 17, "k": (3, 3)}, None)
    coded, held, _ = operands(p, {"x": (1, 3, 5, 6), "o": 17, "k": (3, 3)}, A)
    sizes = (1, 17, 5, 6)
    results = [
        p.add(nn.Conv2dOp(coded, weight, bias, padding=(1, 1), result_type=kind(sizes))),
        p.add(nn.Conv2dOp(x, held, bias, padding=(1, 1), result_type=kind(sizes))),
        p.add(nn.LinearOp(p.input((3, 9), A), p.reals((5, 9)), None, result_type=kind((3, 5)))),
    ]
    three_way.check(p.module(*results), *p.arrays, relative=3e-6)
    p = Program(5)
    x, weight, bias = operands(p, {"x": (1, 3, 5, 6), "o": 17, "k": (3, 3)}, None)
    module = p.module(p.add(nn.Conv2dOp(x, weight, bias, padding=(1, 1), result_type=kind(sizes, A))))
    codes = interpret(module, *p.arrays)[0].astype(int)
    for target in three_way.TARGETS:
        found = interpret(three_way.lower(module, target), *p.arrays)[0].astype(int)
        assert np.abs(found - codes).max() <= 1 and (found != codes).sum() <= 1


def test_linear_over_images_and_of_one_row() -> None:
    """A linear along the last dimension of a tensor that lies channels last, and of a vector."""
    p = Program(6)
    image = p.add(nn.MaxPool2dOp(p.input((2, 5, 4, 18), A), (1, 1), (1, 1)))
    weight = p.codes((21, 18), p.weight_encoding(21))
    first = p.add(nn.LinearOp(image, weight, None, result_type=kind((2, 5, 4, 21), R)))
    second = p.add(nn.LinearOp(p.input((18,), A), weight, p.reals((21,)), result_type=kind((21,), R)))
    three_way.check(p.module(first, second), *p.arrays)


def test_what_is_refused() -> None:
    p = Program(7)
    module = p.module(p.add(nn.LinearOp(p.input((2, 3)), p.reals((4, 3)), p.input((4,)))))
    with pytest.raises(QcompError, match="bias must be a constant") as caught:
        three_way.lower(module, three_way.TARGETS[0])
    assert caught.value.op == "nn.linear"
    p = Program(8)
    x, weight, _ = operands(p, {"x": (1, 3, 5, 6), "o": 4, "k": (1, 1)}, A)
    plain = nn.Conv2dOp(x, weight, None, residual=p.input((1, 4, 5, 6)), result_type=kind((1, 4, 5, 6), A))
    module = p.module(p.add(plain))
    with pytest.raises(QcompError, match="a quantized result takes a quantized residual"):
        three_way.lower(module, three_way.TARGETS[0])
    p = Program(9)
    weight = p.add(QuantizeOp(p.input((4, 3)), activation(0.1, 0)))
    with pytest.raises(QcompError, match="weight must be a constant"):
        three_way.lower(
            p.module(p.add(nn.LinearOp(p.input((2, 3)), weight, None, result_type=kind((2, 4))))), three_way.TARGETS[0]
        )
