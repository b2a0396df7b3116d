# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A network of the size of BERT-base, written with torch alone: 12 layers of width 768, 109 million parameters."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, POSITIONS, WIDTH, HEADS, HIDDEN, LAYERS = 30522, 512, 768, 12, 3072, 12


class Attention(nn.Module):
    """Self-attention spelled out."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        query, key, value = (
            part(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        mixed = torch.softmax(scores, -1) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Layer(nn.Module):
    """Attention and two linear layers, each with a residual and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norms[0](x + self.attention(x))
        return self.norms[1](x + self.down(functional.gelu(self.up(x))))


class Bert(nn.Module):
    """Token numbers of shape (batch, length) to the pooled state of the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions, self.kinds = (nn.Embedding(n, WIDTH) for n in (VOCABULARY, POSITIONS, 2))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pool = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1])
        x = self.norm(self.words(tokens) + self.positions(places) + self.kinds(torch.zeros_like(tokens)))
        for layer in self.layers:
            x = layer(x)
        return torch.tanh(self.pool(x[:, 0]))


def bert() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The network in evaluation mode, and inputs of 128 tokens."""
    return Bert().eval().requires_grad_(False), (torch.arange(128).reshape(1, 128) % VOCABULARY,)
