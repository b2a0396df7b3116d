# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole networks in bfloat16, float16 and float64: C beside eager torch, both measured by the network in float64."""

from __future__ import annotations

import copy
from collections.abc import Callable

import deep
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import qcomp

UNITS = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float64: 2.0**-53}


class Encoder(nn.Module):
    """A block of BERT: embeddings, attention with a mask, gelu, layer norms, a pooled head."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 48), nn.Embedding(16, 48)
        self.norm, self.first, self.second = nn.LayerNorm(48), nn.LayerNorm(48), nn.LayerNorm(48)
        self.qkv, self.out = nn.Linear(48, 144), nn.Linear(48, 48)
        self.wide, self.narrow, self.head = nn.Linear(48, 112), nn.Linear(112, 48), nn.Linear(48, 5)

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.words(words) + self.places(torch.arange(words.shape[1])))
        batch, length, size = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, 4, size // 4).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, mask[:, None, None, :])
        x = self.first(x + self.out(attended.transpose(1, 2).reshape(batch, length, size)))
        x = self.second(x + self.narrow(F.gelu(self.wide(x))))
        return torch.softmax(self.head(torch.tanh(x[:, 0])), -1)


class Decoder(nn.Module):
    """Two blocks of a language model: rotary places, causal attention, RMS norms, gated silu, a tied head."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(96, 64)
        self.norms = nn.ModuleList(nn.RMSNorm(64, eps=1e-5) for _ in range(5))
        self.qkv = nn.ModuleList(nn.Linear(64, 192, bias=False) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(64, 64, bias=False) for _ in range(2))
        self.gate = nn.ModuleList(nn.Linear(64, 2 * 80, bias=False) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(80, 64, bias=False) for _ in range(2))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(8, dtype=torch.float64)
        angles = torch.arange(x.shape[2])[:, None] * 10000.0 ** (-steps / 8)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        left, right = x.chunk(2, -1)
        return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words)
        batch, length, size = x.shape
        for layer in range(2):
            inner = self.qkv[layer](self.norms[2 * layer](x)).reshape(batch, length, 3, 4, 16)
            q, k, v = inner.permute(2, 0, 3, 1, 4)
            attended = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
            x = x + self.out[layer](attended.transpose(1, 2).reshape(batch, length, size))
            value, gate = self.gate[layer](self.norms[2 * layer + 1](x)).chunk(2, -1)
            x = x + self.down[layer](value * F.silu(gate))
        return F.linear(self.norms[4](x), self.words.weight)


class Convolutions(nn.Module):
    """Plain, strided, depthwise and transposed convolutions, batch and group norms, pools."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 20, 3, stride=2, padding=1), nn.BatchNorm2d(20)
        self.depth, self.point = nn.Conv2d(20, 20, 3, padding=1, groups=20), nn.Conv2d(20, 24, 1)
        self.groups, self.up, self.head = nn.GroupNorm(4, 24), nn.ConvTranspose2d(24, 6, 2, stride=2), nn.Linear(24, 7)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.hardswish(self.norm(self.stem(image)))
        x = F.max_pool2d(F.silu(self.groups(self.point(self.depth(x)))), 2)
        return self.head(x.mean((2, 3))), self.up(F.avg_pool2d(x, 3, 1, 1))


class Recurrent(nn.Module):
    """A bidirectional LSTM of two layers, a GRU and a head."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.gru, self.head = nn.GRU(32, 10, batch_first=True), nn.Linear(10, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(self.head(self.gru(self.lstm(x)[0])[0][:, -1]), -1)


def words(*shape: int) -> torch.Tensor:
    return torch.randint(0, 50, shape, generator=torch.Generator().manual_seed(4))


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]] = {
    "encoder": (Encoder, (words(2, 9), numbers(2, 9) > -1)),
    "decoder": (Decoder, (words(2, 11),)),
    "convolutions": (Convolutions, (numbers(2, 3, 22, 26),)),
    "recurrent": (Recurrent, (numbers(3, 8, 12),)),
}


def network(name: str, dtype: torch.dtype) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    make, inputs = NETWORKS[name]
    torch.manual_seed(3)
    model = make()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
    cast = [value.to(dtype) if value.is_floating_point() else value for value in inputs]
    return model.to(dtype).eval(), tuple(cast)


def results(value: torch.Tensor | tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize(
    "dtype, target", deep.in_turn(UNITS, ["native", "generic"]), ids=lambda value: str(value).removeprefix("torch.")
)
@pytest.mark.parametrize("name", NETWORKS)
def test_not_further_from_the_truth_than_eager(name: str, dtype: torch.dtype, target: str) -> None:
    model, inputs = network(name, dtype)
    program = torch.export.export(model, inputs)
    artifact = qcomp.compile(program, target=target)
    with torch.no_grad():
        eager = results(model(*inputs))
        doubled = [value.double() if value.is_floating_point() else value for value in inputs]
        truth = results(copy.deepcopy(model).double()(*doubled))
    for found, want, exact in zip(results(artifact(*inputs)), eager, truth, strict=True):
        assert found.dtype == want.dtype == dtype and found.shape == want.shape
        size = exact.abs().max()
        if dtype == torch.float64:
            assert (found - want).abs().max() <= 2e-14 * size
            continue
        off, eager_off = ((side.double() - exact).abs().max() for side in (found, want))
        assert off <= 1.5 * eager_off + UNITS[dtype] * size
        assert (found.double() - want.double()).abs().max() <= off + eager_off


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=lambda dtype: str(dtype)[6:])
@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_weights_take_16_bits(name: str, dtype: torch.dtype) -> None:
    """But for the masks and tables that the program makes, and padding to whole registers."""
    model, inputs = network(name, dtype)
    held = sum(value.numel() * value.element_size() for value in model.parameters())
    tied = 96 * 64 * 2 if name == "decoder" else 0  # The head's rows lie as its kernel reads them, the words' as rows.
    artifact = qcomp.compile(model, target="generic", example_inputs=inputs)
    assert held <= artifact.report()["weight_bytes"] <= 1.1 * (held + tied) + 4096
