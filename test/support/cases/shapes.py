# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joins and splits."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from cases.base import Holder, Tensors, case, normal, seeded

Built = tuple[nn.Module, Tensors]


@case("alibaba/TinyNeuralNetwork#354", "pt2e")
def joined_ranges() -> Built:
    """Parts whose ranges differ by a thousand are put side by side."""
    parts = {"left": nn.Conv2d(3, 2, 1), "right": nn.Conv2d(3, 4, 1)}
    model = Holder(lambda m, x: torch.cat([m.left(x) * 1000.0, m.right(x)], dim=-3), **parts)
    return seeded(model), (normal(1, 3, 4, 5),)


@case("microsoft/onnxruntime#13478", "pt2e")
def softmax_over_any_dimension() -> Built:
    """Not only the last one."""

    def run(m: Any, x: torch.Tensor) -> Tensors:
        y = m.conv(x)
        return torch.softmax(y, -2), torch.softmax(y, 1), torch.softmax(y, 0)

    return seeded(Holder(run, conv=nn.Conv2d(3, 4, 1))), (normal(2, 3, 5, 6) * 3,)


@case("pytorch/pytorch#87069", "pt2e")
def unequal_parts() -> Built:
    """A split into parts of different size, one of which nobody reads."""

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        first, _, last = torch.split(x, [2, 3, 1], dim=1)
        return m.left(first) + m.right(last)

    return seeded(Holder(run, left=nn.Conv2d(2, 3, 1), right=nn.Conv2d(1, 3, 1))), (normal(1, 6, 4, 3),)
