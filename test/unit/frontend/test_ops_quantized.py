# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantize and dequantize against torch's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from eager import Call, compare, r

from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

Q: Any = torch.ops.quantized_decomposed
SCALES, ZEROS = torch.tensor([0.02, 0.5, 0.007]), torch.tensor([3, -5, 0])


@pytest.mark.parametrize(
    ("dtype", "low", "high", "zero"),
    [
        ("int8", -128, 127, 3),
        ("int8", -127, 127, -9),
        ("uint8", 0, 255, 77),
        ("uint8", 0, 127, 5),
        ("int16", -32768, 32767, 250),
    ],
)
def test_per_tensor(dtype: str, low: int, high: int, zero: int) -> None:
    kind = getattr(torch, dtype)

    def body(x: torch.Tensor) -> Any:
        codes = Q.quantize_per_tensor(x, 0.02, zero, low, high, kind)
        return codes, Q.dequantize_per_tensor(codes, 0.02, zero, low, high, kind)

    compare(body, torch.linspace(-5, 5, 1001), tolerance=0.0)


def test_per_channel() -> None:
    def body(x: torch.Tensor) -> Any:
        codes = Q.quantize_per_channel(x, SCALES, ZEROS, 1, -128, 127, torch.int8)
        return codes, Q.dequantize_per_channel(codes, SCALES, ZEROS, 1, -128, 127, torch.int8)

    compare(body, r(50, 3, 2) * 3, tolerance=0.0)


def test_tensor_parameters_and_other_encodings() -> None:
    def body(x: torch.Tensor) -> Any:
        scale, zero = torch.tensor(0.02), torch.tensor(4)
        codes = Q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        doubled = Q.dequantize_per_tensor(codes, 0.04, 4, -128, 127, torch.int8)
        moved = Q.dequantize_per_tensor(codes.t().reshape(-1), 0.02, 4, -100, 100, torch.int8)
        none = Q.dequantize_per_channel(codes, SCALES, None, 0, -128, 127, torch.int8)
        return codes, doubled, moved, none, codes + 1

    compare(body, r(3, 4), tolerance=0.0)


def test_codes_outside_their_range() -> None:
    codes = torch.arange(-128, 128).to(torch.int8).reshape(2, 128)

    def body(x: torch.Tensor) -> Any:
        return x + Q.dequantize_per_tensor(codes, 0.02, 4, -127, 127, torch.int8)

    compare(body, r(2, 128), tolerance=0.0)


def test_bfloat16() -> None:
    model = Call(lambda x: ((x.bfloat16() * 0.3).float(), (x.bfloat16() + 1.0).float())).eval()
    x = r(200)
    module = from_torch(torch.export.export(model, (x,)))
    for left, right in zip(interpret(module, x.numpy()), model(x), strict=True):
        assert np.array_equal(left, right.numpy())
