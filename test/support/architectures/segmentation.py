# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One prediction per pixel."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from architectures.base import architecture, unit


class UNet(nn.Module):
    """Down, up, and what was there before behind it. Sizes that do not divide are cropped to the skip's."""

    def __init__(self, up: nn.Module):
        super().__init__()
        self.first, self.second, self.deep = unit(3, 8), unit(8, 12), unit(12, 18)
        self.up, self.join = up, unit(18 + 12, 12)
        self.last = nn.Conv2d(12 + 8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        second = self.second(functional.max_pool2d(first, 2))
        deep = self.deep(functional.max_pool2d(second, 2))
        joined = self.join(torch.cat([self.up(deep), second], 1))
        wide = functional.interpolate(joined, size=first.shape[2:], mode="nearest")
        return self.last(torch.cat([wide, first], 1))


@architecture("unet_transposed", (1, 3, 20, 28), quantizers=("xnnpack",))
def unet_transposed() -> nn.Module:
    """Up by a transposed convolution."""
    return UNet(nn.ConvTranspose2d(18, 18, 2, 2))


@architecture("unet_resize", (1, 3, 28, 20), quantizers=("x86",))
def unet_resize() -> nn.Module:
    """Up by bilinear resize and a convolution."""
    return UNet(nn.Sequential(nn.UpsamplingBilinear2d(scale_factor=2), nn.Conv2d(18, 18, 1)))


class Pyramid(nn.Module):
    """Atrous spatial pyramid pooling: dilated convolutions and the mean of the image side by side."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        rates = [unit(inputs, outputs, 1), *(unit(inputs, outputs, 3, dilation=rate) for rate in (2, 3, 5))]
        self.branches = nn.ModuleList(rates)
        self.mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(inputs, outputs, 1), nn.ReLU())
        self.project = unit(5 * outputs, 10, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [branch(x) for branch in self.branches]
        mean = functional.interpolate(self.mean(x), size=x.shape[-2:], mode="bilinear", align_corners=False)
        return self.project(torch.cat([*found, mean], 1))


class DeepLab(nn.Module):
    """A backbone, the pyramid, logits in the size of the image, and the class of each pixel."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(unit(3, 8, 3, 2), unit(8, 12, 3, 2), Pyramid(12, 6))
        self.last = nn.Conv2d(10, 5, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        found = self.last(self.body(x))
        logits = functional.interpolate(found, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return {"out": logits, "labels": logits.argmax(1)}


@architecture("deeplab", (1, 3, 33, 26))
def deeplab() -> nn.Module:
    """DeepLab v3."""
    return DeepLab()


class FeaturePyramid(nn.Module):
    """Top-down path with lateral connections; three results of different size."""

    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([unit(3, 8, 3, 2), unit(8, 12, 3, 2), unit(12, 16, 3, 2)])
        self.lateral = nn.ModuleList([nn.Conv2d(size, 10, 1) for size in (8, 12, 16)])
        self.smooth = nn.ModuleList([nn.Conv2d(10, 10, 3, padding=1) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        for step, lateral in zip(self.steps, self.lateral, strict=True):
            x = step(x)
            found.append(lateral(x))
        for index in (1, 0):
            above = functional.interpolate(found[index + 1], size=found[index].shape[-2:], mode="nearest")
            found[index] = found[index] + above
        return [smooth(level) for smooth, level in zip(self.smooth, found, strict=True)]


@architecture("fpn", (1, 3, 35, 27), quantizers=("xnnpack",))
def fpn() -> nn.Module:
    """Feature pyramid network on odd sizes."""
    return FeaturePyramid()
