# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registration and what all families share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Architecture:
    """How to make a model and its inputs. quantizers: those under which it is tested in int8."""

    name: str
    model: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    quantizers: tuple[str, ...] = ()


ARCHITECTURES: dict[str, Architecture] = {}


def architecture(
    name: str, *shapes: Sequence[int] | Callable[[], torch.Tensor], quantizers: Sequence[str] = ()
) -> Callable[[Callable[[], nn.Module]], Callable[[], nn.Module]]:
    """Registers a function that makes a model. shapes: of its inputs, normal numbers, or functions that make them."""

    def register(model: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        def inputs() -> Inputs:
            return tuple(shape() if callable(shape) else torch.randn(*shape) for shape in shapes)

        assert name not in ARCHITECTURES, name
        ARCHITECTURES[name] = Architecture(name, model, inputs, tuple(quantizers))
        return model

    return register


def build(name: str, seed: int = 0) -> tuple[nn.Module, Inputs]:
    """The model, in evaluation mode, and inputs for it."""
    entry = ARCHITECTURES[name]
    torch.manual_seed(seed)
    model = entry.model()
    _estimate(model, entry)
    torch.manual_seed(seed + 1)
    return model.eval().requires_grad_(False), entry.inputs()


def _estimate(model: nn.Module, entry: Architecture) -> None:
    """Weights of a sane size, then batch-norm statistics that are the mean over four batches."""
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    for module in model.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            nn.init.normal_(module.weight, std=math.sqrt(2.0 / module.weight[0].numel()))
    for module in norms:
        nn.init.uniform_(module.weight, 0.5, 1.5)
        nn.init.normal_(module.bias, std=0.2)
        module.momentum = None
    if norms:
        model.eval()
        for module in norms:
            module.train()
        with torch.no_grad():
            for _ in range(4):
                model(*entry.inputs())


def tokens(high: int, *shape: int) -> Callable[[], torch.Tensor]:
    """Integers from 0 to `high` - 1."""
    return lambda: torch.randint(0, high, shape)


class Sum(nn.Module):
    """The sum of what its parts make of the input; an activation on top."""

    def __init__(self, *parts: nn.Module, activation: nn.Module | None = None):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.activation = activation or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = self.parts[0](x)
        for part in list(self.parts)[1:]:
            total = total + part(x)
        return self.activation(total)


class Concat(nn.Module):
    """What its parts make of the input, one behind the other along channels."""

    def __init__(self, *parts: nn.Module):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([part(x) for part in self.parts], 1)


def unit(
    inputs: int, outputs: int, kernel: int | tuple[int, int] = 3, stride: int = 1, groups: int = 1,
    activation: nn.Module | None = None, dilation: int = 1,
) -> nn.Sequential:  # fmt: skip
    """Convolution that keeps the size, batch norm, activation (relu unless given)."""
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel
    padding = (sides[0] // 2 * dilation, sides[1] // 2 * dilation)
    conv = nn.Conv2d(inputs, outputs, sides, stride, padding, dilation, groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU() if activation is None else activation)


def linear_unit(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution and batch norm."""
    return unit(inputs, outputs, kernel, stride, groups, nn.Identity())


def head(features: int, classes: int = 7) -> nn.Sequential:
    """Global average pooling and a linear layer."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, classes))


class Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels: int, hidden: int, activation: nn.Module, gate: nn.Module):
        super().__init__()
        self.path = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, hidden, 1), activation, nn.Conv2d(hidden, channels, 1), gate
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.path(x)


def shuffled(x: torch.Tensor, groups: int) -> torch.Tensor:
    """Channel shuffle."""
    n, c, h, w = x.shape
    return x.reshape(n, groups, c // groups, h, w).transpose(1, 2).reshape(n, c, h, w)


class Lambda(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)
