# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks as people export them with dynamic sizes: decoders, taggers, images of any size, masks, states."""

from __future__ import annotations

from collections.abc import Callable

import torch
from dynamic_models import Sample
from torch import nn
from torch.export import Dim
from torch.nn import functional as F


def seeded(*sizes: int) -> torch.Generator:
    return torch.Generator().manual_seed(sum(31**place * size for place, size in enumerate(sizes)) % 2**31)


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(*shape))


def tokens(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=seeded(*shape))


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




class Up(nn.Module):
    """A U-net's way down and up with a transposed convolution, for sizes that are multiples of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 10, 3, stride=2, padding=1)
        self.c, self.up = nn.Conv2d(10, 12, 2, stride=2), nn.ConvTranspose2d(12, 10, 2, stride=2)
        self.up2, self.last = nn.ConvTranspose2d(20, 8, 4, stride=2, padding=1), nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.relu(self.a(x))
        b = torch.relu(self.b(a))
        c = torch.relu(self.c(b))
        d = torch.cat([torch.relu(self.up(c)), b], 1)
        return torch.sigmoid(self.last(torch.cat([torch.relu(self.up2(d)), a], 1)))

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(17)
        h, w = Dim("h", min=1, max=16), Dim("w", min=1, max=16)
        return Sample(
            Up().eval(), {"x": {2: 4 * h, 3: 4 * w}}, ((2, 3), (1, 1), (7, 2), (9, 1)),
            lambda h, w: (noise(1, 3, 4 * h, 4 * w),),
        )  # fmt: skip


class ResNet(nn.Module):
    """A residual network with a global average pool."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.a, self.norm2 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.b, self.norm3 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.down, self.skip = nn.Conv2d(16, 24, 3, stride=2, padding=1), nn.Conv2d(16, 24, 1, stride=2)
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(24, 5)
        for norm in (self.norm1, self.norm2, self.norm3):
            nn.init.uniform_(norm.running_var, 0.5, 2)  # pyright: ignore[reportArgumentType]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm1(self.first(x)))
        y = torch.relu(self.norm2(self.a(x)))
        x = torch.relu(self.norm3(self.b(y)) + x)
        x = torch.relu(self.down(x) + self.skip(x))
        return self.head(self.pool(x).flatten(1))

    @staticmethod
    def sample(image: bool) -> Sample:
        torch.manual_seed(18)
        model = ResNet().eval()
        if image:
            dims = {0: Dim("n", min=0, max=40), 2: Dim("h", min=3, max=96), 3: Dim("w", min=3, max=96)}
            sizes = ((2, 12, 14), (1, 3, 3), (0, 7, 3), (2, 4, 7), (7, 33, 3), (33, 9, 10))
            return Sample(model, {"x": dims}, sizes, lambda n, h, w: (noise(n, 3, h, w),))
        sizes = ((2,), (0,), (1,), (7,), (33,))
        return Sample(model, {"x": {0: Dim("n", min=0, max=64)}}, sizes, lambda n: (noise(n, 3, 9, 10),))





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
    "u-net": Up.sample,
    "resnet-batch": lambda: ResNet.sample(False),
    "resnet-image": lambda: ResNet.sample(True),
    "masked-mean": MaskedMean.sample,
}
