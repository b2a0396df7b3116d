# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Axes of weights, folding, sharing."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from cases.base import Coded, Grid, Holder, Tensors, case, normal, seeded

Built = tuple[nn.Module, Tensors]


@case("microsoft/onnxruntime#19694", "codes", accumulates=True)
def transposed_convolution_axis() -> Built:
    """The channels of a transposed convolution's weight are on axis 1; scales were taken along axis 0."""
    first, last = Grid(0.04, -11), Grid(0.2, 5)
    model = Holder(
        lambda m, x: last.codes(
            functional.conv_transpose2d(first.rounded(x), m.weight(), m.bias, 2, padding=1, output_padding=1)
        ),
        weight=Coded((4, 6, 3, 3), [0.02, 0.001, 0.06, 0.004, 0.0005, 0.013], axis=1),
        bias=normal(6, seed=8),
    )
    return model.eval(), (normal(2, 4, 5, 7),)


@case("SonySemiconductorSolutions/mct-model-optimization#907", "fp32")
def grouped_transposed_convolution_with_batch_norm() -> Built:
    """A batch norm folded into a transposed convolution with groups, along the wrong axis."""
    model = nn.Sequential(nn.ConvTranspose2d(6, 9, (3, 2), 2, groups=3), nn.BatchNorm2d(9))
    return seeded(model), (normal(2, 6, 4, 5),)


@case("pytorch/pytorch#197539", "fp32")
def batch_norm_on_one_of_two_uses() -> Built:
    """A weight is shared by two uses, one with batch norm: folding it there changed the other."""
    parts = {"conv": nn.Conv2d(3, 4, 3, padding=1), "norm": nn.BatchNorm2d(4)}
    model = Holder(lambda m, x, y: (m.conv(y), m.norm(m.conv(x))), **parts)
    return seeded(model), (normal(1, 3, 6, 5), normal(1, 3, 6, 5, seed=2))


@case("pytorch/executorch#6894", "pt2e")
def second_reader_before_the_activation() -> Built:
    """A convolution fused with its relu has another reader, which then saw clamped values."""

    def run(m: Any, x: torch.Tensor) -> Tensors:
        y = m.conv(x)
        return y.mean((2, 3)), torch.relu(y)

    model = Holder(run, conv=nn.Conv2d(3, 5, 3))
    return seeded(model), (normal(2, 3, 6, 7),)


@case("pytorch/pytorch#142035", "pt2e")
def embedding_tied_to_logits() -> Built:
    """One table is read by an embedding and by a linear layer."""
    words, logits = nn.Embedding(13, 5), nn.Linear(5, 13, bias=False)
    logits.weight = words.weight
    model = Holder(lambda m, ids: m.logits(torch.sigmoid(m.words(ids))), words=words, logits=logits)
    return seeded(model), (torch.tensor([[12, 0, 7, 7], [1, 2, 12, 4]]),)


@case("microsoft/onnxruntime#12800", "codes", accumulates=True)
def scales_through_a_transpose() -> Built:
    """A weight with scales on axis 0 is transposed; the axis did not move along."""
    grid = Grid(0.03, 2)
    weight = Coded((6, 4), [0.02, 0.4, 0.007, 1.0, 0.05, 0.0009])
    model = Holder(lambda m, x: grid.rounded(x) @ m.weight().transpose(0, 1), weight=weight)
    return model.eval(), (normal(3, 4),)


@case("apple/coremltools#2831", "codes", accumulates=True)
def constant_on_the_left_of_a_matmul() -> Built:
    """The constant operand stands on the left, and its scales run along its rows."""
    grid, last = Grid(0.025, -6), Grid(0.5, 9)
    weight = Coded((5, 4), [0.03, 0.4, 0.002, 0.01, 0.11])
    model = Holder(lambda m, x: last.codes(torch.matmul(m.weight(), grid.rounded(x))), weight=weight)
    return model.eval(), (normal(2, 4, 7),)


@case("microsoft/onnxruntime#24815", "pt2e")
def one_output_feature() -> Built:
    """Bias and scales have one element and were taken for scalars."""
    return seeded(nn.Linear(7, 1)), (normal(5, 7),)


@case("Tencent/ncnn#1304", "pt2e")
def groups_that_are_not_depthwise() -> Built:
    """Scales were indexed by group and not by channel."""
    return seeded(nn.Conv2d(6, 8, (3, 2), padding=1, groups=2)), (normal(1, 6, 5, 6),)


@case("pytorch/pytorch#104590", "pt2e")
def one_dequantize_for_two_convolutions() -> Built:
    """A value is read by two convolutions and an addition."""

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        y = m.first(x)
        return y + m.left(y) + m.right(y)

    parts = {"first": nn.Conv2d(3, 4, 1), "left": nn.Conv2d(4, 4, 3, padding=1), "right": nn.Conv2d(4, 4, 1)}
    return seeded(Holder(run, **parts)), (normal(1, 3, 5, 4),)
