# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks as people export them with dynamic sizes: decoders, taggers, masks, states."""

from __future__ import annotations

from collections.abc import Callable

import torch
from dynamic_models import Sample
from symbolic_images import IMAGES, noise, tokens
from torch import nn
from torch.export import Dim
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer's layer: attention under a mask, or causal by flag."""

    def __init__(self, width: int, heads: int, by_flag: bool) -> None:
        super().__init__()
        self.heads, self.by_flag = heads, by_flag
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        b, s, width = x.shape
        q, k, v = (
            part.view(b, s, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, -1)
        )
        if self.by_flag:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Decoder(nn.Module):
    """Token and position embedding, causal layers, logits of the last token and of all."""

    def __init__(self, causal: str) -> None:
        super().__init__()
        self.causal = causal
        self.tokens, self.places = nn.Embedding(50, 24), nn.Embedding(64, 24)
        self.blocks = nn.ModuleList([Block(24, 2, causal == "flag") for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, 50, bias=False)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        s = ids.shape[1]
        x = self.tokens(ids) + self.places(torch.arange(s))
        mask = None
        if self.causal == "tril":
            mask = torch.tril(torch.ones(s, s, dtype=torch.bool))
        elif self.causal == "triu":
            mask = torch.triu(torch.full((s, s), float("-inf")), diagonal=1)
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x)
        return self.head(x[:, -1]), self.head(x)

    @staticmethod
    def sample(causal: str, auto: bool) -> Sample:
        torch.manual_seed(11)
        dims = {0: Dim.AUTO, 1: Dim.AUTO} if auto else {0: Dim("b", min=1, max=64), 1: Dim("s", min=1, max=64)}
        sizes = ((2, 7), (1, 1), (7, 2), (1, 33), (33, 2))
        return Sample(Decoder(causal).eval(), {"ids": dims}, sizes, lambda b, s: (tokens(50, b, s),))


class Cached(nn.Module):
    """A decoder's attention with its keys and values kept: a chunk of any length at a position."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, 24)
        self.qkv, self.head = nn.Linear(24, 72), nn.Linear(24, 50)
        self.register_buffer("keys", torch.zeros(1, 2, 40, 12))
        self.register_buffer("values", torch.zeros(1, 2, 40, 12))

    def forward(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        b, s = ids.shape
        x = self.tokens(ids)
        q, k, v = (part.view(b, s, 2, 12).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        self.keys[:, :, at] = k
        self.values[:, :, at] = v
        mask = torch.arange(40)[None, :] <= at[:, None]
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        return self.head(x + y.transpose(1, 2).reshape(b, s, 24))[:, -1]

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(12)
        s = Dim("s", min=1, max=40)
        sizes = ((7,), (1,), (2,), (1,), (33,))
        return Sample(
            Cached().eval(), {"ids": {1: s}, "at": {0: s}}, sizes,
            lambda s: (tokens(50, 1, s), torch.arange(s) + (40 - s) // 3),
        )  # fmt: skip


class CachedBatch(nn.Module):
    """One token for each of any number of sequences, whose caches a buffer of a most number holds."""

    memory: torch.Tensor
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.mix, self.head = nn.Embedding(50, 8), nn.Linear(8, 8), nn.Linear(8, 50)
        self.register_buffer("memory", torch.zeros(34, 5, 8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        b = ids.shape[0]
        x = self.tokens(ids)
        self.memory[torch.arange(b), at] = x
        self.calls.add_(1)
        y = torch.softmax((self.memory[:b] * x[:, None]).sum(-1), -1)
        return self.head(torch.relu(self.mix((self.memory[:b] * y[..., None]).sum(1)))) + self.calls

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(13)
        b = Dim("b", min=0, max=34)
        return Sample(
            CachedBatch().eval(), {"ids": {0: b}, "at": {0: b}}, ((2,), (0,), (1,), (7,), (33,)),
            lambda b: (tokens(50, b), tokens(5, b)),
        )  # fmt: skip


class Bert(nn.Module):
    """Words, segments and positions, two layers under a padding mask, a pooled and a full result."""

    positions: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds, self.places = nn.Embedding(50, 24), nn.Embedding(2, 24), nn.Embedding(64, 24)
        self.register_buffer("positions", torch.arange(64)[None], persistent=False)
        self.norm = nn.LayerNorm(24)
        self.layers = nn.ModuleList([Block(24, 3, False) for _ in range(2)])
        self.pool = nn.Linear(24, 24)

    def forward(self, ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b, s = ids.shape
        x = self.words(ids) + self.places(self.positions[:, :s]) + self.kinds(torch.zeros_like(ids))
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        mask = mask.expand(b, 1, s, s)
        for layer in self.layers:
            x = layer(x, mask)
        weights = attention_mask[..., None].to(x.dtype)
        mean = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.tanh(self.pool(x[:, 0])), mean

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(14)
        dims = {0: Dim("b", min=0, max=64), 1: Dim("s", min=1, max=64)}

        def inputs(b: int, s: int) -> tuple[torch.Tensor, ...]:
            mask = (torch.arange(s) < 1 + tokens(s, b, 1)).to(torch.int64)
            return tokens(50, b, s), mask

        sizes = ((2, 7), (1, 1), (0, 2), (7, 2), (2, 33), (33, 3))
        return Sample(Bert().eval(), {"ids": dims, "attention_mask": dims}, sizes, inputs)


class Tagger(nn.Module):
    """An LSTM in both directions, or a GRU, over sentences of any length."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 6)
        self.kind = kind
        if kind == "lstm":
            self.net: nn.Module = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        else:
            self.net = nn.GRU(6, 10, batch_first=True)
        self.head = nn.Linear(10, 4)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, state = self.net(self.words(ids))
        last = state[0] if self.kind == "lstm" else state
        tags = self.head(y)
        return tags.argmax(-1), torch.log_softmax(tags, -1) + last.sum()

    @staticmethod
    def sample(kind: str) -> Sample:
        torch.manual_seed(15)
        # torch unrolls time and fixes it.
        sizes = ((2,), (1,), (7,), (33,))
        return Sample(
            Tagger(kind).eval(), {"ids": {0: Dim("b", min=1, max=64)}}, sizes, lambda b: (tokens(50, b, 6),)
        )  # fmt: skip







class Lengths(nn.Module):
    """A mask made of lengths; attention pooling and scores under it."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.out = nn.Linear(6, 1), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mask = torch.arange(x.shape[1])[None, :] < lengths[:, None]
        score = self.score(x).squeeze(-1).masked_fill(~mask, float("-inf"))
        weights = torch.softmax(score, 1)
        last = x.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, 6)).squeeze(1)
        return self.out((weights[..., None] * x).sum(1)), mask, last

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(21)
        b = Dim("b", min=0, max=64)
        dims = {"x": {0: b, 1: Dim("s", min=1, max=64)}, "lengths": {0: b}}
        sizes = ((2, 7), (1, 1), (0, 2), (7, 2), (2, 33), (33, 3))
        return Sample(Lengths().eval(), dims, sizes, lambda b, s: (noise(b, s, 6), 1 + tokens(s, b)))


class MaskedMean(nn.Module):
    """Sentence embedding: the mean of what a mask keeps, normalized, compared all with all."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(50, 6), nn.Linear(6, 5)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = mask.unsqueeze(-1).expand(-1, -1, 6).float()
        mean = (self.words(ids) * kept).sum(1) / torch.clamp(kept.sum(1), min=1e-9)
        one = F.normalize(self.out(mean), dim=-1)
        return one, one @ one.T

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(22)
        dims = {0: Dim.AUTO, 1: Dim.AUTO}
        sizes = ((2, 7), (1, 1), (0, 2), (7, 2), (2, 33), (33, 3), (3, 0))
        return Sample(
            MaskedMean().eval(), {"ids": dims, "mask": dims}, sizes,
            lambda b, s: (tokens(50, b, s), tokens(2, b, s)),
        )  # fmt: skip


NETWORKS: dict[str, Callable[[], Sample]] = {
    "decoder-tril": lambda: Decoder.sample("tril", False),
    "decoder-triu": lambda: Decoder.sample("triu", False),
    "decoder-causal": lambda: Decoder.sample("flag", True),
    "bert": Bert.sample,
    "lstm": lambda: Tagger.sample("lstm"),
    "gru": lambda: Tagger.sample("gru"),
    "lengths": Lengths.sample,
    "masked-mean": MaskedMean.sample,
    **IMAGES,
}
STATEFUL: dict[str, Callable[[], Sample]] = {"prefill": Cached.sample, "batch": CachedBatch.sample}
