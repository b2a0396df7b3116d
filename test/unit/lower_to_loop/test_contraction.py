# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolution and linear kernels: all levels agree, in bits for integers, on awkward shapes."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import Program, activation, contraction_scale, kind

from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding
from qcomp.interpreter import interpret

SHAPES = {
    "1x1": {"c": 24, "o": 40, "h": 6, "w": 9, "k": (1, 1)},
    "1x1 tail lanes": {"c": 3, "o": 21, "h": 5, "w": 7, "k": (1, 1)},
    "1x1 stride": {"c": 17, "o": 33, "h": 9, "w": 8, "k": (1, 1), "stride": (2, 3)},
    "3x3 padded": {"c": 16, "o": 32, "h": 9, "w": 15, "k": (3, 3), "padding": (1, 1)},
    "3x3 stride 2": {"c": 6, "o": 48, "h": 11, "w": 13, "k": (3, 3), "stride": (2, 2), "padding": (1, 1)},
    "stem": {"c": 3, "o": 64, "h": 21, "w": 19, "k": (7, 7), "stride": (2, 2), "padding": (3, 3)},
    "one channel": {"c": 1, "o": 19, "h": 13, "w": 10, "k": (10, 4), "stride": (2, 2), "padding": (5, 1)},
    "uneven padding": {"c": 5, "o": 16, "h": 7, "w": 8, "k": (2, 4), "padding": (0, 1, 1, 2)},
    "dilated": {"c": 7, "o": 18, "h": 12, "w": 11, "k": (3, 2), "dilation": (2, 3), "padding": (2, 1)},
    "grouped": {"c": 6, "o": 20, "h": 5, "w": 6, "k": (3, 3), "groups": 2, "padding": (1, 1)},
    "wide 7x7": {"c": 48, "o": 96, "h": 7, "w": 7, "k": (3, 3), "padding": (1, 1)},
    "batch": {"c": 5, "o": 16, "h": 4, "w": 3, "k": (1, 2), "n": 3},
    "depthwise": {"c": 35, "o": 35, "h": 9, "w": 10, "k": (3, 3), "groups": 35, "padding": (1, 1)},
    "depthwise stride": {
        "c": 16,
        "o": 16,
        "h": 11,
        "w": 12,
        "k": (3, 5),
        "groups": 16,
        "stride": (2, 1),
        "padding": (1, 2),
    },
    "depthwise multiplier": {"c": 6, "o": 12, "h": 5, "w": 7, "k": (3, 3), "groups": 6, "padding": (0, 1)},
}


def convolution(
    shape: dict, source: Encoding | None, result: Encoding | None, bias: bool = True,
    activate: nn.ActivationAttr | None = None, residual: Encoding | None = None, seed: int = 3,
):  # fmt: skip
    p = Program(seed)
    groups, kernel = shape.get("groups", 1), shape["k"]
    x = p.input((shape.get("n", 1), shape["c"], shape["h"], shape["w"]), source)
    size = (shape["o"], shape["c"] // groups, *kernel)
    w = p.codes(size, p.weight_encoding(shape["o"])) if source is not None else p.reals(size, 0.2)
    b = p.reals((shape["o"],), 0.5) if bias else None
    options = {
        "stride": shape.get("stride", ()), "padding": shape.get("padding", ()), "dilation": shape.get("dilation", ()),
        "groups": groups, "activation": activate,
    }  # fmt: skip
    plain = nn.Conv2dOp(x, w, b, **options)
    sizes = plain.infer_shape()
    for operand in list(plain.operands):
        assert operand is not None
    plain.erase()
    r = p.input(sizes, residual) if residual is not None else None
    y = p.add(nn.Conv2dOp(x, w, b, **options, residual=r, result_type=kind(sizes, result)))
    return p.module(y), p.arrays


def encodings(shape: dict, signed: bool = False) -> tuple[Encoding, Encoding]:
    inner = shape["c"] // shape.get("groups", 1) * int(np.prod(shape["k"]))
    offset = -128 if signed else 0
    return activation(0.021, 113 + offset, signed), activation(contraction_scale(inner, 0.021), 119 + offset, signed)


@pytest.mark.parametrize("name", SHAPES)
def test_integer_convolution(name: str) -> None:
    shape = SHAPES[name]
    source, result = encodings(shape)
    module, arrays = convolution(shape, source, result)
    (codes,) = three_way.check(module, *arrays)
    assert len(np.unique(codes)) > 20 or codes.size < 100


@pytest.mark.parametrize("name", SHAPES)
def test_float_convolution(name: str) -> None:
    module, arrays = convolution(SHAPES[name], None, None, activate=nn.ClampAttr.of(-0.7, 1.9))
    three_way.check(module, *arrays, relative=1e-5)


@pytest.mark.parametrize("name", ["1x1 tail lanes", "3x3 stride 2", "depthwise", "batch"])
@pytest.mark.parametrize("epilogue", ["relu", "clamp", "residual", "residual relu", "float", "float relu", "no bias"])
def test_epilogues(name: str, epilogue: str) -> None:
    shape = SHAPES[name]
    source, result = encodings(shape)
    activate = nn.ReluAttr() if "relu" in epilogue else nn.ClampAttr.of(-0.4, 1.1) if epilogue == "clamp" else None
    residual = activation(0.017, 71) if "residual" in epilogue else None
    target = None if "float" in epilogue else result
    module, arrays = convolution(shape, source, target, "no bias" not in epilogue, activate, residual)
    three_way.check(module, *arrays)


@pytest.mark.parametrize("name", ["1x1", "3x3 padded", "grouped", "depthwise"])
def test_signed_activations_on_scalar_code(name: str) -> None:
    shape = SHAPES[name]
    source, result = encodings(shape, signed=True)
    module, arrays = convolution(shape, source, result, residual=activation(0.03, -9, True))
    three_way.check(module, *arrays, targets=[three_way.GENERIC])


@pytest.mark.parametrize("name", ["3x3 padded", "stem", "depthwise stride", "wide 7x7"])
def test_every_compiler_and_flag(name: str) -> None:
    shape = SHAPES[name]
    source, result = encodings(shape)
    residual = activation(0.017, 71)
    module, arrays = convolution(shape, source, result, activate=nn.ReluAttr(), residual=residual)
    three_way.check(module, *arrays, compilers=three_way.COMPILERS, loops=False)


@pytest.mark.parametrize("rows", [1, 3, 29])
@pytest.mark.parametrize("sizes", [(37, 20), (64, 10), (8, 128), (5, 1)])
def test_linear(rows: int, sizes: tuple[int, int]) -> None:
    inner, outer = sizes
    p = Program(rows)
    source, result = activation(0.03, 201), activation(contraction_scale(inner, 0.03), 77)
    x = p.input((rows, inner), source)
    w, b = p.codes((outer, inner), p.weight_encoding(outer)), p.reals((outer,))
    y = p.add(nn.LinearOp(x, w, b, activation=nn.ReluAttr(), result_type=kind((rows, outer), result)))
    z = p.add(nn.LinearOp(x, w, None, result_type=kind((rows, outer))))
    three_way.check(p.module(y, z), *p.arrays)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 2), c=st.integers(1, 19), o=st.integers(1, 37), h=st.integers(1, 9), w=st.integers(1, 17),
    k=st.tuples(st.integers(1, 4), st.integers(1, 4)), s=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    p=st.tuples(st.integers(0, 2), st.integers(0, 2)), d=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_any_convolution(n, c, o, h, w, k, s, p, d, seed) -> None:
    if any(
        size + 2 * pad < dilation * (taps - 1) + 1 for size, pad, dilation, taps in zip((h, w), p, d, k, strict=True)
    ):
        return
    shape = {"n": n, "c": c, "o": o, "h": h, "w": w, "k": k, "stride": s, "padding": p, "dilation": d}
    source, result = encodings(shape)
    module, arrays = convolution(shape, source, result, seed=seed)
    expected = interpret(module, *arrays)
    for target in three_way.TARGETS:
        found = interpret(three_way.lower(module, target), *arrays)
        assert np.array_equal(expected[0], found[0]), target.name


def test_extreme_codes_saturate_nothing() -> None:
    """255 * 127 summed 2,048 times is exact in int32."""
    p = Program()
    source = activation(0.01, 0)
    x = p.input((2, 2048), source)
    p.arrays[0][:] = 255
    weight = np.full((2, 2048), 127, np.int8)
    weight[1, ::2] = -127
    held = Encoding.make([0.01, 0.02], axis=0, qmin=-127)
    w = p.add(nn.ConstantOp(weight, kind((2, 2048), held)))
    y = p.add(nn.LinearOp(x, w, None, result_type=kind((2, 2))))
    (real,) = three_way.check(p.module(y), *p.arrays)
    assert real[0, 0] == np.float32(255 * 127 * 2048) * np.float32(0.01 * 0.01) and real[0, 1] == 0
