# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks for phones, and ConvNeXt."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from architectures.base import Excite, Sum, architecture, head, linear_unit, unit

Activation = Callable[[], nn.Module]


def inverted(
    inputs: int, hidden: int, outputs: int, stride: int, activation: Activation, kernel: int = 3,
    excite: nn.Module | None = None,
) -> nn.Module:  # fmt: skip
    """Expand, depthwise, squeeze and excite, project; a residual where the shape stays."""
    parts = [
        unit(inputs, hidden, 1, activation=activation()),
        unit(hidden, hidden, kernel, stride, hidden, activation()),
        *([excite] if excite else []),
        linear_unit(hidden, outputs),
    ]
    path = nn.Sequential(*parts)
    return Sum(path, nn.Identity()) if stride == 1 and inputs == outputs else path


@architecture("mobilenet_v1", (1, 3, 25, 18), quantizers=("x86",))
def mobilenet_v1() -> nn.Module:
    """Depthwise and pointwise convolutions."""
    layers = [unit(3, 8, 3, 2)]
    for inputs, outputs, stride in ((8, 12, 1), (12, 20, 2), (20, 28, 1)):
        layers += [unit(inputs, inputs, 3, stride, inputs), unit(inputs, outputs, 1)]
    return nn.Sequential(*layers, head(28))


@architecture("mobilenet_v2", (2, 3, 19, 26), quantizers=("xnnpack", "x86"))
def mobilenet_v2() -> nn.Module:
    """Inverted residuals with relu6."""
    blocks = [inverted(8, 20, 10, 2, nn.ReLU6), inverted(10, 30, 10, 1, nn.ReLU6), inverted(10, 26, 14, 2, nn.ReLU6)]
    return nn.Sequential(unit(3, 8, 3, 2, activation=nn.ReLU6()), *blocks, head(14))


@architecture("mobilenet_v3", (1, 3, 22, 19), quantizers=("xnnpack",))
def mobilenet_v3() -> nn.Module:
    """Hardswish, squeeze and excitation with hardsigmoid, kernels of 5."""
    blocks = [
        inverted(8, 16, 8, 1, nn.ReLU, excite=Excite(16, 6, nn.ReLU(), nn.Hardsigmoid())),
        inverted(8, 22, 12, 2, nn.Hardswish, 5, Excite(22, 7, nn.ReLU(), nn.Hardsigmoid())),
    ]
    last = [unit(12, 18, 1, activation=nn.Hardswish()), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    stem = unit(3, 8, 3, 2, activation=nn.Hardswish())
    return nn.Sequential(stem, *blocks, *last, nn.Linear(18, 9), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(9, 5))


@architecture("efficientnet", (1, 3, 23, 20), quantizers=("x86",))
def efficientnet() -> nn.Module:
    """Silu, squeeze and excitation with sigmoid."""
    blocks = [
        inverted(8, 8, 6, 1, nn.SiLU, excite=Excite(8, 2, nn.SiLU(), nn.Sigmoid())),
        inverted(6, 36, 10, 2, nn.SiLU, 5, Excite(36, 3, nn.SiLU(), nn.Sigmoid())),
        inverted(10, 30, 10, 1, nn.SiLU, 5, Excite(30, 4, nn.SiLU(), nn.Sigmoid())),
    ]
    stem, last = unit(3, 8, 3, 2, activation=nn.SiLU()), unit(10, 16, 1, activation=nn.SiLU())
    return nn.Sequential(stem, *blocks, last, head(16))


@architecture("mnasnet", (1, 3, 27, 17), quantizers=("xnnpack",))
def mnasnet() -> nn.Module:
    """Inverted residuals with relu and kernels of 3 and 5."""
    blocks = [inverted(6, 18, 9, 2, nn.ReLU), inverted(9, 27, 9, 1, nn.ReLU, 5)]
    return nn.Sequential(unit(3, 6, 3, 2), *blocks, head(9))


class Ghost(nn.Module):
    """Half of the channels are made from the other half by a depthwise convolution."""

    def __init__(self, inputs: int, outputs: int, activation: nn.Module):
        super().__init__()
        half = -(-outputs // 2)
        self.first, self.cheap = unit(inputs, half, 1, activation=activation), unit(half, half, 3, 1, half, activation)
        self.outputs = outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        return torch.cat([first, self.cheap(first)], 1)[:, : self.outputs, :, :]


@architecture("ghostnet", (1, 3, 21, 24), quantizers=("xnnpack",))
def ghostnet() -> nn.Module:
    """Ghost bottlenecks; an odd number of channels cuts one off."""
    keep = Sum(nn.Sequential(Ghost(8, 17, nn.ReLU()), Ghost(17, 8, nn.Identity())), nn.Identity())
    down = nn.Sequential(Ghost(8, 20, nn.ReLU()), linear_unit(20, 20, 3, 2, 20), Ghost(20, 12, nn.Identity()))
    return nn.Sequential(unit(3, 8, 3, 2), keep, down, head(12))


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of an image."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """Depthwise 7x7, layer norm, linears over channels, scaled, added."""

    def __init__(self, channels: int):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.wide, self.narrow = nn.Linear(channels, 3 * channels), nn.Linear(3 * channels, channels)
        self.gamma = nn.Parameter(torch.rand(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.gamma * self.narrow(nn.functional.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


@architecture("convnext", (1, 3, 25, 21))
def convnext() -> nn.Module:
    """Patches, a block, a step down, a block."""
    stem = [nn.Conv2d(3, 10, 4, 4), ChannelNorm(10)]
    down = [ChannelNorm(10), nn.Conv2d(10, 14, 2, 2)]
    return nn.Sequential(*stem, ConvNextBlock(10), *down, ConvNextBlock(14), head(14))
