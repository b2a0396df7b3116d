# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding, embedding and movement between encodings: in bits at all levels."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import three_way
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import Program, activation, kind
from xdsl.dialects.builtin import i8, i32, i64
from xdsl.ir import Attribute, SSAValue

from qcomp.backend.emit_c import emit_program
from qcomp.dialects import nn
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError

A, C, SIGNED = activation(0.02, 114), activation(0.05, 99), Encoding.make(0.07, -11, qmin=-127)


def integers(p: Program, element: Attribute, shape: tuple[int, ...], bound: int) -> SSAValue:
    """An argument of integers below `bound`."""
    return p.given(p.rng.integers(0, bound, shape).astype(numpy_dtype(element)), element)


PADS = [
    ((2, 5, 3, 7), (0, 1, 2, 3), (1, 0, 4, 17)),
    ((3, 18), (1, 2), (0, 35)),
    ((9,), (3,), (0,)),
    ((2, 3, 4), (0, 0, 0), (0, 0, 1)),
]


@pytest.mark.parametrize("shape, low, high", PADS)
def test_pad(shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> None:
    p = Program(1)
    x, q, n = p.input(shape), p.input(shape, A), integers(p, i64, shape, 99)
    wide = tuple(a + b + c for a, b, c in zip(shape, low, high, strict=True))
    results = [
        p.add(nn.PadOp(x, low, high, -0.0)), p.add(nn.PadOp(x, low, high, 0.0)), p.add(nn.PadOp(x, low, high, np.inf)),
        p.add(nn.PadOp(q, low, high, -0.7)), p.add(nn.PadOp(q, low, high, 1e9)),
        p.add(nn.PadOp(q, low, high, 0.3, kind(wide, SIGNED))), p.add(nn.PadOp(q, low, high, 0.3, kind(wide))),
        p.add(nn.PadOp(n, low, high, -3.0)),
    ]  # fmt: skip
    three_way.check(p.module(*results), *p.arrays)


def test_pad_of_images() -> None:
    """Channels last, the frame inside the border of the convolution behind it."""
    p = Program(2)
    q = p.add(nn.MaxPool2dOp(p.input((2, 5, 6, 7), A), (1, 1), (1, 1)))
    padded = p.add(nn.PadOp(q, (0, 0, 1, 2), (0, 3, 0, 1), 0.9))
    weight = p.codes((4, 8, 3, 3), p.weight_encoding(4))
    result = nn.Conv2dOp(padded, weight, padding=(1, 1), result_type=kind((2, 4, 7, 10), C))
    three_way.check(p.module(p.add(result), padded), *p.arrays)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 3), st.integers(0, 20)), min_size=1, max_size=4))
def test_any_pad(dims: list[tuple[int, int, int]]) -> None:
    p = Program(3)
    shape, low, high = (tuple(column) for column in zip(*dims, strict=True))
    x, q = p.input(shape), p.input(shape, A)
    results = [p.add(nn.PadOp(x, low, high, 1.5)), p.add(nn.PadOp(q, low, high, 1.5))]
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("element", [i32, i64], ids=str)
@pytest.mark.parametrize("size", [1, 5, 16, 83])
def test_embedding(element: Attribute, size: int) -> None:
    p = Program(4)
    indices = integers(p, element, (2, 3), 11)
    table, dynamic, codes = p.reals((11, size)), p.input((11, size)), p.codes((11, size), A)
    results = [
        p.add(nn.EmbeddingOp(table, indices)), p.add(nn.EmbeddingOp(dynamic, indices)),
        p.add(nn.EmbeddingOp(codes, indices)), p.add(nn.EmbeddingOp(codes, indices, kind((2, 3, size), C))),
    ]  # fmt: skip
    three_way.check(p.module(*results), *p.arrays)


def test_embedding_never_reads_outside() -> None:
    """The reference refuses such indices; C takes the nearest row."""
    p = Program(5)
    integers(p, i64, (5,), 3)
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    module = p.module(p.add(nn.EmbeddingOp(p.add(nn.ConstantOp(table)), p.block.args[0])))
    wild = np.array([-1, 3, 2**62, -(2**63), 1])
    for target in three_way.TARGETS:
        program = emit_program(three_way.lower(module, target), target, "net")
        with tempfile.TemporaryDirectory() as folder:
            library = three_way.build(program, "gcc -O1", Path(folder))
            (found,) = three_way.run_c(program, library, [wild], [np.zeros((5, 4), np.float32)])
        assert np.array_equal(found, table[[0, 2, 2, 0, 1]])


def test_movement_between_encodings() -> None:
    """Codes are requantized on the way, as quantize(move(dequantize)) says."""
    p = Program(6)
    shape = (2, 19, 3, 5)
    q, x = p.input(shape, A), p.input(shape)
    image = p.add(nn.MaxPool2dOp(q, (1, 1), (1, 1)))
    results: list[SSAValue] = []
    for target in (C, SIGNED, None):
        results += [
            p.add(nn.ReshapeOp(q, (38, 15), kind((38, 15), target))),
            p.add(nn.ReshapeOp(image, (38, 15), kind((38, 15), target))),
            p.add(nn.PermuteOp(q, (1, 0, 3, 2), kind((19, 2, 5, 3), target))),
            p.add(nn.PermuteOp(image, (0, 2, 3, 1), kind((2, 3, 5, 19), target))),
            p.add(nn.SliceOp(q, 1, 2, 19, 5, kind((2, 4, 3, 5), target))),
            p.add(nn.CatOp([q, x, image], 1, kind((2, 57, 3, 5), target))),
            p.add(nn.ExpandOp(p.add(nn.SliceOp(q, 0, 0, 1)), (7, 19, 3, 5), kind((7, 19, 3, 5), target))),
        ]
    results.append(p.add(nn.ReshapeOp(x, (38, 15), kind((38, 15), C))))
    three_way.check(p.module(*results), *p.arrays)


def test_what_is_refused() -> None:
    channels = Encoding.make([0.1, 0.2, 0.3], [3, -4, 5], axis=1)
    p = Program(7)
    module = p.module(p.add(nn.SliceOp(p.input((2, 3, 4), channels), 2, 0, 3)))
    with pytest.raises(QcompError, match="per-channel activations"):
        three_way.lower(module, three_way.TARGETS[0])
    p = Program(8)
    module = p.module(p.add(nn.PadOp(integers(p, i32, (3,), 5), (1,), (1,), 0.5)))
    with pytest.raises(QcompError, match=r"padding of integers with 0\.5"):
        three_way.lower(module, three_way.TARGETS[0])
    p = Program(9)
    module = p.module(p.add(nn.EmbeddingOp(p.reals((3, 4)), integers(p, i8, (3,), 3))))
    with pytest.raises(QcompError, match="indices of embedding must be i32 or i64"):
        three_way.lower(module, three_way.TARGETS[0])
