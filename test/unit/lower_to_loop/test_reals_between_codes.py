# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute in float32 on codes: in bits what stands between dequantize and quantize, and no buffer of reals."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from layers import Program, activation, kind
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dims import sizes_of
from qcomp.dialects.loop import ConstantOp, ViewOp
from qcomp.dialects.nn.base import shape
from qcomp.dialects.nn.functions import i1
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp

U8, I8, NARROW = activation(0.05, 114), Encoding.make(0.03, -11), Encoding.make(0.011, 3, qmin=-20, qmax=30)
RESULTS = [activation(1 / 255, 0), Encoding.make(0.021, -9)]


def largest_reals(module: ModuleOp) -> int:
    """The number of elements of the largest buffer of f32 that is made on the way."""
    sizes = [0]
    for target in three_way.TARGETS:
        for op in three_way.lower(module, target).walk():
            if isinstance(op, ViewOp) and not isinstance(op.source.owner, ConstantOp) and "f32" in str(op.result.type):
                sizes.append(int(np.prod(sizes_of(op.result.type))))
    return max(sizes)


def ops(p: Program, x: SSAValue, result: Encoding | None) -> list[Operation]:
    """Every op that computes in reals, on a tensor of rank 4."""
    sizes = shape(x)
    same = kind(sizes, result)
    found: list[Operation] = [nn.SoftmaxOp(x, dim, same) for dim in range(len(sizes))]
    found += [nn.ScanOp(name, x, 2, same) for name in ("add", "mul", "logaddexp")]
    found.append(nn.ProdOp(x, (1, 3), True, kind((sizes[0], 1, sizes[2], 1), result)))
    found.append(nn.LayerNormOp(x, sizes[2:], p.reals(sizes[2:]), p.reals(sizes[2:]), 1e-5, same))
    found.append(nn.LayerNormOp(x, sizes[3:], None, None, 1e-5, same))
    places = p.rng.integers(0, sizes[3], (7, 2))
    weights = p.reals((7, 2))
    indices = p.add(nn.ConstantOp(places))
    found.append(nn.ResampleOp(x, indices, weights, 3, kind((*sizes[:3], 7), result)))
    return found


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("encoding", [U8, I8, NARROW])
@pytest.mark.parametrize("sizes", [(2, 3, 5, 21), (1, 4, 18, 3)])
def test_codes_to_codes(sizes: tuple[int, ...], encoding: Encoding, result: Encoding) -> None:
    p = Program(sizes[3])
    x = p.input(sizes, encoding)
    module = p.module(*[p.add(op) for op in ops(p, x, result)])
    assert largest_reals(module) == 0
    expected = three_way.check(module, *p.arrays)
    # What it means: the same ops between dequantize and quantize.
    q = Program(sizes[3])
    y = q.add(DequantizeOp(q.input(sizes, encoding)))
    plain = q.module(*[q.add(QuantizeOp(q.add(op), result)) for op in ops(q, y, None)])
    for want, have in zip(three_way.interpret(plain, *q.arrays), expected, strict=True):
        assert np.array_equal(want, have)


def test_one_end() -> None:
    """Codes to reals, and reals to codes with NaN and infinities among them."""
    p = Program(1)
    q, x = p.input((2, 3, 5, 17), I8), p.input((2, 3, 5, 17))
    p.arrays[1].reshape(-1)[[3, 40, 77]] = np.nan, np.inf, -np.inf
    results = [p.add(op) for op in (*ops(p, q, None), *ops(p, x, RESULTS[1]))]
    three_way.check(p.module(*results), *p.arrays)


def test_images_channels_last() -> None:
    """Where codes lie channels last with a border, between two convolutions."""
    p = Program(2)
    q = p.input((2, 5, 9, 7), U8)
    window = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    for dim in (1, 3):
        weight = p.codes((5, 5, 3, 3), p.weight_encoding(5))
        q = p.add(nn.Conv2dOp(q, weight, **window, result_type=kind((2, 5, 9, 7), U8)))
        q = p.add(nn.SoftmaxOp(q, dim, kind((2, 5, 9, 7), RESULTS[0])))
    three_way.check(p.module(q), *p.arrays)


def beside(p: Program, x: SSAValue, y: SSAValue, result: Encoding | None) -> list[Operation]:
    """Elementwise ops and reductions of x and y."""
    same = kind(shape(x), result)
    mask = p.given(p.rng.integers(0, 2, (shape(x)[-1],)).astype(bool), i1)
    found: list[Operation] = [make(x, y, same) for make in (nn.AddOp, nn.SubOp, nn.MulOp, nn.DivOp, nn.MaximumOp)]
    found += [nn.AddOp(y, x, same, nn.ReluAttr()), nn.BinaryFunctionOp.of("atan2", x, y, same)]
    found += [nn.SelectOp(mask, x, y, same), nn.SelectOp(mask, y, x, same)]
    found += [make(y, same) for make in (nn.ReluOp, nn.SiluOp, nn.HardswishOp)]
    return [*found, nn.FunctionOp.of(y, "log1p", result_type=same)]


@pytest.mark.parametrize("result", [None, *RESULTS])
def test_beside_floats(result: Encoding | None) -> None:
    p = Program(4)
    for encoding in (U8, I8):
        x, y = p.input((2, 3, 5, 17), encoding), p.input((2, 3, 5, 17))
        p.arrays[-1].reshape(-1)[[3, 40, 77]] = np.nan, np.inf, -np.inf
        added = beside(p, x, y, result)
        if result is not None:
            short = kind((2, 5), result)
            added += [nn.MeanOp(y, (1, 3), False, short), nn.SumOp(y, (1, 3), False, short)]
        for op in added:
            p.add(op)
    results = [op.results[0] for op in p.block.ops if op.results]
    three_way.check(p.module(*results), *p.arrays)


def test_beside_floats_channels_last() -> None:
    """Codes that lie channels last with a border, beside floats that do."""
    p = Program(5)
    x, f = p.input((2, 5, 9, 7), U8), p.input((2, 5, 9, 7))
    window = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    x = p.add(nn.Conv2dOp(x, p.codes((5, 5, 3, 3), p.weight_encoding(5)), **window, result_type=kind(shape(x), U8)))
    y = p.add(nn.Conv2dOp(f, p.reals((5, 5, 3, 3)), **window))
    total = p.add(nn.AddOp(x, y, kind(shape(x), activation(0.06, 120))))
    apart = p.add(nn.MulOp(total, y))
    last = p.add(nn.Conv2dOp(total, p.codes((5, 5, 3, 3), p.weight_encoding(5)), **window, result_type=kind(shape(x))))
    # The float convolution has a bound, not bits: codes that flip are a step of the encoding.
    three_way.check(p.module(apart, last), *p.arrays, relative=0.1)


def test_by_all_compilers() -> None:
    p = Program(3)
    x = p.input((2, 3, 5, 37), U8)
    module = p.module(*[p.add(op) for op in ops(p, x, RESULTS[0])])
    three_way.check(module, *p.arrays, compilers=three_way.COMPILERS)
