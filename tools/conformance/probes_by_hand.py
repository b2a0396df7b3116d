# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of ops that torch's operator samples do not reach, or reach only in forms that are not those of layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def _r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def _gradients(image: torch.Tensor) -> Iterator[Call]:
    all_of = [True, True, True]
    yield "aten._adaptive_avg_pool2d_backward.default", (_r(2, 3, 2, 3), image), {}
    pool = ([3, 2], [2, 2], [1, 0], False, True, None)
    yield "aten.avg_pool2d_backward.default", (_r(2, 3, 3, 3), image, *pool), {}
    steps = ([2, 1], [1, 0], [1, 2], False, [0, 0], 1)
    yield "aten.convolution_backward.default", (_r(2, 4, 3, 5), image, _r(4, 3, 3, 2), [4], *steps, all_of), {}
    codes = torch.tensor([[1, 5, 2], [4, 4, 0]])
    yield "aten.embedding_dense_backward.default", (_r(2, 3, 7), codes, 6, 2, False), {}
    rows, statistics = _r(2, 3, 7), (_r(2, 3, 1), _r(2, 3, 1).abs())
    yield "aten.native_layer_norm_backward.default", (rows, _r(2, 3, 7), [7], *statistics, _r(7), _r(7), all_of), {}
    groups = (_r(2, 2), _r(2, 2).abs(), _r(4), 2, 4, 15, 2, all_of)
    yield "aten.native_group_norm_backward.default", (_r(2, 4, 15), _r(2, 4, 15) * 2, *groups), {}


def _scalars() -> Iterator[Call]:
    whole, block = torch.arange(-7, 8).reshape(3, 5), _r(1, 2, 4, 5, 6)
    for name in ("and", "or", "xor"):
        yield f"aten.bitwise_{name}.Scalar", (whole, 6), {}
    yield "aten.gt.Scalar", (_r(3, 5), 0.25), {}
    yield "aten.fmod.Scalar", (_r(3, 5), 0.3), {}
    yield "aten.pow.Scalar", (1.5, _r(3, 5)), {}
    yield "aten.div.Scalar_mode", (_r(3, 5), 0.3), {"rounding_mode": "floor"}
    yield "aten.copy.default", (_r(3, 5), _r(5)), {}
    yield "aten.var.dim", (_r(3, 5), [1], False), {}
    yield "aten.scatter.value", (_r(3, 5), 1, torch.tensor([[0, 4, 2], [3, 1, 0]]), 0.5), {}
    yield "aten.reflection_pad3d.default", (block, [1, 2, 0, 3, 2, 1]), {}
    yield "aten.replication_pad3d.default", (block, [1, 2, 0, 3, 2, 1]), {}
    yield "aten.col2im.default", (_r(2, 12, 20), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]), {}


def by_hand() -> Iterator[Call]:
    """(op, arguments, keyword arguments)."""
    image, line = _r(2, 3, 6, 7), _r(2, 3, 9)
    yield "aten.conv1d.default", (line, _r(4, 3, 3), _r(4)), {}
    yield "aten.conv2d.default", (image, _r(4, 3, 3, 2), _r(4), [2, 1], [1, 0]), {}
    yield "aten.conv3d.default", (_r(1, 2, 4, 5, 6), _r(3, 2, 2, 3, 2), _r(3)), {}
    yield "aten.convolution.default", (image, _r(4, 3, 3, 2), _r(4), [1, 1], [1, 1], [1, 1], False, [0, 0], 1), {}
    for name in ("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input"):
        rank = int(name[14])
        yield f"aten.{name}", (_r(2, 3, *range(4, 4 + rank)), _r(3, 5, *[2] * rank), _r(5), [2] * rank), {}
    yield "aten.conv1d.padding", (line, _r(4, 3, 3), _r(4), [1], "same"), {}
    yield "aten.conv2d.padding", (image, _r(4, 3, 3, 2), _r(4), [1, 1], "same"), {}
    yield "aten.conv3d.padding", (_r(1, 2, 4, 5, 6), _r(3, 2, 2, 3, 2), _r(3), [1, 1, 1], "valid"), {}
    yield "aten.linear.default", (_r(5, 4), _r(3, 4), _r(3)), {}
    yield "aten.batch_norm.default", (image, _r(3), _r(3), _r(3), _r(3).abs(), False, 0.1, 1e-5, False), {}
    statistics = (_r(3), _r(3), _r(3), _r(3).abs())
    yield "aten._native_batch_norm_legit_no_training.default", (image, *statistics, 0.1, 1e-5), {}
    yield from _gradients(image)
    yield from _scalars()
    for gates, name in ((4, "lstm"), (3, "gru"), (1, "rnn_tanh"), (1, "rnn_relu")):
        weights = [_r(gates * 5, 3), _r(gates * 5, 5), _r(gates * 5), _r(gates * 5)]
        state = [_r(1, 2, 5), _r(1, 2, 5)] if name == "lstm" else _r(1, 2, 5)
        yield f"aten.{name}.input", (_r(4, 2, 3), state, weights, True, 1, 0.0, False, False, False), {}
        first = [_r(2, 5), _r(2, 5)] if name == "lstm" else _r(2, 5)
        yield f"aten.{name}_cell.default", (_r(2, 3), first, *weights), {}
    yield "aten.dropout.default", (image, 0.5, False), {}
    yield "aten.alpha_dropout.default", (image, 0.5, False), {}
    yield "aten.feature_dropout.default", (image, 0.5, False), {}
    yield "aten.feature_alpha_dropout.default", (image, 0.5, False), {}
    yield "aten.native_dropout.default", (image, 0.5, False), {}
    yield "aten.upsample_nearest1d.vec", (line, [5], None), {}
    yield "aten.upsample_nearest2d.vec", (image, None, [2.0, 1.5]), {}
    yield "aten.upsample_bilinear2d.vec", (image, [9, 5], False, None), {}
