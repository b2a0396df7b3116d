# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks for tests: seeded, in evaluation mode, with batch-norm statistics that fit their data.

`build(name)` gives the model, `example(name)` its inputs. Spatial sizes are small and uneven (height and width differ).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Inputs = tuple[torch.Tensor, ...]


def unit(
    inputs: int, outputs: int, kernel: int | tuple[int, int], stride: int = 1, groups: int = 1,
    activation: type[nn.Module] | None = nn.ReLU, padding: tuple[int, int] | None = None,
) -> nn.Sequential:  # fmt: skip
    """Convolution, batch norm and activation."""
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel
    around = padding or (sides[0] // 2, sides[1] // 2)
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, sides, stride, around, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class Residual(nn.Module):
    """A main path and a shortcut, added; the addition can be in place."""

    def __init__(self, path: nn.Module, shortcut: nn.Module, activate: bool = True, in_place: bool = False):
        super().__init__()
        self.path, self.shortcut, self.activate, self.in_place = path, shortcut, activate, in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.path(x)
        if self.in_place:
            y += self.shortcut(x)
            return functional.relu(y, inplace=True) if self.activate else y
        total = y + self.shortcut(x)
        return functional.relu(total) if self.activate else total


def basic_block(inputs: int, outputs: int, stride: int, in_place: bool = False) -> nn.Module:
    """Two 3x3 convolutions."""
    path = nn.Sequential(unit(inputs, outputs, 3, stride), unit(outputs, outputs, 3, activation=None))
    return Residual(path, _shortcut(inputs, outputs, stride), in_place=in_place)


def bottleneck(inputs: int, width: int, stride: int) -> nn.Module:
    """1x1, 3x3, 1x1 with four times the width."""
    path = nn.Sequential(
        unit(inputs, width, 1), unit(width, width, 3, stride), unit(width, 4 * width, 1, activation=None)
    )
    return Residual(path, _shortcut(inputs, 4 * width, stride))


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return unit(inputs, outputs, 1, stride, activation=None)


class Classifier(nn.Module):
    """A body, global average pooling and a linear layer."""

    def __init__(self, body: nn.Sequential, features: int, classes: int):
        super().__init__()
        self.body = body
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.flatten(self.pool(self.body(x)), 1))


def resnet(depths: tuple[int, ...], wide: bool) -> nn.Module:
    """ResNet-18 with (2, 2, 2, 2), ResNet-50 with (3, 4, 6, 3) and `wide`."""
    layers: list[nn.Module] = [unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for index in range(depth):
            stride = 2 if index == 0 and stage > 0 else 1
            layers.append(bottleneck(channels, width, stride) if wide else basic_block(channels, width, stride))
            channels = 4 * width if wide else width
    return Classifier(nn.Sequential(*layers), channels, 1000)


def resnet8(in_place: bool = False) -> nn.Module:
    """Three basic blocks for 32x32 images."""
    blocks = [basic_block(16, 16, 1, in_place), basic_block(16, 32, 2, in_place), basic_block(32, 64, 2, in_place)]
    return Classifier(nn.Sequential(unit(3, 16, 3), *blocks), 64, 10)


def mobilenet_v2() -> nn.Module:
    """Inverted residuals with relu6."""
    layers: list[nn.Module] = [unit(3, 32, 3, 2, activation=nn.ReLU6)]
    channels = 32
    plan = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, outputs, count, first in plan:
        for index in range(count):
            stride = first if index == 0 else 1
            hidden = channels * expansion
            parts = [unit(channels, hidden, 1, activation=nn.ReLU6)] if expansion > 1 else []
            parts.append(unit(hidden, hidden, 3, stride, hidden, nn.ReLU6))
            parts.append(unit(hidden, outputs, 1, activation=None))
            path = nn.Sequential(*parts)
            same = stride == 1 and channels == outputs
            layers.append(Residual(path, nn.Identity(), activate=False) if same else path)
            channels = outputs
    layers.append(unit(channels, 1280, 1, activation=nn.ReLU6))
    return Classifier(nn.Sequential(*layers), 1280, 1000)


def ds_cnn() -> nn.Module:
    """Keyword spotting on 49x10 features."""
    layers = [unit(1, 64, (10, 4), 2, padding=(5, 1))]
    for _ in range(4):
        layers += [unit(64, 64, 3, groups=64), unit(64, 64, 1)]
    return Classifier(nn.Sequential(*layers), 64, 12)


def mobilenet_v1() -> nn.Module:
    """Depthwise separable convolutions, a quarter of the width."""
    layers = [unit(3, 8, 3, 2)]
    channels = 8
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for outputs, stride in plan:
        layers += [unit(channels, channels, 3, stride, channels), unit(channels, outputs // 4, 1)]
        channels = outputs // 4
    return Classifier(nn.Sequential(*layers), channels, 2)


def autoencoder() -> nn.Module:
    """Fully connected, 640 to 8 and back."""
    sizes = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, 640))


class Golden(nn.Module):
    """The model whose quantization is known op by op: 11 quantize, 12 + 5 dequantize, 9,776 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = unit(3, 16, 3)
        self.block = Residual(nn.Sequential(unit(16, 16, 3), unit(16, 16, 3, activation=None)), nn.Identity())
        self.tail = unit(16, 32, 3)
        self.head = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block(functional.max_pool2d(self.stem(x), 2))
        x = functional.max_pool2d(self.tail(x), 2)
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "golden": (Golden, (8, 3, 16, 16)),
    "resnet8": (resnet8, (2, 3, 32, 24)),
    "resnet18": (lambda: resnet((2, 2, 2, 2), False), (1, 3, 64, 48)),
    "resnet50": (lambda: resnet((3, 4, 6, 3), True), (1, 3, 64, 48)),
    "mobilenet_v2": (mobilenet_v2, (1, 3, 64, 48)),
    "ds_cnn": (ds_cnn, (2, 1, 49, 10)),
    "mobilenet_v1": (mobilenet_v1, (1, 3, 64, 48)),
    "autoencoder": (autoencoder, (3, 640)),
}


def example(name: str, seed: int = 1) -> Inputs:
    """Inputs of the network `name`."""
    return (torch.randn(NETWORKS[name][1], generator=torch.Generator().manual_seed(seed)),)


def build(name: str, seed: int = 0) -> nn.Module:
    """The network `name` with seeded weights, in evaluation mode."""
    torch.manual_seed(seed)
    return settle(NETWORKS[name][0](), example(name, 7))


@cache
def exported(name: str) -> tuple[nn.Module, Inputs, torch.export.ExportedProgram]:
    """The network `name`, its inputs, and its (non-strict) export; made once, not to be changed."""
    model, inputs = build(name), example(name)
    return model, inputs, torch.export.export(model, inputs)


def settle(model: nn.Module, inputs: Inputs) -> nn.Module:
    """`model` with weights of a sane size and batch-norm statistics taken from one pass over `inputs`."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.normal_(module.weight, std=math.sqrt(2.0 / module.weight[0].numel()))
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.2)
            module.momentum = None
    model.train()
    with torch.no_grad():
        model(*(torch.cat([value] * 4) + 0.1 * torch.randn(4 * len(value), *value.shape[1:]) for value in inputs))
    model.eval()
    return model.requires_grad_(False)


def quantize(
    model: nn.Module, inputs: Inputs, quantizer: str = "xnnpack", strict: bool = True, dims: Any = None
) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:  # fmt: skip
    """`model` prepared and calibrated on `inputs`, and the same converted. dims: its dynamic_shapes."""
    import copy

    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    exported = torch.export.export(model, inputs, strict=strict, dynamic_shapes=dims)
    prepared = prepare_pt2e(exported.module(), make_quantizer(quantizer))
    with torch.no_grad():
        prepared(*inputs)
    return prepared, convert_pt2e(copy.deepcopy(prepared))


def make_quantizer(name: str, **options: bool) -> Any:
    """The quantizer ``xnnpack`` (per channel) or ``x86`` with its default configuration."""
    if name == "xnnpack":
        from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

        options = {"is_per_channel": True, **options}
        return xnnpack.XNNPACKQuantizer().set_global(xnnpack.get_symmetric_quantization_config(**options))
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    return x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config(**options))
