# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small transformers, a ConvNeXt block, an audio net and squeeze-and-excitation: from torch to C, close to eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import three_way

from qcomp.frontend import from_torch
from qcomp.interpreter import interpret
from qcomp.transforms.pipeline import run_passes

torch: Any = pytest.importorskip("torch")
tn, functional = torch.nn, torch.nn.functional


class Block(tn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = tn.ModuleList([tn.LayerNorm(width), tn.LayerNorm(width)])
        self.qkv, self.out = tn.Linear(width, 3 * width), tn.Linear(width, width)
        self.wide, self.narrow = tn.Linear(width, 4 * width), tn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, tokens, width = x.shape
        parts = self.qkv(self.norms[0](x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))


class Encoder(tn.Module):
    """Tokens in, a class and the first token out."""

    def __init__(self):
        super().__init__()
        self.embedding, self.place = tn.Embedding(97, 48), tn.Parameter(torch.randn(1, 17, 48) * 0.1)
        self.blocks, self.last = tn.Sequential(Block(48, 4), Block(48, 3)), tn.Linear(48, 5)

    def forward(self, tokens: Any) -> Any:
        x = self.blocks(self.embedding(tokens) + self.place)
        return self.last(x.mean(1)), torch.tanh(x[:, 0])


class Vision(tn.Module):
    """Patches, a class token, attention."""

    def __init__(self):
        super().__init__()
        self.patches, self.token = tn.Conv2d(3, 48, 8, 8), tn.Parameter(torch.randn(1, 1, 48))
        self.block, self.last = Block(48, 3), tn.Linear(48, 10)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.last(self.block(x)[:, 0])


class ConvNext(tn.Module):
    """A block whose linears run over channels."""

    def __init__(self):
        super().__init__()
        self.stem, self.depthwise = tn.Conv2d(3, 24, 4, 4), tn.Conv2d(24, 24, 7, padding=3, groups=24)
        self.norm, self.wide, self.narrow = tn.LayerNorm(24), tn.Linear(24, 96), tn.Linear(96, 24)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrow(functional.gelu(self.wide(y), approximate="tanh")).permute(0, 3, 1, 2)
        return (x + y).mean((2, 3))


class Audio(tn.Module):
    """Convolutions in one dimension."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = tn.Conv1d(5, 24, 9, stride=2, padding=4), tn.BatchNorm1d(24)
        self.depthwise, self.point = tn.Conv1d(24, 24, 5, padding=2, groups=24), tn.Conv1d(24, 40, 1)

    def forward(self, x: Any) -> Any:
        x = functional.silu(self.depthwise(torch.relu(self.norm(self.first(x)))))
        return torch.softmax(self.point(x).mean(-1), -1)


class Excitation(tn.Module):
    """Squeeze and excitation as in MobileNetV3 and EfficientNet."""

    def __init__(self):
        super().__init__()
        self.first, self.depthwise = tn.Conv2d(3, 16, 3, 2, 1), tn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.squeeze, self.excite = tn.Conv2d(16, 4, 1), tn.Conv2d(4, 16, 1)

    def forward(self, x: Any) -> Any:
        x = functional.hardswish(self.depthwise(functional.silu(self.first(x))))
        scale = functional.hardsigmoid(self.excite(torch.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        return functional.leaky_relu(x * scale, 0.1).amax((2, 3))


INPUTS: dict[type[Any], Any] = {
    Encoder: lambda: torch.randint(0, 97, (2, 17)),
    Vision: lambda: torch.randn(2, 3, 32, 32),
    ConvNext: lambda: torch.randn(2, 3, 32, 32),
    Audio: lambda: torch.randn(2, 5, 64),
    Excitation: lambda: torch.randn(1, 3, 31, 29),
}


@pytest.mark.parametrize("network", INPUTS, ids=lambda network: network.__name__)
def test_close_to_eager(network: type[Any]) -> None:
    torch.manual_seed(0)
    model, x = network().eval(), INPUTS[network]()
    with torch.no_grad():
        expected = model(x)
        module = from_torch(torch.export.export(model, (x,)))
    run_passes(module, "O1,O2")
    three_way.check(module, x.numpy(), relative=1e-5)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, eager in zip(interpret(module, x.numpy()), expected, strict=True):
        np.testing.assert_allclose(ours, eager.numpy(), rtol=1e-4, atol=1e-5)
