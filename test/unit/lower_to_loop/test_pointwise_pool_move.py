# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise, pooling and movement kernels: all levels agree in bits, layouts and borders included."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from layers import Program, activation, kind
from xdsl.ir import SSAValue

from qcomp.dialects import nn, quant
from qcomp.dialects.quant import Encoding

SHAPES = [(2, 5, 7, 9), (1, 37, 3, 5), (1, 1, 6, 4), (3, 16, 1, 1), (7, 19), (23,), (2, 3, 4)]
A, B, C = activation(0.02, 114), activation(0.031, 7), activation(0.05, 99)
SIGNED = Encoding.make(0.07, -11, qmin=-127)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", [nn.AddOp, nn.SubOp, nn.MulOp, nn.MaximumOp, nn.MinimumOp])
def test_binary(op: type[nn.BinaryOp], shape: tuple[int, ...]) -> None:
    p = Program(1)
    x, y = p.input(shape, A), p.input(shape, B)
    u, v = p.input(shape), p.input(shape)
    coded = p.add(op(x, y, kind(shape, C), nn.ReluAttr()))
    mixed = p.add(op(x, y, kind(shape, SIGNED)))
    real = p.add(op(u, v, activation=nn.ClampAttr.of(-0.25, 0.5)))
    three_way.check(p.module(coded, mixed, real), *p.arrays)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 5, 7, 9), (5, 1, 1)),
        ((2, 5, 7, 9), (1, 5, 1, 9)),
        ((2, 5, 7, 9), ()),
        ((5, 1), (2, 5, 7)),
        ((1, 17), (3, 1)),
    ],
)
def test_broadcasting(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    left, right = shapes
    result = np.broadcast_shapes(left, right)
    p = Program(2)
    coded = p.add(nn.AddOp(p.input(left, A), p.codes(right, B), kind(result, C)))
    real = p.add(nn.DivOp(p.input(left), p.input(right)))
    three_way.check(p.module(coded, real), *p.arrays)


def all_pairs() -> tuple[np.ndarray, np.ndarray]:
    codes = np.arange(256, dtype=np.uint8)
    return np.repeat(codes, 256), np.tile(codes, 256)


@pytest.mark.parametrize("op", [nn.AddOp, nn.MulOp])
def test_every_pair_of_codes(op: type[nn.BinaryOp]) -> None:
    p = Program()
    x, y = p.input((65536,), A), p.input((65536,), B)
    left, right = all_pairs()
    module = p.module(p.add(op(x, y, kind((65536,), C))))
    three_way.check(module, left, right, loops=False)


SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, 3e38, -3e38, 5.0, 1.5, 2.5, -0.5, 1e10], np.float32)


@pytest.mark.parametrize("encoding", [A, SIGNED, activation(0.5, 0), Encoding.make(3e-5, 100, signed=False)])
@pytest.mark.parametrize("shape", [(1, 4, 3, 13), (1, 40, 5, 3), (31,)])
def test_quantize_and_back(encoding: Encoding, shape: tuple[int, ...]) -> None:
    p = Program(3)
    x = p.input(shape)
    flat = p.arrays[0].reshape(-1)
    flat[: len(SPECIAL)] = SPECIAL * (1 if encoding.scale == 0.5 else 1.0)
    codes = p.add(quant.QuantizeOp(x, encoding))
    again = p.add(quant.RequantizeOp(codes, C))
    reals = p.add(quant.DequantizeOp(codes))
    three_way.check(p.module(codes, again, reals), *p.arrays, compilers=("gcc -O0", "gcc -O3 -march=native"))


@pytest.mark.parametrize("shape", [(1, 5, 4, 6), (17,)])
def test_relu_and_clamp_keep_nan_and_zero_signs(shape: tuple[int, ...]) -> None:
    p = Program(4)
    x, q = p.input(shape), p.input(shape, A)
    p.arrays[0].reshape(-1)[: len(SPECIAL)] = SPECIAL
    results = [
        p.add(nn.ReluOp(x)), p.add(nn.ClampOp.of(x, -1.0, 6.0)), p.add(nn.ClampOp.of(x, 2.0, 1.0)),
        p.add(nn.ReluOp(q, kind(shape, A))), p.add(nn.ClampOp.of(q, -0.3, 0.9, kind(shape, C))),
    ]  # fmt: skip
    three_way.check(p.module(*results), *p.arrays)


POOLS = {
    "2x2": {"kernel_size": (2, 2), "stride": (2, 2)},
    "3x2 overlapping": {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 1)},
    "ceil": {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 0), "ceil_mode": True},
    "ceil far": {"kernel_size": (2, 2), "stride": (3, 3), "padding": (1, 1), "ceil_mode": True},
}


@pytest.mark.parametrize("shape", [(2, 7, 9, 11), (1, 64, 8, 7), (1, 1, 6, 9), (5, 8, 7)])
@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str, shape: tuple[int, ...]) -> None:
    options = POOLS[name]
    p = Program(5)
    q, x = p.input(shape, A), p.input(shape)
    results: list[SSAValue] = []
    for encoding, value in ((A, q), (None, x)):
        plain = nn.MaxPool2dOp(value, **options)
        results.append(p.add(nn.MaxPool2dOp(value, **options, result_type=kind(plain.infer_shape(), encoding))))
        plain.erase()
        for counted in (True, False):
            average = nn.AvgPool2dOp(value, **options, count_include_pad=counted)
            sizes = average.infer_shape()
            average.erase()
            target = C if encoding is not None else None
            results.append(
                p.add(nn.AvgPool2dOp(value, **options, count_include_pad=counted, result_type=kind(sizes, target)))
            )
    codes = [value for value in results if value.type.element_type != x.type.element_type]  # pyright: ignore
    three_way.check(p.module(*codes, results[3]), *p.arrays)


def test_dilated_max_pool() -> None:
    p = Program(6)
    q = p.input((1, 6, 11, 9), A)
    results = [
        p.add(nn.MaxPool2dOp(q, (3, 2), (2, 1), padding, (2, 3), ceil))
        for padding in ((0, 0), (1, 1))
        for ceil in (False, True)
    ]
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 4), (9, 7)])
def test_adaptive_pool(size: tuple[int, int]) -> None:
    p = Program(7)
    q = p.input((2, 21, 9, 7), A)
    y = p.add(nn.AdaptiveAvgPool2dOp(q, size, kind((2, 21, *size), C)))
    z = p.add(nn.AdaptiveAvgPool2dOp(q, size, kind((2, 21, *size))))
    three_way.check(p.module(y, z), *p.arrays)


@pytest.mark.parametrize("axes", [(2, 3), (1,), (-1,), (0, 2), ()])
@pytest.mark.parametrize("keep", [True, False])
def test_mean_of_codes(axes: tuple[int, ...], keep: bool) -> None:
    p = Program(8)
    q = p.input((2, 18, 5, 7), A)
    plain = nn.MeanOp(q, axes, keep)
    sizes = plain.infer_shape()
    plain.erase()
    results = [p.add(nn.MeanOp(q, axes, keep, kind(sizes, C))), p.add(nn.AmaxOp(q, axes, keep, kind(sizes, A)))]
    three_way.check(p.module(*results), *p.arrays)


def test_movement() -> None:
    p = Program(9)
    q, x = p.input((2, 19, 5, 7), A), p.input((3, 4, 6))
    results = [
        p.add(nn.ReshapeOp(q, (2, 19 * 35))), p.add(nn.ReshapeOp(q, (38, 5, 7))), p.add(nn.ReshapeOp(x, (2, 6, 3, 2))),
        p.add(nn.PermuteOp(q, (2, 0, 3, 1))), p.add(nn.PermuteOp(x, (1, 2, 0))), p.add(nn.PermuteOp(q, (0, 2, 3, 1))),
        p.add(nn.SliceOp(q, 1, 2, 18, 3)), p.add(nn.SliceOp(q, 3, 1, 6, 2)), p.add(nn.SliceOp(x, 0, 1, 3)),
        p.add(nn.CatOp([q, p.input((2, 4, 5, 7), A)], 1)), p.add(nn.CatOp([x, p.input((3, 4, 5))], -1)),
        p.add(nn.ExpandOp(p.input((1, 4, 1, 3)), (2, 4, 5, 3))), p.add(nn.ExpandOp(p.input((4, 1)), (2, 4, 6))),
    ]  # fmt: skip
    three_way.check(p.module(*results), *p.arrays)


def test_results_that_are_arguments_constants_or_given_twice() -> None:
    p = Program(10)
    q = p.input((1, 3, 4, 5), A)
    held = p.reals((2, 3))
    y = p.add(nn.ReluOp(q, kind((1, 3, 4, 5), A)))
    flat = p.add(nn.ReshapeOp(y, (12, 5)))
    three_way.check(p.module(q, y, held, y, flat, q), *p.arrays)


def test_one_value_read_with_different_padding() -> None:
    """The border fits the widest consumer; the others start inside it; a pool ignores it."""
    p = Program(11)
    q = p.input((1, 6, 8, 9), A)
    y = p.add(nn.ReluOp(q, kind((1, 6, 8, 9), A)))
    results: list[SSAValue] = []
    for kernel, padding in (((3, 3), (1, 1)), ((5, 3), (2, 0)), ((1, 1), (0, 0)), ((2, 2), (0, 1, 1, 0))):
        w = p.codes((16, 6, *kernel), p.weight_encoding(16))
        plain = nn.Conv2dOp(y, w, padding=padding)
        sizes = plain.infer_shape()
        plain.erase()
        results.append(p.add(nn.Conv2dOp(y, w, padding=padding, result_type=kind(sizes, activation(0.4, 100)))))
    results.append(p.add(nn.MaxPool2dOp(y, (3, 3), (2, 2), (1, 1))))
    three_way.check(p.module(*results), *p.arrays)
