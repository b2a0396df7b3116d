# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs whose files are damaged: small, and together with every part that a reader looks at. Needs torch."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Embedding, norms, softmax; tied, strided and lifted tensors; a symbolic batch."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.mixed = nn.Linear(6, 18)
        self.norm = nn.LayerNorm(6)
        self.strided = nn.Parameter(torch.randn(6, 9).t()[1:7])

    def forward(self, tokens: torch.Tensor) -> Any:
        x = self.words(tokens)
        query, key, value = self.mixed(self.norm(x)).split(6, -1)
        weights = torch.softmax(query @ key.transpose(1, 2) * 0.4, -1)
        y = functional.gelu(weights @ value @ self.strided) + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        return {"all": y, "last": (y[:, -1] @ self.words.weight.t(), tokens.shape[0])}


class Branch(nn.Module):
    """Control flow, nested arguments, a keyword, a buffer that is written."""

    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, parts: dict[str, Any], *, scale: float = 2.0) -> Any:
        a, (b,) = parts["a"], parts["b"]
        self.count.add_(1)
        chosen = torch.cond(a.sum() > 0, lambda x: (x * 2,), lambda x: (x - 1,), (b,))[0]  # pyright: ignore
        return chosen * scale + self.count, None


def quantized() -> Any:
    """A convolution net as convert_pt2e leaves it, spelled out: quantize, dequantize, codes as weights."""
    pt2e: Any = importlib.import_module("torchao.quantization.pt2e.quantize_pt2e")
    xnnpack: Any = importlib.import_module("torchao.testing.pt2e._xnnpack_quantizer")
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(48, 5)
    ).eval()
    inputs = (torch.randn(1, 2, 6, 8),)
    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    quantizer = xnnpack.XNNPACKQuantizer().set_global(config)
    prepared = pt2e.prepare_pt2e(torch.export.export(net, inputs).module(), quantizer)
    prepared(*inputs)
    return torch.export.export(pt2e.convert_pt2e(prepared), inputs)


def programs() -> Iterator[tuple[str, Any]]:
    """The exported programs with their names."""
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    yield "linear", torch.export.export(nn.Linear(3, 2).eval(), (torch.randn(4, 3),))
    tokens = torch.arange(20).reshape(4, 5) % 11
    batch = {"tokens": {0: torch.export.Dim("b", min=1, max=64)}}
    yield "attention", torch.export.export(Attention().eval(), (tokens,), dynamic_shapes=batch)
    parts = {"a": torch.randn(2), "b": (torch.randn(3),)}
    yield "branch", torch.export.export(Branch().eval(), (parts,), {"scale": 1.5})
    block = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2), nn.BatchNorm2d(3), nn.Hardswish(), nn.AdaptiveAvgPool2d(1))
    program: Any = torch.export.export(block.eval(), (torch.randn(1, 2, 7, 9),))
    yield "block", program.run_decompositions()
    yield "quantized", quantized()
