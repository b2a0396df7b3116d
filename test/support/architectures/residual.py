# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Residual networks."""

from __future__ import annotations

import torch
from torch import nn

from architectures.base import Excite, Sum, architecture, head, linear_unit, unit

BOTH = ("xnnpack", "x86")


def basic(inputs: int, outputs: int, stride: int = 1) -> Sum:
    """Two 3x3 convolutions and a shortcut."""
    path = nn.Sequential(unit(inputs, outputs, 3, stride), linear_unit(outputs, outputs, 3))
    return Sum(path, _shortcut(inputs, outputs, stride), activation=nn.ReLU())


def bottleneck(inputs: int, width: int, outputs: int, stride: int = 1, groups: int = 1, excite: bool = False) -> Sum:
    """1x1, 3x3 in groups, 1x1 and a shortcut."""
    gate = [Excite(width, 5, nn.ReLU(), nn.Sigmoid())] if excite else []
    path = nn.Sequential(
        unit(inputs, width, 1), unit(width, width, 3, stride, groups), *gate, linear_unit(width, outputs)
    )
    return Sum(path, _shortcut(inputs, outputs, stride), activation=nn.ReLU(inplace=True))


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    return nn.Identity() if stride == 1 and inputs == outputs else linear_unit(inputs, outputs, 1, stride)


@architecture("resnet_basic", (2, 3, 23, 17), quantizers=BOTH)
def resnet_basic() -> nn.Module:
    """As ResNet-18: stem with max pool, blocks, pool, linear."""
    stem = nn.Sequential(unit(3, 12, 7, 2), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(stem, basic(12, 12), basic(12, 20, 2), head(20))


@architecture("resnet_bottleneck", (1, 3, 21, 27), quantizers=("x86",))
def resnet_bottleneck() -> nn.Module:
    """As ResNet-50."""
    return nn.Sequential(unit(3, 8, 3, 2), bottleneck(8, 6, 24), bottleneck(24, 10, 40, 2), head(40))


@architecture("resnext", (1, 3, 19, 15), quantizers=("x86",))
def resnext() -> nn.Module:
    """Bottlenecks in groups."""
    return nn.Sequential(unit(3, 16, 3, 2), bottleneck(16, 12, 24, groups=4), bottleneck(24, 18, 30, 2, 3), head(30))


@architecture("wide_resnet", (2, 3, 13, 11))
def wide_resnet() -> nn.Module:
    """Pre-activation blocks, wide."""
    block = nn.Sequential(
        nn.BatchNorm2d(28), nn.ReLU(), nn.Conv2d(28, 28, 3, padding=1, bias=False), nn.BatchNorm2d(28), nn.ReLU(),
        nn.Dropout(0.3), nn.Conv2d(28, 28, 3, padding=1, bias=False),
    )  # fmt: skip
    stem = nn.Conv2d(3, 28, 3, padding=1, bias=False)
    return nn.Sequential(stem, Sum(block, nn.Identity()), nn.BatchNorm2d(28), nn.ReLU(), head(28))


@architecture("regnet", (1, 3, 21, 18), quantizers=("xnnpack",))
def regnet() -> nn.Module:
    """Groups of fixed width with squeeze and excitation (RegNetY)."""
    blocks = [bottleneck(12, 16, 16, 2, 2, excite=True), bottleneck(16, 24, 24, 2, 3, excite=True)]
    return nn.Sequential(unit(3, 12, 3, 2), *blocks, head(24))


class DenseLayer(nn.Module):
    """Batch norm, relu, convolution; its result goes behind its input."""

    def __init__(self, inputs: int, growth: int):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.conv(torch.relu(self.norm(x)))], 1)


@architecture("densenet", (2, 3, 18, 14), quantizers=("xnnpack",))
def densenet() -> nn.Module:
    """Two dense blocks with a transition."""
    transition = nn.Sequential(nn.BatchNorm2d(22), nn.ReLU(), nn.Conv2d(22, 11, 1, bias=False), nn.AvgPool2d(2))
    first = nn.Sequential(DenseLayer(10, 6), DenseLayer(16, 6))
    second = nn.Sequential(DenseLayer(11, 6), nn.BatchNorm2d(17), nn.ReLU())
    return nn.Sequential(nn.Conv2d(3, 10, 3, 1, 1, bias=False), first, transition, second, head(17))
