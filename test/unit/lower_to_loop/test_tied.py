# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of embeddings that is a linear's weight, too, is stored once, as the linear packs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program, same_bits
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, i64
from xdsl.ir import SSAValue

import qcomp
from qcomp.backend.compile import emit_module
from qcomp.dialects import nn
from qcomp.dialects.constant import DataAttr
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp
from qcomp.interpreter import interpret
from qcomp.interpreter.reference.narrow_floats import narrow

TARGETS = ("generic", "native")
SIZES = ((37, 6), (70, 9), (16, 8), (3, 5))
"""Rows and columns: fewer and more than a register, whole and not."""
GRID = np.arange(70).reshape(35, 2)
BLOCKS = Encoding.make((GRID + 1) / 99, GRID % 9 - 4, blocks=((0, 1), (1, 5)), qmin=-8, qmax=7)


def reals(sizes: Sequence[int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *sizes)).standard_normal(sizes).astype(np.float32)


def codes(sizes: Sequence[int], low: int = -8, high: int = 7) -> np.ndarray:
    return np.random.default_rng(sizes).integers(low, high, sizes, endpoint=True).astype(np.int8)


class Tables:
    """Tables in one program, each read by embeddings (or none, for comparison) and contractions."""

    def __init__(self, add: Any, word: SSAValue, rows: SSAValue, embeddings: bool):
        self.add, self.word, self.rows, self.embeddings = add, word, rows, embeddings
        self.picked: list[SSAValue] = []
        self.sums: list[SSAValue] = []

    def pick(self, table: SSAValue) -> None:
        if self.embeddings:
            self.picked.append(self.add(nn.EmbeddingOp(table, self.word)))

    def linear(self, weight: SSAValue) -> None:
        self.sums.append(self.add(nn.LinearOp(self.x(weight, 1), weight)))

    def matmul(self, weight: SSAValue) -> None:
        self.sums.append(self.add(nn.MatmulOp(self.x(weight, 0), weight)))

    def x(self, weight: SSAValue, inner: int) -> SSAValue:
        assert isinstance(weight.type, TensorType)
        return self.add(nn.SliceOp(self.rows, 1, 0, weight.type.get_shape()[inner]))


def of_reals(t: Tables) -> None:
    """Rows that are channels, read before and after; those of a matmul, transposed; rows that are summed over."""
    for sizes in SIZES:
        table = t.add(constant(reals(sizes)))
        t.pick(table)
        t.linear(table)
        t.pick(table)
        other = reals(sizes, 1)
        t.pick(t.add(constant(other)))
        t.matmul(t.add(constant(np.ascontiguousarray(other.T))))
        turned = reals(sizes, 2)
        t.pick(t.add(constant(turned)))
        t.linear(t.add(constant(np.ascontiguousarray(turned.T))))


def of_codes(t: Tables) -> None:
    """Codes that are dequantized, in bytes and halves of bytes, a scale for each channel or group; 16-bit floats."""
    axis = Encoding.make(np.arange(1, 71) / 99, np.arange(70) % 7 - 3, axis=0)
    for array, held in ((codes((70, 9), -128, 127), axis), (codes((70, 9)), axis), (codes((35, 10)), BLOCKS)):
        table = t.add(DequantizeOp(t.add(constant(array, held))))
        t.linear(table)
        t.pick(table)
    for element in (f16, bf16):
        half = t.add(nn.ConstantOp(DataAttr.of(narrow(reals((135, 65)), element), element)))
        t.linear(t.add(nn.CastOp(half, floats(135, 65))))
        t.pick(half)


def of_integers(t: Tables) -> None:
    """Codes in an integer contraction: four neighbours lie together where the dot instruction takes them."""
    held, x = Encoding.make(0.02, 0, qmin=-127, qmax=127), Encoding.make(0.03, 5, signed=False)
    for sizes in ((70, 9), (20, 8)):
        table = t.add(constant(codes(sizes, -127, 127), held))
        rows = t.add(QuantizeOp(t.x(table, 1), x))
        t.sums.append(t.add(nn.LinearOp(rows, table, result_type=floats(4, sizes[0]))))
        t.pick(table)


def module(build: Any, embeddings: bool = True) -> ModuleOp:
    def main(add: Any, word: SSAValue, rows: SSAValue) -> list[SSAValue]:
        tables = Tables(add, word, rows, embeddings)
        build(tables)
        return [*tables.picked, *tables.sums]

    return program(main, TensorType(i64, (2, 3)), floats(4, 72))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("build", [of_reals, of_codes, of_integers])
def test_embeddings_add_no_weights(build: Any, target: str) -> None:
    tied, alone = module(build), module(build, embeddings=False)
    inputs = [np.array([[0, 2, 1], [2, 0, 1]]), reals((4, 72), 9)]
    expected = interpret(tied, *inputs)
    artifact = qcomp.compile(tied, target=target, opt_level=1)
    found: list[Any] = list(artifact.run(inputs))
    count = len(expected) - len(interpret(alone, *inputs))
    for got, want in zip(found[:count], expected[:count], strict=True):
        assert same_bits(got.view(want.dtype), want)
    for got, want in zip(found[count:], expected[count:], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert artifact.report()["weight_bytes"] == weight_bytes(alone, target)


def weight_bytes(program: ModuleOp, target: str) -> int:
    return emit_module(program.clone(), target, 1, "net").manifest.report["weight_bytes"]


def test_tables_that_differ_are_their_own() -> None:
    """In one element, in type, or in a zero's sign."""

    def build(t: Tables) -> None:
        one = reals((16, 8))
        for place, value in (((15, 7), 3.0), ((0, 0), -0.0)):
            other, again = one.copy(), one.copy()
            other[place], again[place] = value, 0.0 if value == 0 else 4.0
            t.linear(t.add(constant(other)))
            t.pick(t.add(constant(again)))

    tables = 2 * 16 * 8 * 4
    assert weight_bytes(module(build), "generic") == weight_bytes(module(build, embeddings=False), "generic") + tables


def linears(weight: np.ndarray, *rows: int) -> ModuleOp:
    """Linears of one weight over so many rows each."""

    def build(add: Any, *x: SSAValue) -> list[SSAValue]:
        table = add(constant(weight))
        return [add(nn.LinearOp(value, table)) for value in x]

    return program(build, *(floats(count, weight.shape[1]) for count in rows))


def test_linears_of_different_rows_share_what_one_packs() -> None:
    """Where that takes hardly longer: the ones with few rows read a large weight no faster in another order."""
    weight = reals((512, 64))
    inputs = [reals((rows, 64), rows) for rows in (7, 16, 3)]
    artifact = qcomp.compile(linears(weight, 7, 16, 3), target="x86-64-avx512vnni", opt_level=1)
    assert weight.nbytes <= artifact.report()["weight_bytes"] < 1.2 * weight.nbytes
    if artifact.library is not None:
        for x, y in zip(inputs, artifact.run(inputs), strict=True):
            np.testing.assert_allclose(np.asarray(y, np.float64), x @ weight.T, rtol=1e-4, atol=1e-4)
    for order in ((1, 64), (64, 1)):
        large, small = reals((1024, 1040)), reals((256, 32))
        assert weight_bytes(linears(large, *order), "x86-64-avx512vnni") < 1.02 * large.nbytes
        assert weight_bytes(linears(small, *order), "x86-64-avx512vnni") > 2 * small.nbytes
