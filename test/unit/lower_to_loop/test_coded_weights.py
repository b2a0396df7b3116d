# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that are dequantized as they are read: right at all levels, and no larger than their codes and scales."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import three_way
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import Program, kind
from xdsl.dialects.builtin import ModuleOp, bf16, f16, i64
from xdsl.ir import SSAValue

from qcomp.backend.compile import FOLD_ALL
from qcomp.backend.emit_c import emit_program
from qcomp.dialects import nn
from qcomp.dialects.constant import DataAttr
from qcomp.dialects.quant import DequantizeDynamicOp, DequantizeOp, Encoding
from qcomp.interpreter import interpret
from qcomp.interpreter.reference.narrow_floats import narrow
from qcomp.transforms.coded_weights import coded_weight, stays_coded
from qcomp.transforms.pipeline import run_passes

EPS = float(np.finfo(np.float32).eps)
FORMS = ("tensor", "symmetric", "channel", "unsigned", "groups", "columns")


def encoding(p: Program, shape: Sequence[int], form: str, bits: int = 8, group: int = 2) -> Encoding:
    """Scales that all differ; zero points that are not 0 but for "symmetric"."""
    low, high = (0, 2**bits - 1) if form == "unsigned" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    options: dict[str, Any] = {"qmin": low, "qmax": high, "signed": form != "unsigned"}
    if form == "tensor":
        return Encoding.make(0.037, 3, **options)
    grid = {"groups": (shape[0], shape[1] // group), "columns": (shape[1],)}.get(form, (shape[0],))
    zeros = 0 if form == "symmetric" else p.rng.integers(low, high + 1, grid)
    scales = p.rng.uniform(0.01, 0.1, grid)
    if form == "groups":
        return Encoding.make(scales, zeros, blocks=((0, 1), (1, group)), **options)
    return Encoding.make(scales, zeros, axis=1 if form == "columns" else 0, **options)


def weight(p: Program, shape: Sequence[int], form: str, bits: int = 8, group: int = 2) -> SSAValue:
    """A dequantized constant."""
    return p.add(DequantizeOp(p.codes(shape, encoding(p, shape, form, bits, group))))


def at_all_levels(module: ModuleOp, *inputs: np.ndarray) -> list[list[np.ndarray]]:
    """The results of loops and C for every target."""
    expected = interpret(module, *inputs)
    found: list[list[np.ndarray]] = []
    for target in three_way.TARGETS:
        lowered = three_way.lower(module, target)
        program = emit_program(lowered, target, "net")
        found.append(list(interpret(lowered, *inputs)))
        with tempfile.TemporaryDirectory() as folder:
            library = three_way.build(program, "gcc -O1", Path(folder))
            found.append(three_way.run_c(program, library, inputs, expected))
    return found


def reals_of(value: SSAValue) -> np.ndarray:
    """What a weight stands for."""
    held = coded_weight(value)
    assert held is not None
    return held.reals()


class Linears:
    """Linears of one program, each held to K * eps * sum |x| |w|, the product with the scale included in K."""

    def __init__(self, seed: int):
        self.p = Program(seed)
        self.results: list[SSAValue] = []
        self.exact: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, rows: int, sizes: tuple[int, int], form: str, bits: int, group: int, bias: bool = True) -> None:
        """A linear with its own input, and its exact result with the bound."""
        p = self.p
        x, w = p.input((rows, sizes[1])), weight(p, sizes, form, bits, group)
        b = p.reals((sizes[0],), 3.0) if bias else None
        self.results.append(p.add(nn.LinearOp(x, w, b)))
        start = 0.0 if b is None else cast(nn.ConstantOp, b.owner).array.astype(np.float64)
        wide, reals = p.arrays[-1].astype(np.float64), reals_of(w).astype(np.float64).T
        limit = (sizes[1] + 2) * EPS * (np.abs(wide) @ np.abs(reals) + np.abs(start))
        self.exact.append((wide @ reals + start, limit))

    def check(self) -> None:
        """Hold all levels to the bounds."""
        for found in at_all_levels(self.p.module(*self.results), *self.p.arrays):
            for have, (want, limit) in zip(found, self.exact, strict=True):
                assert (np.abs(have - want) <= limit).all()


def weight_bytes(module: ModuleOp, place: int = 0) -> int:
    """Bytes of the constants for the target at `place`."""
    target = three_way.TARGETS[place]
    program = emit_program(three_way.lower(module, target), target, "net")
    return sum(array.nbytes for array in program.constants.values())


def linear(form: str, bits: int, sizes: tuple[int, int], rows: int, group: int) -> tuple[ModuleOp, np.ndarray]:
    """One linear with a bias, and its input."""
    p = Program(sum(sizes) + rows)
    x, w = p.input((rows, sizes[1])), weight(p, sizes, form, bits, group)
    return p.module(p.add(nn.LinearOp(x, w, p.reals((sizes[0],), 3.0)))), p.arrays[0]


@pytest.mark.parametrize("sizes, group", [((21, 30), 6), ((48, 64), 32), ((5, 1), 1), ((1, 6), 3)], ids=str)
def test_linear(sizes: tuple[int, int], group: int) -> None:
    """One row, whose sums are scaled, and several, for which the weights are; a full register and less."""
    cases = Linears(3)
    for form in FORMS:
        for bits, rows in ((4, 1), (4, 3), (8, 1), (8, 17)):
            cases.add(rows, sizes, form, bits, group)
    cases.check()


SHAPES = st.tuples(*[st.integers(1, 9)] * 3, st.integers(1, 40), st.sampled_from([4, 8]), st.booleans())


@given(st.lists(SHAPES, min_size=9, max_size=9))
@settings(max_examples=2, deadline=None)
def test_any_groups(shapes: list[tuple[int, int, int, int, int, bool]]) -> None:
    cases = Linears(4)
    for rows, groups, group, channels, bits, bias in shapes:
        cases.add(rows, (channels, groups * group), "groups", bits, group, bias)
    cases.check()


def test_reals_are_those_of_dequantize() -> None:
    p = Program(4)
    for form in FORMS:
        w = weight(p, (6, 10), form)
        held = reals_of(w)
        (expected,) = interpret(p_module(p, w))
        assert held.tobytes() == expected.tobytes()


def p_module(p: Program, value: SSAValue) -> ModuleOp:
    """main returning a value, on a copy of what `p` has so far."""
    copy = Program()
    mapping: dict[SSAValue, SSAValue] = {}
    for op in p.block.ops:
        copy.block.add_op(op.clone(mapping))
    return copy.module(mapping[value])


@pytest.mark.parametrize("rows", [1, 4])
def test_weight_bytes(rows: int) -> None:
    """Codes as they are or two in a byte, a float32 per channel or group, a zero point where they differ, the bias."""
    codes, channels = 48 * 64, 48
    table = 64  # of the 16 reals of a nibble, where a register holds it
    for form, bits, expected in (
        ("symmetric", 8, codes + 4 * channels),
        ("channel", 8, codes + 5 * channels),
        ("tensor", 8, codes + 4 * channels),
        ("groups", 8, codes + 5 * channels * 2),
        ("symmetric", 4, codes // 2 + 4 * channels),
        ("channel", 4, codes // 2 + 5 * channels),
        ("groups", 4, codes // 2 + 5 * channels * 2),
    ):
        module = linear(form, bits, (48, 64), rows, 32)[0]
        for place, target in enumerate(three_way.TARGETS):
            extra = table if bits == 4 and target.lanes > 1 else 0
            assert weight_bytes(module, place) == expected + 4 * channels + extra


def test_a_scale_for_every_weight_is_no_gain() -> None:
    module = linear("groups", 8, (16, 6), 2, 1)[0]
    assert weight_bytes(module) == 4 * (16 * 6 + 16)


CONVOLUTIONS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1d": (nn.Conv1dOp, (2, 6, 13), (20, 6, 4), {"padding": (1,)}),
    "1x1": (nn.Conv2dOp, (1, 24, 5, 7), (40, 24, 1, 1), {}),
    "3x3": (nn.Conv2dOp, (2, 6, 7, 9), (21, 6, 3, 3), {"padding": (1, 1), "stride": (2, 1)}),
    "dilated": (nn.Conv2dOp, (1, 5, 8, 9), (17, 5, 3, 2), {"dilation": (2, 3)}),
    "grouped": (nn.Conv2dOp, (1, 6, 7, 6), (8, 3, 3, 3), {"groups": 2, "padding": (1, 1)}),
    "depthwise": (nn.Conv2dOp, (2, 35, 6, 9), (35, 1, 3, 3), {"groups": 35, "padding": (1, 1)}),
    "3d": (nn.Conv3dOp, (1, 4, 5, 6, 7), (18, 4, 2, 3, 3), {"padding": (1, 1, 1)}),
    "transposed": (nn.ConvTranspose2dOp, (1, 6, 5, 4), (10, 6, 3, 3), {"stride": (2, 2), "padding": (1, 1)}),
    "transposed depthwise": (nn.ConvTranspose2dOp, (1, 19, 5, 4), (19, 1, 3, 3), {"stride": (2, 2), "groups": 19}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str) -> None:
    op, source, size, options = CONVOLUTIONS[name]
    p = Program(7)
    x, results = p.input(source), list[SSAValue]()
    for form, bits in (("tensor", 8), ("symmetric", 4), ("channel", 8), ("channel", 4), ("groups", 8), ("groups", 4)):
        if form != "groups" or size[1] % 2 == 0:
            bias, clamp = p.reals((size[0],)), nn.ClampAttr.of(-4.0, 3.0)
            results.append(p.add(op(x, weight(p, size, form, bits), bias, activation=clamp, **options)))
    module = p.module(*results)
    three_way.check(module, *p.arrays, relative=1e-5)
    # Of a transposed convolution each phase has its own parameters.
    assert name.startswith("transposed") or weight_bytes(module) < 0.7 * 4 * math.prod(size) * len(results)


@pytest.mark.parametrize("form", ["tensor", "columns", "groups", "channel"])
def test_matmul(form: str) -> None:
    """On the right, with a scale per column, and in groups of rows; one per row is a float for every code."""
    p = Program(8)
    x, results = p.input((2, 3, 12)), list[SSAValue]()
    for bits in (4, 8):
        w = weight(p, (21, 12) if form == "groups" else (12, 21), form, bits, 4)
        w = p.add(nn.PermuteOp(w, (1, 0))) if form == "groups" else w
        results.append(p.add(nn.MatmulOp(x, w)))
    module = p.module(*results)
    three_way.check(module, *p.arrays, relative=1e-5)
    assert (weight_bytes(module) < 2 * 4 * 12 * 21) == (form != "channel")


@pytest.mark.parametrize("byte", [np.int8, np.uint8])
@pytest.mark.parametrize("rows", [1, 5])
def test_bytes_that_are_cast(byte: Any, rows: int) -> None:
    """Codes without scales: no buffer for any."""
    p = Program(11)
    low, high = np.iinfo(byte).min, np.iinfo(byte).max + 1
    x, codes = p.input((rows, 18)), p.rng.integers(low, high, (18, 21)).astype(byte)
    w = p.add(nn.CastOp(p.add(nn.ConstantOp(codes)), kind((18, 21))))
    module = p.module(p.add(nn.MatmulOp(x, w)))
    three_way.check(module, *p.arrays, relative=1e-5)
    assert weight_bytes(module) == 18 * 21 + 4 * 21


def test_batched_matmul_reads_reals() -> None:
    p = Program(9)
    x = p.input((2, 3, 6))
    w = p.add(DequantizeOp(p.codes((2, 6, 5), Encoding.make(0.02, 3))))
    three_way.check(p.module(p.add(nn.MatmulOp(x, w))), *p.arrays, relative=1e-5)


TABLES = [(21, 30), (9, 64), (6, 96), (7, 33), (4, 1), (5, 47)]


@pytest.mark.parametrize("shape", TABLES, ids=str)
def test_embedding_in_bits(shape: tuple[int, int]) -> None:
    group = {30: 6, 64: 32, 96: 48, 33: 11, 1: 1, 47: 47}[shape[1]]
    p = Program(5)
    rows, results = p.given(p.rng.integers(0, shape[0], (3, 4)), i64), list[SSAValue]()
    for form in FORMS:
        for bits in (4, 8):
            results.append(p.add(nn.EmbeddingOp(weight(p, shape, form, bits, group), rows)))
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("form, bits, row", [
    ("symmetric", 8, 64 + 4), ("channel", 8, 64 + 5), ("groups", 8, 64 + 2 * 5),
    ("symmetric", 4, 32 + 4), ("channel", 4, 32 + 5), ("groups", 4, 32 + 2 * 5),
])  # fmt: skip
def test_bytes_of_a_table(form: str, bits: int, row: int) -> None:
    p = Program(5)
    rows = p.given(p.rng.integers(0, 9, (3,)), i64)
    module = p.module(p.add(nn.EmbeddingOp(weight(p, (9, 64), form, bits, 32), rows)))
    for place in range(len(three_way.TARGETS)):
        assert weight_bytes(module, place) == 9 * row


def fractions(p: Program, shape: tuple[int, ...], parameters: tuple[int, ...], high: int) -> SSAValue:
    """Codes dequantized with zero points that are fractions."""
    codes = p.rng.integers(0 if high < 16 else -high, high + 1, shape).astype(np.int8)
    held = p.add(nn.ConstantOp(codes))
    scales = p.add(nn.ConstantOp(p.rng.uniform(0.01, 0.1, parameters).astype(np.float32)))
    zeros = p.add(nn.ConstantOp(p.rng.uniform(-3.0, 4.0, parameters).astype(np.float32)))
    return p.add(DequantizeDynamicOp(held, scales, zeros))


@pytest.mark.parametrize("high", [15, 127])
def test_zero_points_that_are_fractions(high: int) -> None:
    """Rows of a table, in bits; groups within the rows of a linear, behind a reshape."""
    p = Program(6)
    rows = p.given(p.rng.integers(0, 9, (5,)), i64)
    module = p.module(p.add(nn.EmbeddingOp(fractions(p, (9, 50), (9, 1), high), rows)))
    three_way.check(module, *p.arrays)
    assert weight_bytes(module) == 9 * ((25 if high == 15 else 50) + 8)
    q = Program(7)
    x = q.input((2, 24))
    w = q.add(nn.ReshapeOp(fractions(q, (11, 3, 8), (11, 3, 1), high), (11, 24)))
    module = q.module(q.add(nn.LinearOp(x, w)))
    three_way.check(module, *q.arrays, relative=1e-5)
    assert weight_bytes(module) == 11 * (12 if high == 15 else 24) + 11 * 3 * 8 + 4 * 11


def test_every_compiler_and_flag() -> None:
    module, x = linear("groups", 4, (37, 24), 2, 8)
    three_way.check(module, x, compilers=three_way.COMPILERS, loops=False, relative=1e-5)
    p = Program(5)
    rows = p.given(p.rng.integers(0, 9, (4,)), i64)
    tables = [p.add(nn.EmbeddingOp(weight(p, (9, 56), form, 4, 28), rows)) for form in ("symmetric", "groups")]
    three_way.check(p.module(*tables), *p.arrays, compilers=three_way.COMPILERS, loops=False)


def test_what_stays_coded() -> None:
    """Weights of readers that know codes, moved or not; not what others read too, nor wider codes."""
    p = Program(3)
    x, rows = p.input((2, 6)), p.given(p.rng.integers(0, 4, (3,)), i64)
    tied, shared = weight(p, (4, 6), "channel"), weight(p, (4, 6), "channel")
    wide = p.add(DequantizeOp(p.codes((4, 6), Encoding.make(0.01, width=16))))
    moved = weight(p, (6, 4), "columns")
    results = [p.add(nn.LinearOp(x, tied)), p.add(nn.EmbeddingOp(tied, rows)), p.add(nn.LinearOp(x, shared)), shared]
    results += [p.add(nn.LinearOp(x, wide)), p.add(nn.LinearOp(x, p.add(nn.PermuteOp(moved, (1, 0)))))]
    left = p.add(nn.MatmulOp(weight(p, (3, 6), "tensor"), p.add(nn.PermuteOp(x, (1, 0)))))
    module = p.module(*results, left)
    found = [stays_coded(op) for op in module.walk() if isinstance(op, DequantizeOp)]
    assert found == [True, False, False, True, False]
    run_passes(module, FOLD_ALL)
    assert sum(isinstance(op, DequantizeOp) for op in module.walk()) == 2
    three_way.check(module, *p.arrays, relative=1e-5)


def test_a_dequantized_constant_is_returned() -> None:
    p = Program(3)
    three_way.check(p.module(weight(p, (4, 6), "channel")))


@pytest.mark.parametrize("element, odd", [("bf16", None), ("f16", None), ("bf16", -0.0), ("f16", 0.5), ("bf16", 128.0)])
def test_16_bit_floats_that_are_bytes(element: str, odd: float | None) -> None:
    """Whole numbers of a byte take one; with any other number among them, -0.0 too, all take two bytes."""
    p = Program(12)
    half = {"bf16": bf16, "f16": f16}[element]
    values = p.rng.integers(-128, 128, (1500, 3)).astype(np.float32)
    if odd is not None:
        values[-1, -1] = odd
    x = p.input((2, 1500))
    w = p.add(nn.CastOp(p.add(nn.ConstantOp(DataAttr.of(narrow(values, half), half))), kind((1500, 3))))
    module = p.module(p.add(nn.MatmulOp(x, w)))
    assert any(stays_coded(op) for op in module.walk()) == (odd is None)
    three_way.check(module, *p.arrays, relative=1e-5)
    assert weight_bytes(module) == values.size * (1 if odd is None else 2) + 4 * 3
