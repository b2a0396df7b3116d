# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks on sound."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from architectures.base import Lambda, architecture, head, unit


class ConformerBlock(nn.Module):
    """Half feed-forward, attention, gated convolution module, half feed-forward."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(5)])
        self.feed = nn.ModuleList(
            [nn.Sequential(nn.Linear(width, 40), nn.SiLU(), nn.Linear(40, width)) for _ in range(2)]
        )
        self.point = nn.Conv1d(width, 2 * width, 1)
        self.depth = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.batch, self.last = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.5 * self.feed[0](self.norms[0](x))
        y = self.norms[1](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y = functional.glu(self.point(self.norms[2](x).transpose(1, 2)), dim=1)
        x = x + self.last(functional.silu(self.batch(self.depth(y)))).transpose(1, 2)
        x = x + 0.5 * self.feed[1](self.norms[3](x))
        return self.norms[4](x)


class Conformer(nn.Module):
    """Two-dimensional subsampling, blocks, log probabilities."""

    def __init__(self):
        super().__init__()
        self.sample = nn.Sequential(nn.Conv2d(1, 6, 3, 2), nn.ReLU(), nn.Conv2d(6, 6, 3, 2), nn.ReLU())
        self.into, self.block, self.last = nn.Linear(6 * 4, 18), ConformerBlock(18, 3), nn.Linear(18, 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.sample(x.unsqueeze(1))
        n, c, t, f = x.size()
        x = self.block(self.into(x.transpose(1, 2).contiguous().view(n, t, c * f)))
        return functional.log_softmax(self.last(x), dim=-1)


@architecture("conformer", (1, 43, 19))
def conformer() -> nn.Module:
    """Speech recognition with attention and convolution."""
    return Conformer()


class Wav2Vec(nn.Module):
    """Strided convolutions over samples, group norm first, a grouped convolution for places."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(1, 12, 10, 5, bias=False), nn.GroupNorm(12, 12), nn.GELU())
        self.rest = nn.Sequential(nn.Conv1d(12, 12, 3, 2, bias=False), nn.GELU(), nn.Conv1d(12, 12, 2, 2), nn.GELU())
        self.norm, self.project = nn.LayerNorm(12), nn.Linear(12, 16)
        self.place = nn.Conv1d(16, 16, 8, padding=4, groups=4)
        self.last = nn.Linear(16, 9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-7)
        x = self.project(self.norm(self.rest(self.first(x.unsqueeze(1))).transpose(1, 2)))
        place = functional.gelu(self.place(x.transpose(1, 2))[..., :-1])
        return self.last(x + place.transpose(1, 2))


@architecture("wav2vec", (2, 397))
def wav2vec() -> nn.Module:
    """The convolutional front of wav2vec 2."""
    return Wav2Vec()


class CausalBlock(nn.Module):
    """Two dilated convolutions that see the past only, and a residual."""

    def __init__(self, inputs: int, outputs: int, dilation: int):
        super().__init__()
        self.cut = 2 * dilation
        self.first = nn.Conv1d(inputs, outputs, 3, padding=self.cut, dilation=dilation)
        self.second = nn.Conv1d(outputs, outputs, 3, padding=self.cut, dilation=dilation)
        self.side = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x)[:, :, : -self.cut].contiguous())
        y = torch.relu(self.second(y)[:, :, : -self.cut].contiguous())
        return torch.relu(y + self.side(x))


@architecture("tcn", (2, 5, 37), quantizers=("xnnpack",))
def tcn() -> nn.Module:
    """Temporal convolutional network; the last step is classified."""
    blocks = [CausalBlock(5, 10, 1), CausalBlock(10, 10, 2), CausalBlock(10, 14, 4)]
    return nn.Sequential(*blocks, Lambda(lambda x: x[:, :, -1]), nn.Linear(14, 4))


class WaveNet(nn.Module):
    """Gated dilated convolutions with residuals; what skips is summed."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 8, 1)
        self.gated = nn.ModuleList([nn.Conv1d(8, 16, 2, dilation=2**index) for index in range(3)])
        self.back = nn.ModuleList([nn.Conv1d(8, 8, 1) for _ in range(3)])
        self.skip = nn.ModuleList([nn.Conv1d(8, 12, 1) for _ in range(3)])
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(12, 12, 1), nn.ReLU(), nn.Conv1d(12, 9, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, total = self.first(x), 0
        for index, (gated, back, skip) in enumerate(zip(self.gated, self.back, self.skip, strict=True)):
            left, right = gated(functional.pad(x, (2**index, 0))).chunk(2, dim=1)
            y = torch.tanh(left) * torch.sigmoid(right)
            total = total + skip(y)
            x = x + back(y)
        return self.last(total)


@architecture("wavenet", (1, 1, 41))
def wavenet() -> nn.Module:
    """WaveNet."""
    return WaveNet()


@architecture("ds_cnn", (1, 1, 31, 10), quantizers=("xnnpack", "x86"))
def ds_cnn() -> nn.Module:
    """Keyword spotting on features."""
    stem = nn.Sequential(nn.Conv2d(1, 16, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(16), nn.ReLU())
    return nn.Sequential(stem, unit(16, 16, 3, groups=16), unit(16, 20, 1), unit(20, 20, 3, groups=20), head(20, 12))
