# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers: saturation, ties, clamps, tables; observers that saw odd data."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from cases.base import Coded, Grid, Holder, Tensors, case, normal, seeded

Built = tuple[nn.Module, Tensors]


@case("microsoft/onnxruntime#16105", "codes", accumulates=True)
def pairs_of_products_saturate() -> Built:
    """255 * 127 twice does not fit 16 bits; the sum is exact in 32."""
    grid, last = Grid.unsigned(0.02), Grid(1.5, -100)
    weight = Coded((3, 10), [0.02, 0.03, 0.01], fill=127)
    weight.codes[1, ::2] = -127
    model = Holder(lambda m, x: last.codes(functional.linear(grid.rounded(x), m.weight())), weight=weight)
    return model.eval(), (torch.full((2, 10), 5.1),)


@case("microsoft/onnxruntime#21000", "pt2e")
def bias_beyond_its_integers() -> Built:
    """Tiny weights make a tiny scale of the bias, which then does not fit 32 bits."""
    conv = nn.Conv2d(3, 2, 1)
    seeded(conv)
    with torch.no_grad():
        conv.weight *= 1e-9
        conv.bias = nn.Parameter(torch.tensor([-6.5, 3.25]))
    return conv, (normal(1, 3, 4, 2),)


@case("microsoft/onnxruntime#32132", "codes")
def sums_that_are_ties() -> Built:
    """Scales are powers of two and every sum lies in the middle of two codes: half to even."""
    left, right, last = Grid(0.5), Grid(0.25), Grid(1.0)
    model = Holder(lambda m, x, y: last.codes(left.rounded(x) + right.rounded(y)))
    steps = torch.arange(-9, 10).float()
    return model.eval(), (steps, torch.full_like(steps, -0.5))


@case("microsoft/onnxruntime#25045", "codes")
def quantize_of_ties() -> Built:
    """Half to even, before the zero point is added."""
    grids = [Grid(4.0), Grid(4.0, 1), Grid(4.0, -3)]
    return Holder(lambda m, x: tuple(grid.codes(x) for grid in grids)).eval(), (torch.arange(-11, 12, 2).float() * 2,)


@case("pytorch/executorch#21013", "pt2e")
def clamp_after_clamp() -> Built:
    """Limits that follow one another compose, also when they do not meet."""

    def run(m: Any, x: torch.Tensor) -> Tensors:
        y = torch.clamp(m.conv(x) * 2.5, -1.0, 1.5)
        return torch.clamp(y, 2.0, 4.0), functional.relu6(y)

    return seeded(Holder(run, conv=nn.Conv2d(2, 3, 1))), (normal(1, 2, 4, 3),)


@case("microsoft/onnxruntime#11660", "codes", accumulates=True)
def relu_before_symmetric_codes() -> Built:
    """Codes on both sides of zero do not do what the relu does."""
    first, last = Grid(0.03, 4), Grid(0.07)
    weight = Coded((3, 2, 3, 3), [0.013, 0.02, 0.004])
    model = Holder(lambda m, x: last.codes(torch.relu(functional.conv2d(first.rounded(x), m.weight()))), weight=weight)
    return model.eval(), (normal(1, 2, 6, 5),)


@case("pytorch/executorch#18873", "codes")
def table_of_255_codes() -> Built:
    """A sigmoid of codes from -127 to 127: the first code is not -128."""
    grid, last = Grid(0.07, 0, -127, 127), Grid.unsigned(1 / 256)
    return Holder(lambda m, x: last.codes(torch.sigmoid(grid.rounded(x)))).eval(), (torch.linspace(-10, 10, 277),)


@case("pytorch/executorch#21717", "codes")
def factors_and_scales() -> Built:
    """A factor is part of the scale only where it is one positive number."""
    grid, lasts = Grid(0.04, -17), (Grid(0.03, 2), Grid(0.07, 5), Grid(0.09))

    def run(m: Any, x: torch.Tensor) -> Tensors:
        y = grid.rounded(x)
        return lasts[0].codes(y * 0.6180339), lasts[1].codes(y * -1.25), lasts[2].codes(y * m.factors)

    return Holder(run, factors=torch.tensor([-0.5, 2.0, 1.0, 0.0])).eval(), (normal(5, 4),)


@case("pytorch/pytorch#39239", "pt2e")
def calibrated_on_zeros() -> Built:
    """An observer of nothing but zeros still needs a scale above 0."""
    return seeded(nn.Linear(4, 3)), (torch.zeros(3, 4),)


@case("pytorch/pytorch#100051", "pt2e")
def mask_of_the_lowest_float() -> Built:
    """An attention mask of the lowest float32 is added before a softmax."""

    def run(m: Any, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        scores = m.query(x) @ m.key(x).transpose(-2, -1)
        return torch.softmax(scores + torch.where(keep, 0.0, torch.finfo(torch.float32).min), -1)

    model = Holder(run, query=nn.Linear(5, 4), key=nn.Linear(5, 4))
    return seeded(model), (normal(2, 4, 5), torch.ones(4, 4).tril().bool())
