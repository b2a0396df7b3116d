# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Codes that are picked, chosen, written, ordered and compared: in bits, of both signs, between encodings too."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from layers import Program, activation, kind
from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.nn.functions import i1
from qcomp.dialects.quant import Encoding

ENCODINGS = [activation(0.02, 114), Encoding.make(0.03, -11), Encoding.make(0.07, 3, qmin=-20, qmax=30)]
SHAPE = (3, 17, 5)


def few(p: Program, encoding: Encoding, shape: tuple[int, ...] = SHAPE) -> SSAValue:
    """An argument of codes of which many are equal."""
    value = p.input(shape, encoding)
    p.arrays[-1] //= 16
    np.clip(p.arrays[-1], encoding.qmin, encoding.qmax, out=p.arrays[-1])
    return value


def reads_reals(module: object) -> bool:
    """Whether a buffer of f32 is made in generic C."""
    lowered = three_way.lower(module, three_way.TARGETS[0])  # pyright: ignore[reportArgumentType]
    kinds = [value.type for op in lowered.walk() if isinstance(op, loop.ViewOp) for value in op.results]
    return any("xf32>" in str(item) for item in kinds)


@pytest.mark.parametrize("dim", range(3))
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_order(encoding: Encoding, dim: int) -> None:
    p = Program(dim)
    x = few(p, encoding)
    lines = kind(SHAPE, encoding)
    kept = kind([size for axis, size in enumerate(SHAPE) if axis != dim], encoding)
    results: list[Operation] = [nn.ArgsortOp(x, dim, flag) for flag in (False, True)]
    results += [nn.ScanOp(name, x, dim, lines) for name in ("max", "min")]
    results += [nn.ScanOp(name, x, dim) for name in ("argmax", "argmin")]
    results += [nn.ArgmaxOp(x, dim, True), nn.ArgminOp(x, dim, False), nn.AminOp(x, (dim,), False, kept)]
    results += [nn.AmaxOp(x, (dim,), False, kept)]
    module = p.module(*[p.add(op) for op in results])
    assert not reads_reals(module)
    three_way.check(module, *p.arrays)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_places_in_windows(encoding: Encoding) -> None:
    """Padding is never found, also where all codes are the smallest."""
    p = Program(5)
    images = [few(p, encoding, (2, 3, 7, 9)), p.input((2, 3, 7, 9), encoding)]
    p.arrays[1][:] = encoding.qmin
    window = {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 1), "dilation": (2, 1), "ceil_mode": False}
    results = [p.add(nn.MaxPoolIndices2dOp(x, **window)) for x in images]
    module = p.module(*results)
    assert not reads_reals(module)
    three_way.check(module, *p.arrays)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_to_another_encoding(encoding: Encoding) -> None:
    p = Program(6)
    x = few(p, encoding)
    other = Encoding.make(0.05, 9)
    results = [nn.ScanOp("max", x, 1, kind(SHAPE, other)), nn.AminOp(x, (1,), False, kind((3, 5), other))]
    results += [nn.ScanOp("add", x, 1, kind(SHAPE, other)), nn.ProdOp(x, (1,), False, kind((3, 5), other))]
    three_way.check(p.module(*[p.add(op) for op in results]), *p.arrays)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_picks_and_writes(encoding: Encoding) -> None:
    p = Program(7)
    x, y = p.input(SHAPE, encoding), p.input(SHAPE, encoding)
    indices = p.given(p.rng.integers(0, 17, (3, 4, 5)), i64)
    rows = p.given(np.array([16, 0, 7]), i64)
    part = p.input((3, 3, 5), encoding)
    mask = p.given(p.rng.integers(0, 2, (17, 1)).astype(bool), i1)
    same = kind(SHAPE, encoding)
    results = [
        nn.GatherOp(x, indices, 1), nn.ScatterOp(x, indices, p.input((3, 4, 5), encoding), 1, "none"),
        nn.SelectOp(mask, x, y), nn.SelectOp(mask, x, p.codes((1,), encoding), same),
        nn.IndexCopyOp(x, part, rows, 1), nn.InsertSliceOp(x, part, 1, 2, 3),
    ]  # fmt: skip
    module = p.module(*[p.add(op) for op in results])
    assert not reads_reals(module)
    three_way.check(module, *p.arrays)


@pytest.mark.parametrize("target", [None, *ENCODINGS])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_codes_and_a_number(encoding: Encoding, target: Encoding | None) -> None:
    """Look-ups where the constant is one element, arithmetic where it is a row; the constant on either side."""
    p = Program(8)
    x, numbers = p.input(SHAPE, encoding), [np.array(0.37), np.array([[[-1.3]]]), np.array([0.5, 0.0, -0.2, 1.1, 3.0])]
    held = [p.add(nn.ConstantOp(number.astype(np.float32))) for number in numbers]
    results: list[Operation] = []
    for number in held:
        results += [nn.CompareOp("le", x, number), nn.CompareOp("gt", number, x)]
        for pair in ((x, number), (number, x)):
            results += [make(*pair, kind(SHAPE, target)) for make in (nn.AddOp, nn.SubOp, nn.MulOp, nn.DivOp)]
            results += [nn.BinaryFunctionOp.of("fmod", *pair, kind(SHAPE, target))]
    three_way.check(p.module(*[p.add(op) for op in results]), *p.arrays)


def test_a_number_of_more_dimensions() -> None:
    """The result has another shape than the codes."""
    p = Program(9)
    x = p.input((5,), ENCODINGS[0])
    number = p.add(nn.ConstantOp(np.full((1, 1, 1), 0.4, np.float32)))
    results = [nn.AddOp(x, number, kind((1, 1, 5), ENCODINGS[1])), nn.CompareOp("ge", number, x)]
    three_way.check(p.module(*[p.add(op) for op in results]), *p.arrays)


def test_comparison_of_encodings() -> None:
    p = Program(10)
    values = [p.input(SHAPE, encoding) for encoding in ENCODINGS]
    pairs = [(values[0], values[1]), (values[1], values[1]), (values[2], values[0])]
    results = [p.add(nn.CompareOp(name, *pair)) for pair in pairs for name in ("lt", "eq", "ne")]
    three_way.check(p.module(*results), *p.arrays)
