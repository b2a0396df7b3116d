# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks that make images."""

from __future__ import annotations

import torch
from torch import nn

from architectures.base import Sum, architecture, linear_unit, unit


@architecture("espcn", (1, 1, 14, 17), quantizers=("x86",))
def espcn() -> nn.Module:
    """Super-resolution by pixel shuffle."""
    layers = [nn.Conv2d(1, 12, 5, padding=2), nn.Tanh(), nn.Conv2d(12, 8, 3, padding=1), nn.Tanh()]
    return nn.Sequential(*layers, nn.Conv2d(8, 9, 3, padding=1), nn.PixelShuffle(3))


@architecture("srresnet", (1, 3, 9, 11))
def srresnet() -> nn.Module:
    """Residual blocks with PReLU, pixel shuffle."""
    block = nn.Sequential(unit(10, 10, activation=nn.PReLU()), linear_unit(10, 10, 3))
    body = Sum(nn.Sequential(Sum(block, nn.Identity()), linear_unit(10, 10, 3)), nn.Identity())
    up = [nn.Conv2d(10, 40, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(10)]
    return nn.Sequential(nn.Conv2d(3, 10, 9, padding=4), nn.PReLU(), body, *up, nn.Conv2d(10, 3, 9, padding=4))


@architecture("autoencoder", (3, 45), quantizers=("xnnpack",))
def autoencoder() -> nn.Module:
    """Fully connected with batch norm, to 5 features and back."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((45, 24), (24, 5), (5, 24)):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(24, 45))


class VaeDecoder(nn.Module):
    """Group norm, silu, attention over pixels, nearest resize, as in latent diffusion."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(4, 12, 3, padding=1), nn.GroupNorm(3, 12, eps=1e-6)
        self.q, self.k, self.v, self.out = (nn.Conv2d(12, 12, 1) for _ in range(4))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2.0, mode="nearest"), nn.Conv2d(12, 9, 3, padding=1))
        self.last = nn.Sequential(nn.GroupNorm(3, 9), nn.SiLU(), nn.Conv2d(9, 3, 3, padding=1))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        x = self.first(z / 0.18215)
        y = self.norm(x)
        n, c, h, w = y.shape
        q = self.q(y).reshape(n, c, h * w).permute(0, 2, 1)
        weights = torch.softmax(torch.bmm(q, self.k(y).reshape(n, c, h * w)) * c**-0.5, dim=2)
        found = torch.bmm(self.v(y).reshape(n, c, h * w), weights.permute(0, 2, 1)).reshape(n, c, h, w)
        return (self.last(self.up(x + self.out(found))) / 2 + 0.5).clamp(0, 1)


@architecture("vae_decoder", (1, 4, 7, 6))
def vae_decoder() -> nn.Module:
    """Decoder of a variational autoencoder."""
    return VaeDecoder()


@architecture("dcgan", (2, 10, 1, 1))
def dcgan() -> nn.Module:
    """Transposed convolutions with batch norm."""
    return nn.Sequential(
        nn.ConvTranspose2d(10, 16, (3, 4), bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.ConvTranspose2d(16, 10, 4, 2, 1, bias=False), nn.BatchNorm2d(10), nn.ReLU(True),
        nn.ConvTranspose2d(10, 3, 3, 2, 1, output_padding=1), nn.Tanh(),
    )  # fmt: skip


@architecture("stylenet", (1, 3, 15, 18))
def stylenet() -> nn.Module:
    """Style transfer: reflection padding, instance norm, resize and convolution."""

    def layer(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
        return nn.Sequential(nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride))

    norm = nn.InstanceNorm2d(12, affine=True)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    block = nn.Sequential(layer(12, 12, 3), nn.InstanceNorm2d(12), nn.ReLU(), layer(12, 12, 3))
    return nn.Sequential(
        layer(3, 8, 9), nn.InstanceNorm2d(8, affine=True), nn.ReLU(), layer(8, 12, 3, 2), norm, nn.ReLU(),
        Sum(block, nn.Identity()), nn.Upsample(scale_factor=2, mode="nearest"), layer(12, 3, 3),
    )  # fmt: skip
