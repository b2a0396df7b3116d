# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools and reductions against torch over all small windows; averages of codes against exact integers.

The float data are small integers: their sums are exact in any order, so torch's result and ours have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from tensor_programs import floats, program, quantized, random_codes, same_bits
from xdsl.dialects.builtin import TensorType, i32

from qcomp.dialects import nn
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp
from qcomp.errors import QcompError
from qcomp.interpreter import interpret
from qcomp.interpreter.reference import pooling, reduction
from qcomp.interpreter.reference.pooling import Window
from qcomp.interpreter.reference.quantize import quantize

torch: Any = pytest.importorskip("torch")
functional = torch.nn.functional
Array = np.ndarray[Any, np.dtype[Any]]
SOURCE = Encoding.make(0.0213, 77, signed=False)
TARGET = Encoding.make(0.0341, -19, qmin=-127)


def whole(seed: int, *shape: int) -> Array:
    """Small integers as float32."""
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.float32)


def windows() -> list[tuple[tuple[int, int], Window]]:
    """All windows up to 3x3 with every stride, padding, dilation and ceil mode, on two sizes."""
    found: list[tuple[tuple[int, int], Window]] = []
    for rows, columns, stride, dilation, ceil in product((1, 2, 3), (1, 2, 3), (1, 2, 3), (1, 2), (False, True)):
        for pad_rows, pad_columns in product(range(rows // 2 + 1), range(columns // 2 + 1)):
            window = Window((rows, columns), (stride, 4 - stride), (pad_rows, pad_columns), (dilation, 1), ceil)
            found += [(size, window) for size in ((5, 6), (7, 4))]
    return found


def test_max_pool_of_every_small_window():
    for (height, width), window in windows():
        x = whole(height, 2, 3, height, width)
        x[0, 1] = -np.inf
        x.reshape(-1)[[3, 40, 41]] = np.nan, -0.0, 0.0
        torchs = functional.max_pool2d(
            torch.from_numpy(x), window.kernel, window.stride, window.padding, window.dilation, window.ceil_mode
        ).numpy()
        assert same_bits(pooling.max_pool(x, window), torchs), (height, width, window)


@pytest.mark.parametrize("divisor", [None, 7])
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_avg_pool_of_every_small_window(count_include_pad: bool, divisor: int | None):
    for (height, width), window in windows():
        if window.dilation != (1, 1):
            continue
        x = whole(height, 2, 3, height, width)
        arguments = (window.kernel, window.stride, window.padding, window.ceil_mode, count_include_pad, divisor)
        torchs = functional.avg_pool2d(torch.from_numpy(x), *arguments).numpy()
        assert same_bits(pooling.avg_pool(x, window, count_include_pad, divisor), torchs), (height, width, window)


def test_adaptive_avg_pool():
    x = torch.from_numpy(whole(1, 2, 3, 7, 11))
    for out in product((1, 2, 3, 5, 7), (1, 2, 4, 6, 11, 13)):
        for value in (x, x[1]):
            ours = pooling.adaptive_avg_pool(value.numpy(), out)
            exact = functional.adaptive_avg_pool2d(value.double(), out).numpy()
            np.testing.assert_allclose(ours, exact, rtol=2.0**-23)
            # torch divides by the height and then by the width, each rounded.
            np.testing.assert_allclose(ours, functional.adaptive_avg_pool2d(value, out).numpy(), rtol=2.0**-22)
    x = torch.from_numpy(np.random.default_rng(4).standard_normal((2, 5, 31, 29)).astype(np.float32))
    ours, exact = pooling.adaptive_avg_pool(x.numpy(), (2, 1)), functional.adaptive_avg_pool2d(x.double(), (2, 1))
    np.testing.assert_allclose(ours, exact.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", [nn.MeanOp, nn.SumOp, nn.AmaxOp], ids=lambda op: op.name)
@pytest.mark.parametrize("dim", [(), (0,), (-1,), (1, 3), (-1, -2), (2, 0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(op: Any, dim: tuple[int, ...], keepdim: bool):
    x = whole(2, 2, 3, 4, 5)
    if op is nn.AmaxOp:
        x[1, 2, 3, 0], x[0] = np.nan, np.where(x[0] > 0, np.float32(-0.0), x[0])
    module = program(lambda add, value: add(op(value, dim, keepdim)), floats(2, 3, 4, 5))
    ours, torchs = interpret(module, x)[0], interpret(module, x, evaluator="torch")[0]
    assert same_bits(ours, torchs)


def by_definition(rows: Array, start: float, combine: Any) -> float:
    """16 partial results over [steps..., size], alternating along the last dimension, then halved."""
    partial = [np.float32(start)] * 16
    for row in rows.reshape(-1, rows.shape[-1]):
        for index, value in enumerate(row):
            partial[index % 16] = combine(partial[index % 16], value)
    for half in (8, 4, 2, 1):
        partial = [combine(partial[i], partial[i + half]) for i in range(half)]
    return float(partial[0])


@pytest.mark.parametrize("axes", [(2,), (0, 2), (0, 1, 2), (1,), (0, 1)])
def test_order_of_float_reductions(axes: tuple[int, ...]):
    x = np.random.default_rng(3).standard_normal((3, 5, 53)).astype(np.float32)
    x[x > 1.5] = -0.0
    x[np.abs(x) < 0.2] = 0.0
    negative = -np.abs(x)
    moved = [np.moveaxis(value, axes, range(3 - len(axes), 3)) for value in (x, negative)]
    rows = [value.reshape(-1, *(x.shape[axis] for axis in axes)) for value in moved]
    sums = [by_definition(row, 0.0, lambda a, b: a + b) for row in rows[0]]
    assert reduction.ordered_sum(x, axes).reshape(-1).tolist() == sums
    largest = [by_definition(row, -np.inf, lambda a, b: b if b > a else a) for row in rows[1]]
    found = reduction.largest(negative, axes, False)
    assert same_bits(found.reshape(-1), np.array(largest, np.float32))


def test_sums_of_nothing_and_of_negative_zeros():
    assert reduction.ordered_sum(np.zeros((3, 0), np.float32), (1,)).tolist() == [0.0, 0.0, 0.0]
    assert not np.signbit(reduction.ordered_sum(np.full(4, -0.0), (0,)))
    assert reduction.ordered_sum(np.array(2.5), ()) == 2.5


def exact_average(sums: Any, count: int, target: Encoding | None) -> Any:
    """The documented formula on Python's integers; the roundings of its products are numpy's."""
    real = np.float32(sums) * np.float32(SOURCE.scale) / np.float32(count)
    if target is None:
        return real
    inverse = np.float32(1.0 / target.scale)
    code = round(Fraction(float(real * inverse))) + target.zero_point  # Python rounds half to even
    return np.array(min(max(code, target.qmin), target.qmax), target.dtype)


def pooled(centred: Iterable[int], count: int, target: Encoding | None) -> Any:
    """What torch makes of a window of codes without their zero point: dequantized, added in order, divided."""
    total = np.float32(0)
    for code in centred:
        total += np.float32(code) * np.float32(SOURCE.scale)
    real = np.asarray(total / np.float32(count))
    return real if target is None else quantize(real, target)


@pytest.mark.parametrize("target", [TARGET, None], ids=["codes", "float"])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
def test_average_of_codes(target: Encoding | None, count_include_pad: bool, ceil: bool):
    codes = random_codes(np.random.default_rng(4), SOURCE, 2, 3, 7, 8)
    window = Window((3, 2), (2, 3), (1, 1), (1, 1), ceil)
    out = (2, 3, *window.output((7, 8)))
    kind = floats(*out) if target is None else quantized(target, *out)
    module = program(
        lambda add, x: add(nn.AvgPool2dOp(x, (3, 2), (2, 3), (1, 1), ceil, count_include_pad, result_type=kind)),
        quantized(SOURCE, 2, 3, 7, 8),
    )
    (result,) = interpret(module, codes)
    for place in np.ndindex(*out):
        top, left = place[2] * 2 - 1, place[3] * 3 - 1
        inside = [
            int(codes[(*place[:2], row, column)]) - SOURCE.zero_point
            for row, column in product(range(top, top + 3), range(left, left + 2))
            if 0 <= row < 7 and 0 <= column < 8
        ]
        padded = (min(top + 3, 8) - top) * (min(left + 2, 9) - left)
        assert result[place] == pooled(inside, padded if count_include_pad else len(inside), target)


@pytest.mark.parametrize("target", [TARGET, None], ids=["codes", "float"])
def test_adaptive_average_and_mean_of_codes(target: Encoding | None):
    codes = random_codes(np.random.default_rng(5), SOURCE, 2, 3, 5, 7)

    def typed(*shape: int) -> Any:
        return floats(*shape) if target is None else quantized(target, *shape)

    def build(add: Any, x: Any) -> Any:
        return [
            add(nn.AdaptiveAvgPool2dOp(x, (2, 3), typed(2, 3, 2, 3))),
            add(nn.MeanOp(x, (2, 3), True, typed(2, 3, 1, 1))),
            add(nn.AdaptiveAvgPool2dOp(x, (1, 1), typed(2, 3, 1, 1))),
            add(nn.SumOp(x, (3,), False, typed(2, 3, 5))),
        ]

    adaptive, mean, whole_pool, total = interpret(program(build, quantized(SOURCE, 2, 3, 5, 7)), codes)
    real = codes.astype(int) - SOURCE.zero_point
    for n, c in product(range(2), range(3)):
        assert mean[n, c, 0, 0] == exact_average(real[n, c].sum(), 35, target)
        assert whole_pool[n, c, 0, 0] == pooled(real[n, c].reshape(-1), 35, target)
        assert total[n, c, 4] == exact_average(real[n, c, 4].sum(), 1, target)
        for (i, rows), (j, columns) in product(enumerate([(0, 3), (2, 5)]), enumerate([(0, 3), (2, 5), (4, 7)])):
            part = real[n, c, slice(*rows), slice(*columns)]
            assert adaptive[n, c, i, j] == pooled(part.reshape(-1), part.size, target)


def test_averages_that_are_ties_round_to_even():
    kind = Encoding.make(0.25, 3)
    pairs = np.stack([np.full(256, -7), np.arange(-128, 128)], axis=1).astype(np.int8)
    module = program(lambda add, x: add(nn.MeanOp(x, (1,), False, quantized(kind, 256))), quantized(kind, 256, 2))
    expected = [round(Fraction(int(b) - 7 - 2 * 3, 2)) + 3 for _, b in pairs]
    assert interpret(module, pairs)[0].tolist() == expected


def test_average_code_rule():
    """Against quantize(op(dequantize)): at most 1 code, in at most n/1000 elements."""
    codes = random_codes(np.random.default_rng(6), SOURCE, 8, 32, 14, 14)

    def build(add: Any, x: Any) -> Any:
        real, results = add(DequantizeOp(x)), []
        for make in (
            lambda v, *t: nn.AvgPool2dOp(v, (3, 3), (1, 1), (1, 1), result_type=t[0] if t else None),
            lambda v, *t: nn.AdaptiveAvgPool2dOp(v, (5, 4), *t),
        ):
            plain = add(QuantizeOp(add(make(real)), TARGET))
            results += [add(make(x, plain.type)), plain]
        return results

    results = [array.astype(int) for array in interpret(program(build, quantized(SOURCE, 8, 32, 14, 14)), codes)]
    for ours, expected in zip(results[::2], results[1::2], strict=True):
        distance = np.abs(ours - expected)
        assert distance.max() <= 1 and distance.sum() <= distance.size // 1000


def test_largest_of_codes_is_exact():
    codes = random_codes(np.random.default_rng(7), SOURCE, 2, 3, 7, 8)
    channels = Encoding.make([0.1, 0.2, 0.3], [3, 4, 5], signed=False, axis=1)

    def build(add: Any, x: Any, y: Any, z: Any) -> Any:
        results = []
        for value, kind in ((x, SOURCE), (x, TARGET), (y, channels), (z, TARGET)):
            real = add(DequantizeOp(value))
            plain = add(QuantizeOp(add(nn.MaxPool2dOp(real, (3, 2), (2, 1), (1, 0), (2, 1), True)), kind))
            results += [add(nn.MaxPool2dOp(value, (3, 2), (2, 1), (1, 0), (2, 1), True, plain.type)), plain]
        plain = add(QuantizeOp(add(nn.AmaxOp(add(DequantizeOp(x)), (1, 3), False)), SOURCE))
        return [*results, add(nn.AmaxOp(x, (1, 3), False, plain.type)), plain]

    module = program(build, *(quantized(kind, 2, 3, 7, 8) for kind in (SOURCE, channels, TARGET)))
    low = np.minimum(random_codes(np.random.default_rng(9), TARGET, 2, 3, 7, 8), -50).astype(np.int8)
    results = interpret(module, codes, random_codes(np.random.default_rng(8), channels, 2, 3, 7, 8), low)
    for ours, expected in zip(results[::2], results[1::2], strict=True):
        assert same_bits(ours, expected)


def test_sums_that_int32_cannot_hold_are_exact():
    wide = Encoding.make(1e-4, -7, width=16)
    module = program(lambda add, x: add(nn.MeanOp(x, (1,), False, quantized(TARGET, 1))), quantized(wide, 1, 66_000))
    codes = np.full((1, 66_000), 32_767, np.int16)
    codes[0, :3] = -5
    (found,) = interpret(module, codes)
    total = (codes.astype(np.int64) + 7).sum()
    assert total > 2**31 and same_bits(found, reduction.average_codes(np.array([total]), 66_000, wide, TARGET))


def test_integers_have_no_mean():
    kind = TensorType(i32, [3, 4])
    module = program(lambda add, x: add(nn.MeanOp(x, (1,), False)), kind)
    with pytest.raises(QcompError, match="mean of integers"):
        interpret(module, np.ones((3, 4), np.int32))
    module = program(lambda add, x: [add(nn.SumOp(x, (1,), False)), add(nn.AmaxOp(x, (0,), True))], kind)
    x = np.arange(12, dtype=np.int32).reshape(3, 4) * 2**28
    total, largest = interpret(module, x)
    assert total.tolist() == np.add.reduce(x, axis=1, dtype=np.int32).tolist()
    assert largest.tolist() == x.max(axis=0, keepdims=True).tolist()
