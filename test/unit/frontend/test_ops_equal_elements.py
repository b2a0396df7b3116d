# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and deviations of equal elements are exactly 0, in every float type, with static and symbolic sizes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import qcomp

T = torch.Tensor
NATIVE = torch.ops.aten.native_layer_norm


class Deviations(torch.nn.Module):
    """All that torch has of them, of a matrix of equal rows and an image of equal channels."""

    def forward(self, x: T, image: T) -> tuple[T, ...]:
        mean = NATIVE(x, (x.shape[1],), None, None, 1e-5)[1]
        return (
            F.layer_norm(x, (x.shape[1],)),
            *(x - mean, x - torch.var_mean(x, 1, keepdim=True)[1], x - torch.std_mean(x, 1, keepdim=True)[1]),
            *(x.var(1), x.std(1), torch.var_mean(x, 1)[0], torch.std_mean(x, 1, correction=0)[0]),
            *(image.var((0, 2, 3)), image.std((2, 3)), image.transpose(1, 3).var(1)),
            *(F.group_norm(image, 3), F.instance_norm(image), F.batch_norm(image, None, None, training=True)),
        )


class Training(torch.nn.Module):
    """A batch norm that updates its statistics."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(3)

    def forward(self, image: T) -> tuple[T, T]:
        variance = self.norm.running_var
        assert variance is not None
        return self.norm(image), variance * 1.0


def equal(dtype: torch.dtype) -> tuple[T, T]:
    values = [3.3, -7.7, 1e4 / 3, 1 / 3, 0.1, 2.0**-14, 6e4]
    values += [] if dtype == torch.float16 else [1e-45, 1e-38, 1e38, float(torch.finfo(torch.bfloat16).max)]
    x = torch.tensor(values, dtype=torch.float64).to(dtype)[:, None].repeat(1, 37)
    channels = torch.tensor([0.1, 1e4 / 3, -3.3], dtype=torch.float64).to(dtype)
    return x, channels[:, None, None].repeat(2, 1, 5, 7)


def bits(value: T) -> np.ndarray:
    return value.view(torch.int16).numpy().view(np.uint16) if value.dtype == torch.bfloat16 else value.numpy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_interpreted(dtype: torch.dtype) -> None:
    values = equal(dtype)
    program = torch.export.export(Deviations(), values)
    for number, found in enumerate(qcomp.interpret(qcomp.from_torch(program), *map(bits, values))):
        assert not found.any(), number


def test_symbolic_sizes() -> None:
    values = equal(torch.float32)
    sizes = {name: torch.export.Dim(name, min=2, max=64) for name in ("batch", "height", "width")}
    dims = (None, {0: sizes["batch"], 2: sizes["height"], 3: sizes["width"]})
    program = torch.export.export(Deviations(), values, dynamic_shapes=dims)
    artifact = qcomp.compile(program, target="generic", opt_level=1)
    module = qcomp.from_torch(program)
    for channels in (values[1], values[1].repeat(3, 1, 4, 1)[:5]):
        given = [bits(value) for value in (values[0], channels)]
        for number, found in enumerate((*artifact.run(given), *qcomp.interpret(module, *given))):
            assert not found.any(), number


def test_batch_norm_in_training() -> None:
    image = equal(torch.float32)[1]
    program = torch.export.export(Training(), (image,))
    normal, variance = qcomp.interpret(qcomp.from_torch(program), image.numpy())[:2]
    assert not normal.any()
    np.testing.assert_array_equal(variance, np.full(3, 0.9, np.float32))
