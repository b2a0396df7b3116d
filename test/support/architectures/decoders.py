# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transformers that see what came before."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from architectures.base import architecture, tokens


class GptBlock(nn.Module):
    """Pre-norm causal attention with one projection for all, and a GELU of tanh form."""

    causal: torch.Tensor

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("causal", torch.ones(16, 16).tril().bool().view(1, 1, 16, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        parts = self.qkv(self.first(x)).split(width, 2)
        q, k, v = (part.view(n, length, self.heads, -1).transpose(1, 2) for part in parts)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(~self.causal[:, :, :length, :length], float("-inf"))
        found = (functional.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(n, length, width)
        x = x + self.out(found)
        return x + self.narrow(functional.gelu(self.wide(self.second(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Learned places, blocks, logits by the tied embedding."""

    def __init__(self, width: int = 18):
        super().__init__()
        self.words, self.places = nn.Embedding(29, width), nn.Embedding(16, width)
        self.blocks, self.norm = nn.ModuleList([GptBlock(width, 3), GptBlock(width, 2)]), nn.LayerNorm(width)
        self.logits = nn.Linear(width, 29, bias=False)
        self.logits.weight = self.words.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places(torch.arange(0, words.size(1), device=words.device))
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x))


@architecture("gpt2", tokens(29, 2, 7))
def gpt2() -> nn.Module:
    """A decoder without cache, embedding and logits tied."""
    return Gpt()


class RmsNorm(nn.Module):
    """x over its root mean square, written out as in LLaMA."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def rotated(x: torch.Tensor) -> torch.Tensor:
    """The halves of the last dimension swapped, one negated."""
    left, right = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-right, left), dim=-1)


class LlamaBlock(nn.Module):
    """RMS norm, rotary places, keys and values shared by groups of heads, a gated MLP."""

    frequencies: torch.Tensor

    def __init__(self, width: int, heads: int, shared: int, head: int):
        super().__init__()
        self.heads, self.shared, self.head = heads, shared, head
        self.q, self.out = nn.Linear(width, heads * head, bias=False), nn.Linear(heads * head, width, bias=False)
        self.k, self.v = (nn.Linear(width, shared * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)
        self.first, self.second = RmsNorm(width), RmsNorm(width)
        self.register_buffer("frequencies", 1.0 / (1e4 ** (torch.arange(0, head, 2).float() / head)))

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        n, length, _ = x.shape
        angles = places[:, :, None].float() * self.frequencies
        angles = torch.cat((angles, angles), -1)[:, None]
        cos, sin = angles.cos(), angles.sin()
        y = self.first(x)
        q = self.q(y).view(n, length, self.heads, self.head).transpose(1, 2)
        k = self.k(y).view(n, length, self.shared, self.head).transpose(1, 2)
        v = self.v(y).view(n, length, self.shared, self.head).transpose(1, 2)
        q, k = q * cos + rotated(q) * sin, k * cos + rotated(k) * sin
        k, v = (part.repeat_interleave(self.heads // self.shared, dim=1) for part in (k, v))
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(n, length, -1))
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Blocks around a stream of tokens."""

    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(37, 20), nn.RMSNorm(20, eps=1e-5)
        self.blocks = nn.ModuleList([LlamaBlock(20, 4, 2, 6), LlamaBlock(20, 3, 1, 8)])
        self.logits = nn.Linear(20, 37, bias=False)

    def forward(self, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        x = self.words(words)
        for block in self.blocks:
            x = block(x, places)
        return self.logits(self.norm(x))


@architecture("llama", tokens(37, 2, 9), lambda: torch.arange(3, 12)[None].expand(2, -1).contiguous())
def llama() -> nn.Module:
    """RMS norm, rotary embedding, grouped queries, SwiGLU."""
    return Llama()


class T5Attention(nn.Module):
    """Unscaled attention with a learned bias by bucketed distance."""

    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.bias = nn.Embedding(8, heads)

    def buckets(self, queries: int, keys: int) -> torch.Tensor:
        """Near distances one bucket each, far ones by their logarithm."""
        apart = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
        far = torch.abs(apart) if not self.causal else -torch.min(apart, torch.zeros_like(apart))
        large = 4 + (torch.log(far.float() / 4) / math.log(16 / 4) * 4).to(torch.long)
        return torch.where(far < 4, far, torch.min(large, torch.full_like(large, 7)))

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        n, queries, width = x.shape
        keys = memory.shape[1]
        q, k, v = (
            layer(part).view(n, -1, self.heads, width // self.heads).transpose(1, 2)
            for layer, part in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        scores = torch.matmul(q, k.transpose(3, 2)) + self.bias(self.buckets(queries, keys)).permute(2, 0, 1)[None]
        if self.causal:
            scores = scores + torch.triu(torch.full((queries, keys), -1e9), diagonal=1)
        found = torch.matmul(scores.float().softmax(-1).type_as(scores), v)
        return self.out(found.transpose(1, 2).contiguous().view(n, queries, width))


class T5(nn.Module):
    """One encoder and one decoder layer."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.words = nn.Embedding(23, width)
        self.inner, self.own, self.cross = (
            T5Attention(width, 2, False), T5Attention(width, 4, True), T5Attention(width, 2, False)
        )  # fmt: skip
        self.norms = nn.ModuleList([RmsNorm(width) for _ in range(5)])
        self.wide, self.narrow = nn.Linear(width, 30, bias=False), nn.Linear(30, width, bias=False)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory = self.words(source)
        memory = memory + self.inner(self.norms[0](memory), self.norms[0](memory))
        memory = memory + self.narrow(torch.relu(self.wide(self.norms[1](memory))))
        x = self.words(target)
        x = x + self.own(self.norms[2](x), self.norms[2](x))
        x = x + self.cross(self.norms[3](x), memory)
        return torch.matmul(self.norms[4](x) * 16**-0.5, self.words.weight.t())


@architecture("t5", tokens(23, 2, 9), tokens(23, 2, 6))
def t5() -> nn.Module:
    """Encoder and decoder with relative bias."""
    return T5()
