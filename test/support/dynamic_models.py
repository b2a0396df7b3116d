# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small networks with symbolic sizes, and the sizes to run them at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F


@dataclass(frozen=True)
class Sample:
    """A model, its dynamic_shapes, the sizes to try, and inputs for sizes."""

    model: nn.Module
    dims: dict[str, Any]
    sizes: tuple[tuple[int, ...], ...]
    inputs: Callable[..., tuple[torch.Tensor, ...]]


def noise(*shape: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))),)


class ConvNet(nn.Module):
    """Convolution, batch norm, pools, depthwise, residual, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 20, 3, padding=1), nn.BatchNorm2d(20)
        self.depthwise = nn.Conv2d(20, 20, 3, padding=1, groups=20)
        self.point, self.last = nn.Conv2d(20, 20, 1), nn.Linear(20 * 16, 5)
        with torch.no_grad():
            self.norm.running_mean.normal_()  # pyright: ignore[reportOptionalMemberAccess]
            self.norm.running_var.uniform_(0.5, 2)  # pyright: ignore[reportOptionalMemberAccess]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        z = self.point(torch.relu(self.depthwise(y))) + y
        z = F.avg_pool2d(z, 3, 1, 1)
        return self.last(z.flatten(1)), F.adaptive_avg_pool2d(z, 1).flatten(1)

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(7)
        sizes = ((0,), (1,), (2,), (7,), (33,))
        return Sample(ConvNet().eval(), {"x": {0: Dim("batch", min=0, max=64)}}, sizes, lambda b: noise(b, 3, 8, 8))


class Attention(nn.Module):
    """Position embedding, layer norm, two heads of attention, residual, gelu; sizes used as numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.norm = nn.Embedding(64, 24), nn.LayerNorm(24)
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        b, s, _ = x.shape
        y = self.norm(x + self.places(torch.arange(s)))
        q, k, v = (part.view(b, s, 2, 12).transpose(1, 2) for part in self.qkv(y).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-1, -2) * 12**-0.5, -1)
        y = F.gelu(y + self.out((weights @ v).transpose(1, 2).reshape(b, s, 24)))
        return y, y[:, 0] / s, torch.cat([y, x], 1), y.mean(1)

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(8)
        sizes = ((0, 3), (1, 1), (2, 7), (7, 2), (2, 33), (33, 1))
        return Sample(
            Attention().eval(), {"x": {0: Dim.AUTO, 1: Dim("s", max=64)}}, sizes, lambda b, s: noise(b, s, 24)
        )


MODELS: dict[str, Callable[[], Sample]] = {"convnet": ConvNet.sample, "attention": Attention.sample}
