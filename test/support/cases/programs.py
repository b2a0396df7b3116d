# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signatures, in-place writes, types, control flow, and programs that nothing was done to."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from cases.base import Holder, Tensors, case, normal, seeded

Built = tuple[nn.Module, Tensors]


@case(
    "pytorch/pytorch#133653", "pt2e",
    probes=lambda: [(normal(size, 3, 6, 5, seed=size),) for size in (2, 5, 8)],
    options={"dynamic_shapes": ({0: torch.export.Dim("batch", min=2, max=32)},)},
)  # fmt: skip
def symbolic_batch() -> Built:
    """The batch stays a symbol through a flatten behind a pool."""
    layers = [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)]
    return seeded(nn.Sequential(*layers)), (normal(3, 3, 6, 5),)


@case("microsoft/onnxruntime#7674", "pt2e")
def input_as_output() -> Built:
    """An input is returned twice, another is not read."""
    model = Holder(lambda m, x, unused: (x, x, m.conv(x)), conv=nn.Conv2d(2, 3, 1))
    return seeded(model), (normal(1, 2, 3, 4), normal(5))


@case("pytorch/executorch#22159", "pt2e")
def residual_in_place() -> Built:
    """add_ and relu_ on the result of a convolution; its input stays as it was."""

    def run(m: Any, x: torch.Tensor) -> Tensors:
        y = m.conv(x)
        y += x
        return x + 0, functional.relu(y, inplace=True)

    return seeded(Holder(run, conv=nn.Conv2d(3, 3, 3, padding=1))), (normal(1, 3, 5, 4),)


@case("pytorch/pytorch#103681", "fp32")
def dropout_does_nothing() -> Built:
    """Dropout in evaluation mode, also in place and with probability 1."""
    parts = {"first": nn.Linear(5, 4), "drop": nn.Dropout(0.4, inplace=True)}
    model = Holder(lambda m, x: functional.dropout(m.drop(m.first(x)), 1.0, training=False), **parts)
    return seeded(model), (normal(3, 5),)


@case("pytorch/pytorch#127076", "fp32")
def numbers_beside_integers() -> Built:
    """A Python number leaves an int32 tensor int32, unless it is divided."""

    def run(m: Any, x: torch.Tensor) -> Tensors:
        return x - 3, x / 4, (x * 5).to(torch.int64) // 3, x >= 0, 2 - x

    return Holder(run).eval(), (torch.tensor([-7, -1, 0, 2, 6], dtype=torch.int32),)


@case("pytorch/pytorch#140323", "pt2e", probes=lambda: [(normal(2, 4).abs(),), (-normal(2, 4).abs(),)])
def layers_in_branches() -> Built:
    """A condition on data, layers in both branches."""

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: m.left(y) + 1, lambda y: m.right(y), (x,))

    return seeded(Holder(run, left=nn.Linear(4, 3), right=nn.Linear(4, 3))), (normal(2, 4).abs(),)


@case("pytorch/pytorch#160095", "pt2e")
def something_was_quantized() -> Built:
    """A quantizer that silently does nothing; the share of integer work shows it."""
    return seeded(nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 2, 1))), (normal(1, 2, 6, 5),)
