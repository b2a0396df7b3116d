# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Codes seen as integers and integers as codes, in bits at all levels: views, results, images with a border."""

from __future__ import annotations

import pytest
import three_way
from layers import Program, activation, kind

from qcomp.dialects import nn
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import CastStorageOp, DequantizeOp, QuantizeOp, storage_type

SHAPE = (2, 3, 5, 7)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("shape", [SHAPE, (13,), (), (0, 3)])
def test_codes_go_out_and_come_in(signed: bool, shape: tuple[int, ...]) -> None:
    p = Program(3)
    codes = p.add(QuantizeOp(p.input(shape), activation(0.03, 9, signed)))
    plain = p.add(CastStorageOp(codes, storage_type(tensor(codes))))
    again = p.add(CastStorageOp(plain, kind(shape, activation(0.5, 70, signed))))
    three_way.check(p.module(plain, p.add(DequantizeOp(again)), plain), *p.arrays)


def test_a_border_is_not_taken_over() -> None:
    p = Program(4)
    codes = p.add(QuantizeOp(p.input(SHAPE), activation(0.03, 9)))
    weight = p.reals((4, 3, 3, 3))
    plain = p.add(CastStorageOp(codes, storage_type(tensor(codes))))
    other = p.add(CastStorageOp(plain, kind(SHAPE, activation(0.5, 70))))
    results = [p.add(nn.Conv2dOp(p.add(DequantizeOp(v)), weight, padding=(1, 1))) for v in (codes, other)]
    three_way.check(p.module(*results), *p.arrays, relative=1e-5)


def test_a_border_of_codes_is_not_taken_over() -> None:
    p = Program(5)
    weight_codes = p.weight_encoding(4)
    weight = p.codes((4, 3, 3, 3), weight_codes)
    codes = p.input(SHAPE, activation(0.03, 9))
    plain = p.add(CastStorageOp(codes, storage_type(tensor(codes))))
    other = p.add(CastStorageOp(plain, kind(SHAPE, activation(0.5, 70))))
    wide = kind((2, 4, 5, 7), activation(1.5, 120))
    results = [p.add(nn.Conv2dOp(v, weight, padding=(1, 1), result_type=wide)) for v in (codes, other)]
    three_way.check(p.module(*results), *p.arrays)
