# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding, pooling, resizing."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from cases.base import Coded, Grid, Holder, Tensors, case, normal, seeded

Built = tuple[nn.Module, Tensors]


@case("pytorch/executorch#20517", "pt2e")
def same_padding_of_an_even_kernel() -> Built:
    """padding='same' of an even kernel is not symmetric; with a relu on top it failed."""
    return seeded(nn.Sequential(nn.Conv2d(2, 3, (2, 4), padding="same"), nn.ReLU())), (normal(1, 2, 6, 7),)


@case("apache/tvm#13364", "codes", accumulates=True)
def border_of_a_zero_point() -> Built:
    """Padding means real zero, the code of which is the zero point."""
    first, last = Grid.unsigned(0.03, 91), Grid.unsigned(0.25, 117)
    weight = Coded((4, 3, 3, 3), [0.012, 0.004, 0.03, 0.009])

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        return last.codes(functional.conv2d(first.rounded(x), m.weight(), m.bias, padding=2))

    return Holder(run, weight=weight, bias=normal(4)).eval(), (normal(1, 3, 5, 6),)


@case("pytorch/pytorch#28260", "codes")
def average_that_counts_padding() -> Built:
    """Padding counts in the mean, as real zero and not as code 0."""
    grid = Grid.unsigned(0.03, 120)
    model = Holder(lambda m, x: grid.codes(functional.avg_pool2d(grid.rounded(x), (3, 2), 2, 1)))
    return model.eval(), (normal(2, 3, 6, 5) + 0.8,)


@case("apache/tvm#18594", "fp32")
def last_window_in_the_padding() -> Built:
    """With ceil_mode a window may not start in the padding behind the image."""
    return nn.AvgPool2d(2, 2, 1, ceil_mode=True).eval(), (normal(1, 2, 13, 15),)


@case("microsoft/onnxruntime#15446", "fp32")
def maximum_of_negative_numbers() -> Built:
    """Padding of a three-dimensional max pool with ceil_mode never wins."""
    return nn.MaxPool3d(3, 2, 1, ceil_mode=True).eval(), (-normal(2, 2, 4, 6, 5).abs() - 0.5,)


@case("apache/tvm#3581", "codes")
def mean_of_integers() -> Built:
    """Means that end in .5 and .75, of both signs, rounded and not cut off."""
    grid = Grid(1.0)
    quads = [(1, 1, 1, 3), (1, 2, 2, 2), (-1, -2, -2, -2), (-1, -1, -1, -3), (3, 3, 4, 4), (-3, -3, -4, -4)]
    image = torch.tensor([[[q[0], q[1]], [q[2], q[3]]] for q in quads]).permute(1, 0, 2).reshape(1, 1, 2, -1).float()
    return Holder(lambda m, x: grid.codes(functional.avg_pool2d(grid.rounded(x), 2))).eval(), (image,)


@case("pytorch/pytorch#58668", "pt2e")
def mean_keeps_dimensions() -> Built:
    """A mean over negative dimensions that keeps them."""
    model = Holder(lambda m, x: m.conv(x).mean((-1, -2), keepdim=True), conv=nn.Conv2d(4, 3, 1))
    return seeded(model), (normal(2, 4, 5, 3),)


@case("microsoft/onnxruntime#21319", "codes")
def resize_is_done_on_reals() -> Built:
    """Bilinear resize between dequantize and quantize may not be done on codes."""
    grid = Grid(0.75, 3)

    def run(m: Any, x: torch.Tensor) -> Tensors:
        y = grid.rounded(x)
        smooth = functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return grid.codes(functional.interpolate(y, size=(3, 7), mode="nearest")), grid.codes(smooth)

    return Holder(run).eval(), (normal(1, 2, 2, 3) * 9,)
