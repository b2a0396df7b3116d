# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks, medians and quantiles, splitting and joining, unpooling and gradients, against eager torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from eager import Call, Case, compare, ints, r

from qcomp.errors import QcompError
from qcomp.frontend import from_torch

A = torch.ops.aten
MASK = torch.tensor([[True, False, True, True], [False, True, False, True], [True, True, False, False]])
BACKWARD = [True, True, True]
NAN = r(4, 5).index_put((torch.tensor([1]), torch.tensor([2])), torch.tensor(float("nan")))


def _put(x: torch.Tensor, value: Any, mask: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[mask] = value
    return y


CASES: dict[str, Case] = {
    "masked number": (lambda x: (_put(x, 2.5, x > 0), _put(x, x[0, 0], x < 0)), (r(3, 4),)),
    "masked rows": (
        lambda x, m: (_put(x, x[0], m[:, 0]), x.index_put((m,), x[0, 0], accumulate=True)), (r(3, 4), MASK)
    ),
    "masked columns": (lambda x, m: _put(x.T, x[0, 0], m.T), (r(3, 4), MASK)),
    "masked elements": (lambda x, m: (x.masked_scatter(m, x * 2), x.index_put((m,), x.flatten()[:7])), (r(3, 4), MASK)),
    "masked and broadcast": (lambda x, m: x[0].masked_scatter(m, x + 5), (r(3, 4), MASK)),
    "among": (lambda x: (torch.isin(x, x[0, :2]), torch.isin(x, 2), torch.isin(1, x), torch.isin(x, x[0], invert=True)),
              (ints(3, 4),)),
    "sorted places": (
        lambda x, y: (torch.searchsorted(x, y), torch.searchsorted(x, y, right=True), torch.bucketize(y, x[0]),
                      torch.bucketize(0.3, x[0], right=True, out_int32=True)),
        (r(3, 6).sort(1)[0], torch.cat([r(3, 3), torch.full((3, 1), float("nan"))], 1)),
    ),
    "medians": (
        lambda x: (x.median(), x.median(1), x.nanmedian(), x.nanmedian(0, keepdim=True), x.median(0)), (NAN,)
    ),
    "quantiles": (
        lambda x, q: (
            [torch.quantile(x, q, 1, interpolation=how) for how in ("linear", "lower", "higher")],
            [torch.quantile(x, q, 1, interpolation=how) for how in ("midpoint", "nearest")],
            torch.quantile(x, 0.4), torch.quantile(x, q, 0, keepdim=True), torch.quantile(x[0], q),
        ),
        (r(4, 5), torch.tensor([0.1, 0.5, 0.97])),
    ),
    "quantiles with nan": (
        lambda x, q: (torch.quantile(x, q, 1), torch.nanquantile(x, q, 1), torch.nanquantile(x, 0.3)),
        (NAN, torch.tensor([0.1, 0.5, 0.97])),
    ),
    "pieces": (
        lambda x: (x.tensor_split(3, 1), x.tensor_split((1, 3, 9), 1), x.hsplit(2), x.vsplit([1]), x.ravel()),
        (r(3, 4),),
    ),
    "depths": (lambda x: (x.dsplit(2), torch.atleast_3d(x[0]), torch.atleast_2d(x[0, 0])), (r(2, 3, 4),)),
    "joined": (
        lambda x, y: (
            torch.column_stack((x, y)), torch.block_diag(x, y[:, :1], x[0]), torch.cartesian_prod(x[0], y[0]),
            torch.broadcast_tensors(x, y[:, :1]), x.sum_to_size(1, 4), x.sum_to_size(4),
        ),
        (r(3, 4), r(3, 2, seed=1)),
    ),
    "neighbours": (
        lambda x: (x.diff(), x.diff(n=2, dim=0), torch.diff(x, prepend=x[:, :1]), torch.trapezoid(x, dx=0.5),
                   torch.cumulative_trapezoid(x, x.exp(), dim=0), torch.trapezoid(x, x[0])),
        (r(3, 4),),
    ),
    "crossed": (lambda x, y: (torch.cross(x, y, 0), torch.linalg.cross(x.T, y.T[:1])), (r(3, 4), r(3, 4, seed=1))),
    "flat places": (lambda x: (x.put(torch.tensor([[1, -2]]), x[:1, :2]), x.take(torch.tensor([3, -1]))), (r(3, 4),)),
    "unpooled": (
        lambda x: torch.nn.functional.max_unpool2d(*torch.nn.functional.max_pool2d(x, 2, return_indices=True), [2, 2]),
        (r(2, 3, 6, 8),),
    ),
    "adaptive places": (
        lambda x: (
            torch.nn.functional.adaptive_max_pool2d(x, (3, 2), return_indices=True),
            torch.nn.functional.adaptive_max_pool1d(x[0], 4, return_indices=True),
        ),
        (r(2, 3, 7, 5),),
    ),
    "distances": (
        lambda x, y: (torch.cdist(x, y, 3.0), torch.cdist(x, y, 0.0), torch.pdist(x), torch.pdist(x, 1.0)),
        (r(4, 5), r(3, 5, seed=1)),
    ),
    "batch statistics": (
        lambda x: (
            torch.nn.functional.batch_norm(x, None, None, training=True),
            A._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-3),
            A._native_batch_norm_legit_no_training(x, None, None, x[0, :, 0, 0], x[1, :, 0, 0].abs(), 0.1, 1e-3),
            A.native_dropout(x, 0.3, False),
        ),
        (r(2, 3, 5, 4),),
    ),
    "tiled": (
        lambda x: (x.tile(2, 1, 3), x.tile(2), x.trace(), torch.diagflat(x, -1), torch.linalg.diagonal(x, offset=1),
                   torch.fft.fftshift(x), torch.fft.ifftshift(x, 1), torch.dist(x, x[0], 3),
                   torch.logspace(0, 2, 4) + x),
        (r(3, 4),),
    ),
    "without nan": (lambda x: (x.nansum(), x.nansum(1), x.nanmean(0, keepdim=True), x[0].int().nansum()), (NAN,)),
    "angles": (lambda x: (torch.angle(x), torch.angle(x.int()), torch.conj_physical(x), torch.isreal(x)), (r(3, 4),)),
    "losses": (
        lambda x, y: [
            loss(x, y, reduction=how)
            for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div, F.soft_margin_loss)
            for how in ("none", "mean", "sum")
        ],
        (r(3, 4), r(3, 4, seed=1).abs()),
    ),
    "losses of probabilities": (
        lambda x, y: (
            F.binary_cross_entropy(x.sigmoid(), y, weight=x.abs()), F.binary_cross_entropy_with_logits(x, y),
            F.binary_cross_entropy_with_logits(x, y, pos_weight=y[0] + 1), F.cross_entropy(x, y, label_smoothing=0.2),
            F.poisson_nll_loss(x, y * 9, full=True), F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1]), 0.1),
        ),
        (r(3, 4), r(3, 4, seed=1).sigmoid()),
    ),
    "losses of classes": (
        lambda x, c: (
            F.cross_entropy(x, c), F.cross_entropy(x, c, weight=x[0, :, 0].abs(), label_smoothing=0.1, ignore_index=2),
            F.cross_entropy(x, c, reduction="none"), F.nll_loss(x, c, reduction="sum", weight=x[1, :, 0]),
            F.nll_loss(x[:, :, 0], c[:, 0]),
        ),
        (r(3, 4, 5), ints(3, 5).abs() % 4),
    ),
    "losses of orders": (
        lambda x, y: (
            F.margin_ranking_loss(x, y, x.sign(), 0.3), F.hinge_embedding_loss(x, y.sign(), 0.8),
            F.triplet_margin_loss(x, y, x[:1], swap=True),
        ),
        (r(3, 4), r(3, 4, seed=1)),
    ),
    "numbers of tensors": (
        lambda x, n: (
            x / x.max().item() + 2 * x.max().item(), x * n.item(), torch.full((2,), x[0, 0].item()), x + (n.item() + 1),
            torch.clamp(x, max=x.mean().item() / 2), torch.where(x > 0, x, n.item()),
        ),
        (r(3, 4), torch.tensor(3)),
    ),
    "weight norms": (
        lambda x: (A._weight_norm(x, x[:, :1, :1].abs(), 0), A._weight_norm_interface(x, x[:1, :1].abs(), 2),
                   A._weight_norm(x, x[0, 0, 0], -1)),
        (r(3, 4, 5),),
    ),
    "gradients of pools": (
        lambda x, g, h: (
            A._adaptive_avg_pool2d_backward(g, x),
            A.avg_pool2d_backward(g[:, :, :3, :2], x, [3, 2], [2, 2], [1, 0], False, True, None),
            A.avg_pool2d_backward(h, x, [3, 2], [2, 2], [1, 0], True, False, None),
            A.avg_pool2d_backward(g[:, :, :3, :2], x, [3, 2], [2, 2], [1, 0], False, True, 5),
        ),
        (r(2, 3, 6, 5), r(2, 3, 4, 3), r(2, 3, 4, 3, seed=1)),
    ),
    "gradients of convolutions": (
        lambda x, w, g: (
            A.convolution_backward(g, x, w, [4], [2, 3], [1, 0], [1, 2], False, [0, 0], 2, BACKWARD),
            A.convolution_backward(g[:, :2], x, w[:2].repeat(1, 2, 1, 1), None, [2, 3], [1, 0], [1, 2], False,
                                   [0, 0], 1, [True, True, False])[:2],
        ),
        (r(2, 6, 7, 11), r(4, 3, 3, 2), r(2, 4, 4, 3)),
    ),
    "gradients of norms": (
        lambda g, x, w: (
            A.native_layer_norm_backward(
                g, x, [4, 5], *A.native_layer_norm(x, [4, 5], None, None, 1e-3)[1:], w, w, BACKWARD
            ),
            A.native_group_norm_backward(
                g.view(2, 4, 15), x.view(2, 4, 15),
                *A.native_group_norm(x.view(2, 4, 15), None, None, 2, 4, 15, 2, 1e-3)[1:],
                w[:, 0].contiguous(), 2, 4, 15, 2, BACKWARD,  # torch's kernel takes no other
            ),
        ),
        (r(2, 3, 4, 5).reshape(2, 4, 3, 5).permute(0, 2, 1, 3).contiguous(), r(2, 3, 4, 5, seed=1), r(4, 5)),
    ),
    "gradients of curves": (
        lambda g, x: (
            A._softmax_backward_data(g, x.softmax(1), 1, torch.float32), A.silu_backward(g, x),
            A._log_softmax_backward_data(g, x.log_softmax(1), 1, torch.float32), A.threshold_backward(g, x, 0.1),
            A.hardtanh_backward(g, x, -0.5, 0.7), A.sigmoid_backward(g, x.sigmoid()), A.tanh_backward(g, x.tanh()),
            A.native_dropout_backward(g, x > 0, 1.25),
        ),
        (r(3, 4), r(3, 4, seed=1)),
    ),
    "gradients of tables": (
        lambda g, i: (A.embedding_dense_backward(g, i, 6, 2, False), A.embedding_dense_backward(g, i, 6, -1, False)),
        (r(3, 4, 5), ints(3, 4).abs() % 6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str):
    function, inputs = CASES[name]
    compare(function, *inputs, tolerance=1e-5)


def test_truth_values_are_no_numbers_in_sums_of_products():
    x, y = torch.tensor([True, True, False]), torch.tensor([[True, True, False]]).expand(2, 3)
    compare(lambda a, b: (torch.addr(b, a[:2], a), torch.outer(a, a)), x, y)


def test_masks_beside_indices_are_refused():
    with pytest.raises(QcompError, match="masks beside other indices"):
        from_torch(torch.export.export(Call(lambda x, m: x.index_put((m[:, 0], m[:, 1].long()), x)), (r(3, 4), MASK)))
