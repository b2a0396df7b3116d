# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registration, and modules that hold codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch import nn

DECOMPOSED: Any = torch.ops.quantized_decomposed
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    """source: the report. oracle: "fp32", close to eager; "codes", the module holds quantize and dequantize and its
    codes are eager's; "pt2e", within a step of the graph of convert_pt2e. probes: more inputs. options: of export."""

    name: str
    source: str
    fault: str
    oracle: str
    build: Callable[[], tuple[nn.Module, Tensors]]
    probes: Callable[[], Sequence[Tensors]] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    accumulates: bool = False
    """Its codes come out of a sum of products: they may be one off in a place of a thousand."""


CASES: dict[str, Case] = {}
Build = Callable[[], tuple[nn.Module, Tensors]]


def case(source: str, oracle: str, **rest: Any) -> Callable[[Build], Build]:
    """Registers a function that builds a module and its inputs; its docstring is the fault."""

    def register(build: Build) -> Build:
        name = getattr(build, "__name__", "")
        CASES[name] = Case(name, source, (build.__doc__ or "").strip(), oracle, build, **rest)
        return build

    return register


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def seeded(model: nn.Module, seed: int = 3) -> nn.Module:
    """`model` in evaluation mode with random parameters and running statistics."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(0.0, 0.4, generator=generator)
        for name, value in model.named_buffers():
            if "running" in name:
                value.uniform_(0.3, 2.5, generator=generator)
    return model.eval()


@dataclass(frozen=True)
class Grid:
    """The parameters of a per-tensor quantize."""

    scale: float
    zero: int = 0
    low: int = -128
    high: int = 127
    dtype: torch.dtype = torch.int8

    @staticmethod
    def unsigned(scale: float, zero: int = 0) -> Grid:
        """Codes from 0 to 255."""
        return Grid(scale, zero, 0, 255, torch.uint8)

    def _arguments(self) -> tuple[Any, ...]:
        return self.scale, self.zero, self.low, self.high, self.dtype

    def codes(self, x: torch.Tensor) -> torch.Tensor:
        """`x` quantized."""
        return DECOMPOSED.quantize_per_tensor(x, *self._arguments())

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        """`x` quantized and back."""
        return DECOMPOSED.dequantize_per_tensor(self.codes(x), *self._arguments())


class Coded(nn.Module):
    """A constant held as int8 codes with a scale for each index of one axis; calling it dequantizes."""

    codes: torch.Tensor

    def __init__(self, shape: Sequence[int], scales: Sequence[float], axis: int = 0, fill: int | None = None):
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        codes = torch.randint(-127, 128, tuple(shape), generator=generator, dtype=torch.int8)
        self.register_buffer("codes", codes if fill is None else torch.full_like(codes, fill))
        self.register_buffer("scales", torch.tensor(scales))
        self.register_buffer("zeros", torch.zeros(len(scales), dtype=torch.int64))
        self.axis = axis

    def forward(self) -> torch.Tensor:
        return DECOMPOSED.dequantize_per_channel(self.codes, self.scales, self.zeros, self.axis, -127, 127, torch.int8)


class Holder(nn.Module):
    """Parts, and a function of them and the inputs."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module | torch.Tensor):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, nn.Module):
                self.add_module(name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self, *inputs)
