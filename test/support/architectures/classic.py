# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutional classifiers without residuals."""

from __future__ import annotations

import torch
from torch import nn

from architectures.base import Concat, Lambda, architecture, head, linear_unit, shuffled, unit


@architecture("vgg", (1, 3, 17, 22), quantizers=("x86",))
def vgg() -> nn.Module:
    """3x3 convolutions with batch norm, max pools, adaptive pool to 3x2, three linears."""
    features = nn.Sequential(unit(3, 8), unit(8, 10), nn.MaxPool2d(2), unit(10, 14), nn.MaxPool2d(2))
    linears = [nn.Linear(14 * 6, 20), nn.ReLU(True), nn.Dropout(), nn.Linear(20, 12), nn.ReLU(True), nn.Linear(12, 5)]
    return nn.Sequential(features, nn.AdaptiveAvgPool2d((3, 2)), nn.Flatten(), *linears)


@architecture("alexnet", (1, 3, 39, 35))
def alexnet() -> nn.Module:
    """Large kernels, overlapping pools, local response normalization."""
    features = nn.Sequential(
        nn.Conv2d(3, 12, 11, 4, 2), nn.ReLU(True), nn.LocalResponseNorm(5, k=2.0), nn.MaxPool2d(3, 2),
        nn.Conv2d(12, 16, 5, padding=2), nn.ReLU(True), nn.Conv2d(16, 10, 3, padding=1), nn.ReLU(True),
    )  # fmt: skip
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(40, 6))


@architecture("squeezenet", (1, 3, 25, 21), quantizers=("xnnpack",))
def squeezenet() -> nn.Module:
    """Fire modules, pools with ceil_mode, a convolution as classifier."""

    def fire(inputs: int, squeeze: int, expand: int) -> nn.Module:
        wide = Concat(
            nn.Sequential(nn.Conv2d(squeeze, expand, 1), nn.ReLU()),
            nn.Sequential(nn.Conv2d(squeeze, expand + 1, 3, padding=1), nn.ReLU()),
        )
        return nn.Sequential(nn.Conv2d(inputs, squeeze, 1), nn.ReLU(), wide)

    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    stem = [nn.Conv2d(3, 10, 3, 2), nn.ReLU(), pool]
    last = [nn.Conv2d(19, 6, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*stem, fire(10, 4, 7), pool, fire(15, 5, 9), *last)


class Inception(Concat):
    """Four branches of one block."""

    def __init__(self, inputs: int):
        super().__init__(
            unit(inputs, 5, 1),
            nn.Sequential(unit(inputs, 6, 1), unit(6, 9, (1, 5)), unit(9, 7, (5, 1))),
            nn.Sequential(unit(inputs, 4, 1), unit(4, 6, 3), unit(6, 6, 3)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(inputs, 3, 1)),
        )


@architecture("googlenet", (1, 3, 20, 23), quantizers=("xnnpack",))
def googlenet() -> nn.Module:
    """Two inception blocks around a pool."""
    return nn.Sequential(
        unit(3, 10, 5, 2), nn.MaxPool2d(3, 2, ceil_mode=True), Inception(10), nn.AvgPool2d(3, 1, 1), Inception(21),
        head(21),
    )  # fmt: skip


class ShuffleUnit(nn.Module):
    """One half of the channels goes through convolutions, then the halves are interleaved."""

    def __init__(self, channels: int):
        super().__init__()
        half = channels // 2
        self.path = nn.Sequential(unit(half, half, 1), linear_unit(half, half, 3, groups=half), unit(half, half, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, used = x.chunk(2, 1)
        return shuffled(torch.cat([kept, self.path(used)], 1), 2)


@architecture("shufflenet_v2", (1, 3, 22, 26), quantizers=("xnnpack",))
def shufflenet_v2() -> nn.Module:
    """A unit that halves the size and two that keep it."""
    left = nn.Sequential(linear_unit(8, 8, 3, 2, 8), unit(8, 9, 1))
    right = nn.Sequential(unit(8, 9, 1), linear_unit(9, 9, 3, 2, 9), unit(9, 9, 1))
    down = nn.Sequential(Concat(left, right), Lambda(lambda x: shuffled(x, 2)))
    last = [unit(18, 24, 1), Lambda(lambda x: x.mean([2, 3])), nn.Linear(24, 5)]
    return nn.Sequential(unit(3, 8, 3, 2), down, ShuffleUnit(18), ShuffleUnit(18), *last)
