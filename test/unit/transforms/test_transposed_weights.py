# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions keep their integers: scales along axis 1 of torch's weight, in groups; batch norms fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qcomp

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")
CODES: Any = torch.ops.quantized_decomposed


class Quantized(torch.nn.Module):
    """Codes in, weight codes with a scale per output channel of a group, codes out."""

    def __init__(self, groups: int, axis: int):
        super().__init__()
        generator = torch.Generator().manual_seed(groups)
        self.groups, self.axis = groups, axis
        shape = (6, 5 if groups < 6 else 1, 3, 2)
        self.register_buffer("weight", torch.randint(-127, 128, shape, generator=generator).to(torch.int8))
        self.register_buffer("scales", torch.rand(shape[axis], generator=generator) * 0.02 + 0.001)
        self.register_buffer("zeros", torch.zeros(shape[axis], dtype=torch.int64))
        self.bias = torch.nn.Parameter(torch.randn(shape[1] * groups, generator=generator))

    def forward(self, x: Any) -> Any:
        x = CODES.quantize_per_tensor(x, 0.03, -9, -128, 127, torch.int8)
        x = CODES.dequantize_per_tensor(x, 0.03, -9, -128, 127, torch.int8)
        w = CODES.dequantize_per_channel(self.weight, self.scales, self.zeros, self.axis, -127, 127, torch.int8)
        y = torch.nn.functional.conv_transpose2d(x, w, self.bias, 2, 1, (1, 0), self.groups)
        return CODES.quantize_per_tensor(torch.relu(y), 0.1, 3, -128, 127, torch.int8)


@pytest.mark.parametrize(("groups", "axis"), [(1, 1), (2, 1), (3, 1), (6, 0)])
def test_scales_per_output_channel_are_integers(groups: int, axis: int):
    model, inputs = (
        Quantized(groups, axis).eval(),
        (torch.randn(2, 6, 5, 4, generator=torch.Generator().manual_seed(1)),),
    )
    artifact = qcomp.compile(torch.export.export(model, inputs))
    computed = {row["op"]: row["compute"] for row in artifact.report()["ops"]}
    assert computed["nn.conv_transpose2d"] == "i8"
    distance = np.abs(artifact(*inputs).numpy().astype(int) - model(*inputs).numpy())
    assert distance.max() <= 1 and distance.sum() <= max(1, distance.size // 1000)


def test_scales_per_input_channel_stay_reals():
    model, inputs = Quantized(1, 0).eval(), (torch.randn(2, 6, 5, 4),)
    artifact = qcomp.compile(torch.export.export(model, inputs))
    row = next(row for row in artifact.report()["ops"] if row["op"] == "nn.conv_transpose2d")
    assert row["compute"] == "f32" and "weight is not quantized per channel" in (row["reason"] or "")
    distance = np.abs(artifact(*inputs).numpy().astype(int) - model(*inputs).numpy())
    assert distance.max() <= 1 and distance.sum() <= max(1, distance.size // 1000)


@pytest.mark.parametrize("groups", [1, 2])
def test_batch_norms_fold(groups: int):
    torch.manual_seed(groups)
    norm = torch.nn.BatchNorm2d(6)
    norm.register_buffer("running_mean", torch.randn(6))
    norm.register_buffer("running_var", torch.rand(6) + 0.5)
    model = torch.nn.Sequential(torch.nn.ConvTranspose2d(4, 6, 3, 2, groups=groups), norm).eval()
    inputs = (torch.randn(2, 4, 5, 3),)
    artifact = qcomp.compile(torch.export.export(model, inputs))
    assert [row["op"] for row in artifact.report()["ops"]] == ["nn.conv_transpose2d"]
    torch.testing.assert_close(artifact(*inputs), model(*inputs), rtol=1e-5, atol=1e-5)
