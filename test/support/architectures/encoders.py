# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transformers that see everything at once, and mixers."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from architectures.base import architecture, tokens

Pair = tuple[torch.Tensor, torch.Tensor]


class BertLayer(nn.Module):
    """Self-attention by matmul and softmax with an additive mask, post-norm."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.first, self.second = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape

        def split(part: torch.Tensor) -> torch.Tensor:
            return part.view(n, length, self.heads, -1).permute(0, 2, 1, 3)

        scores = split(self.query(x)) @ split(self.key(x)).transpose(-1, -2) / math.sqrt(width // self.heads) + mask
        found = (functional.softmax(scores, -1) @ split(self.value(x))).permute(0, 2, 1, 3).reshape(n, length, width)
        x = self.first(x + self.out(found))
        return self.second(x + self.narrow(functional.gelu(self.wide(x))))


class Bert(nn.Module):
    """Word, place and type embeddings, layers, a pooled first token."""

    ids: torch.Tensor

    def __init__(self, width: int = 24):
        super().__init__()
        self.words, self.places = nn.Embedding(31, width, 0), nn.Embedding(16, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([BertLayer(width, 3), BertLayer(width, 2)])
        self.pool = nn.Linear(width, 9)
        self.register_buffer("ids", torch.arange(16).expand((1, -1)))

    def forward(self, words: torch.Tensor, keep: torch.Tensor, types: torch.Tensor) -> Pair:
        mask = (1.0 - keep[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        places = self.places(self.ids[:, : words.shape[1]])
        x = self.norm(self.words(words) + places + self.types(types))
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pool(x[:, 0]))


def _keep() -> torch.Tensor:
    return (torch.arange(11)[None, :] < torch.tensor([[11], [7]])).long()


@architecture("bert", tokens(31, 2, 11), _keep, tokens(2, 2, 11), quantizers=("xnnpack",))
def bert() -> nn.Module:
    """An encoder with a padding mask."""
    return Bert()


class VisionTransformer(nn.Module):
    """Patches, class tokens, torch's own encoder layers, pre-norm."""

    def __init__(self, extra: int):
        super().__init__()
        self.patches, self.extra = nn.Conv2d(3, 20, 5, 5), extra
        self.token = nn.Parameter(torch.randn(1, extra, 20))
        self.place = nn.Parameter(torch.randn(1, 12 + extra, 20) * 0.1)
        self.norms = nn.ModuleList([nn.LayerNorm(20) for _ in range(3)])
        self.qkv, self.out = nn.Linear(20, 60), nn.Linear(20, 20)
        self.wide, self.narrow, self.heads = nn.Linear(20, 50), nn.Linear(50, 20), nn.ModuleList()
        self.heads.extend(nn.Linear(20, 6) for _ in range(extra))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.place
        n, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).reshape(n, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4).unbind(0)
        found = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(found.transpose(1, 2).reshape(n, length, width))
        x = x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))
        x = self.norms[2](x)
        logits = [head(x[:, index]) for index, head in enumerate(self.heads)]
        return torch.stack(logits).mean(0)


@architecture("vit", (2, 3, 20, 15), quantizers=("xnnpack",))
def vit() -> nn.Module:
    """Vision transformer with a class token."""
    return VisionTransformer(1)


@architecture("deit", (1, 3, 20, 15))
def deit() -> nn.Module:
    """With a distillation token; the mean of two heads."""
    return VisionTransformer(2)


@architecture("transformer_encoder", (2, 9, 24))
def transformer_encoder() -> nn.Module:
    """torch.nn.TransformerEncoderLayer."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(24, 3, 40, batch_first=True), 1, enable_nested_tensor=False)


class SwinBlock(nn.Module):
    """Attention inside windows of the shifted image, with a table of relative places and a mask at the seam."""

    apart: torch.Tensor
    mask: torch.Tensor

    def __init__(self, width: int, heads: int, size: tuple[int, int], window: int, shift: int):
        super().__init__()
        self.heads, self.window, self.shift, self.size = heads, window, shift, size
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
        y, x = torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
        places = torch.stack([y.flatten(), x.flatten()])
        apart = places[:, :, None] - places[:, None, :] + window - 1
        self.register_buffer("apart", apart[0] * (2 * window - 1) + apart[1])
        self.register_buffer("mask", self._mask())

    def _mask(self) -> torch.Tensor:
        image = torch.zeros(1, *self.size, 1)
        cuts = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for index, (rows, columns) in enumerate((a, b) for a in cuts for b in cuts):
            image[:, rows, columns] = index
        parts = self.windows(image).squeeze(-1)
        return torch.where(parts[:, None, :] != parts[:, :, None], -100.0, 0.0)

    def windows(self, x: torch.Tensor) -> torch.Tensor:
        """[windows, places, channels]."""
        n, h, w, c = x.shape
        x = x.view(n, h // self.window, self.window, w // self.window, self.window, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window**2, c)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """Attention inside each window."""
        count, length, width = x.shape
        q, k, v = self.qkv(x).view(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = self.table[self.apart.view(-1)].view(length, length, -1).permute(2, 0, 1)
        scores = q * (width // self.heads) ** -0.5 @ k.transpose(-2, -1) + bias.unsqueeze(0)
        masked = scores.view(-1, self.mask.shape[0], self.heads, length, length) + self.mask[None, :, None]
        return self.out((masked.softmax(-1).flatten(0, 1) @ v).transpose(1, 2).reshape(count, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, h, w, c = x.shape
        shifted = torch.roll(self.first(x), shifts=(-self.shift, -self.shift), dims=(1, 2))
        side = self.window
        found = self.attend(self.windows(shifted)).view(n, h // side, w // side, side, side, c)
        whole = found.permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        x = x + torch.roll(whole, shifts=(self.shift, self.shift), dims=(1, 2))
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


class Swin(nn.Module):
    """Patches, a shifted block, patch merging, a mean."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, 4)
        self.block = SwinBlock(12, 3, (6, 8), 2, 1)
        self.norm, self.merge, self.last = nn.LayerNorm(48), nn.Linear(48, 20, bias=False), nn.Linear(20, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block(self.patches(x).permute(0, 2, 3, 1))
        parts = [x[:, row::2, column::2, :] for column in (0, 1) for row in (0, 1)]
        return self.last(self.merge(self.norm(torch.cat(parts, -1))).mean((1, 2)))


@architecture("swin", (1, 3, 24, 32))
def swin() -> nn.Module:
    """Swin transformer with window shift."""
    return Swin()


class MixerBlock(nn.Module):
    """An MLP across tokens, an MLP across channels."""

    def __init__(self, length: int, width: int):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(length, 22), nn.GELU(), nn.Linear(22, length))
        self.along = nn.Sequential(nn.Linear(width, 34), nn.GELU(), nn.Linear(34, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.across(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.second(x))


class Mixer(nn.Module):
    """Patches and mixer blocks."""

    def __init__(self):
        super().__init__()
        self.patches, self.block = nn.Conv2d(3, 18, 5, 5), nn.Sequential(MixerBlock(12, 18), MixerBlock(12, 18))
        self.norm, self.last = nn.LayerNorm(18), nn.Linear(18, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block(self.patches(x).flatten(2).transpose(1, 2))
        return self.last(self.norm(x).mean(dim=1))


@architecture("mlp_mixer", (1, 3, 15, 20), quantizers=("xnnpack",))
def mlp_mixer() -> nn.Module:
    """MLP-Mixer."""
    return Mixer()
