# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Type promotion is torch's, for every pair of operand kinds."""

from __future__ import annotations

import itertools

import pytest
import torch

from qcomp.errors import QcompError
from qcomp.frontend.promotion import of_number, of_tensor, result_type

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 2), (2, 0), (2, 2)])
def test_tensor_pairs(left: int, right: int) -> None:
    for first, second in itertools.product(DTYPES, DTYPES):
        a = torch.zeros((1,) * left, dtype=getattr(torch, first))
        b = torch.zeros((1,) * right, dtype=getattr(torch, second))
        found = result_type([of_tensor(first, left), of_tensor(second, right)])
        assert found == str(torch.result_type(a, b)).removeprefix("torch."), (first, second)


@pytest.mark.parametrize("number", [True, 3, 2.5])
def test_numbers(number: bool | int | float) -> None:
    for dtype, rank in itertools.product(DTYPES, (0, 1)):
        tensor = torch.zeros((1,) * rank, dtype=getattr(torch, dtype))
        found = result_type([of_tensor(dtype, rank), of_number(number)])
        assert found == str(torch.result_type(tensor, number)).removeprefix("torch."), dtype


def test_three_priorities() -> None:
    operands = [of_tensor("int8", 1), of_tensor("float64", 0), of_number(2)]
    assert result_type(operands) == "float64"
    assert result_type([of_tensor("float16", 1), of_tensor("float64", 0), of_number(2.5)]) == "float16"


def test_refused() -> None:
    with pytest.raises(QcompError):
        result_type([of_tensor("complex64", 1), of_tensor("float32", 1)])
    with pytest.raises(QcompError):
        result_type([of_tensor("uint16", 1), of_tensor("int8", 1)])
