# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes into parts of tensors: in bits at all levels, over the old value where nothing reads it any more."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
from layers import Program, activation
from xdsl.dialects.builtin import i8, i32, i64
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, SSAValue

from qcomp.backend.target import GENERIC
from qcomp.dialects import nn
from qcomp.dialects.nn.base import tensor

SLICES = [((2, 5, 3, 37), 3, 2, 1, 33), ((2, 5, 3, 7), 1, 1, 2, 2), ((9,), 0, 0, 4, 3), ((3, 20), 1, 5, 1, 0)]


def calls(p_module: object) -> list[str]:
    """The kernels that main calls."""
    lowered = three_way.lower(p_module, GENERIC)  # pyright: ignore[reportArgumentType]
    return [op.callee.string_value().rsplit("_", 1)[0] for op in lowered.walk() if isinstance(op, CallOp)]


def fresh(p: Program, value: SSAValue) -> SSAValue:
    """A value of the program itself, whose memory may be written."""
    return p.add(nn.NegOp(value))


@pytest.mark.parametrize("shape, dim, start, step, count", SLICES)
def test_insert_slice(shape: tuple[int, ...], dim: int, start: int, step: int, count: int) -> None:
    p = Program(1)
    part = (*shape[:dim], count, *shape[dim + 1 :])
    x, q, encoding = p.input(shape), p.input(shape, activation(0.02, 114)), activation(0.05, 99)
    wide = p.given(p.rng.integers(-9, 9, shape), i64)
    results = [
        p.add(nn.InsertSliceOp(x, p.input(part), dim, start, step)),
        p.add(nn.InsertSliceOp(fresh(p, x), p.input(part), dim, start, step)),
        p.add(nn.InsertSliceOp(q, p.input(part, activation(0.02, 114)), dim, start, step)),
        p.add(nn.InsertSliceOp(q, p.input(part, encoding), dim, start, step, tensor(q))),
        p.add(nn.InsertSliceOp(wide, p.given(p.rng.integers(-9, 9, part), i64), dim, start, step)),
    ]
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("element", [i32, i64])
@pytest.mark.parametrize("shape, dim", [((2, 5, 3, 37), 1), ((2, 6, 20), 1), ((7, 4), 1), ((6, 3), 0)])
def test_index_copy(shape: tuple[int, ...], dim: int, element: Attribute) -> None:
    p = Program(2)
    size = shape[dim]
    rows = np.array([size - 1, 0, 2, 2], f"i{8 if element == i64 else 4}")
    part = (*shape[:dim], 4, *shape[dim + 1 :])
    x, i = p.input(shape), p.given(rows, element)
    codes = p.input(shape, activation(0.02, 114))
    flags = p.given(p.rng.integers(-9, 9, shape).astype(np.int8), i8)
    results = [
        p.add(nn.IndexCopyOp(x, p.input(part), i, dim)),
        p.add(nn.IndexCopyOp(fresh(p, x), p.input(part), i, dim)),
        p.add(nn.IndexCopyOp(codes, p.input(part, activation(0.02, 114)), i, dim)),
        p.add(nn.IndexCopyOp(flags, p.given(p.rng.integers(-9, 9, part).astype(np.int8), i8), i, dim)),
    ]
    three_way.check(p.module(*results), *p.arrays)


def test_written_over_only_what_is_not_read_again() -> None:
    def written(reader: str) -> list[str]:
        p = Program(3)
        old, part = fresh(p, p.input((4, 6))), p.input((4, 2))
        alias = p.add(nn.ReshapeOp(old, (6, 4))) if reader == "alias" else None
        source = p.add(nn.ReshapeOp(p.add(nn.SliceOp(old, 1, 0, 2)), (4, 2))) if reader == "source" else part
        new = p.add(nn.InsertSliceOp(old, source, 1, 3))
        results = [p.add(nn.ReluOp(new))]
        if alias is not None:
            results.append(p.add(nn.AbsOp(alias)))
        if reader == "itself":
            results.append(p.add(nn.AbsOp(old)))
        if reader == "result":
            results.append(old)
        module = p.module(*results)
        three_way.check(module, *p.arrays)
        return calls(module)

    assert "copy" not in written("nobody") and "copy" not in written("source")
    assert all("copy" in written(reader) for reader in ("alias", "itself", "result"))


def test_a_chain_of_writes_copies_once() -> None:
    p = Program(4)
    value = p.input((4, 30))
    for place in range(5):
        value = p.add(nn.InsertSliceOp(value, p.input((4, 2)), 1, 5 * place))
    module = p.module(p.add(nn.ReluOp(value)))
    three_way.check(module, *p.arrays)
    assert calls(module).count("copy") == 1
