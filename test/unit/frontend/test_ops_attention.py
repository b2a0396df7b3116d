# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention, products of matrices and norms against eager torch, before and after decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from eager import Case, compare, r
from torch import nn
from torch.nn import functional as F

from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

Q, K, V = r(2, 4, 5, 8), r(2, 4, 7, 8, seed=1), r(2, 4, 7, 6, seed=2)
MASK = r(2, 1, 5, 7, seed=3) > 0.3
MASK[0, 0, 2] = False
TORCH: Any = torch
ATTEND = F.scaled_dot_product_attention
CASES: dict[str, Case] = {
    "attention": (
        lambda q, k, v: (ATTEND(q, k, v), ATTEND(q, k, v, scale=0.7), ATTEND(q, k, v, is_causal=True)),
        (Q, K, V),
    ),
    "bool mask": (lambda q, k, v, m: (ATTEND(q, k, v, m), ATTEND(q, k, v, m[0, 0])), (Q, K, V, MASK)),
    "added mask": (
        lambda q, k, v, m: (ATTEND(q, k, v, m), ATTEND(q[0, 0], k[0, 0], v[0, 0], m[0])),
        (Q, K, K, r(5, 7, seed=4).masked_fill(r(5, 7, seed=5) > 0.5, -np.inf)),
    ),
    "least numbers as mask": (
        lambda q, k, v, m: ATTEND(q, k, v, torch.where(m, 0.0, torch.finfo(torch.float32).min)), (Q, K, V, MASK),
    ),
    "heads in groups": (
        lambda q, k, v: (ATTEND(q, k, v, enable_gqa=True), ATTEND(q, k, v, enable_gqa=True, is_causal=True)),
        (Q, r(2, 2, 7, 8), r(2, 2, 7, 8, seed=2)),
    ),
    "einsum": (
        lambda x, y, z: (
            torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij,bjk", x, y), torch.einsum("...ij->...ji", x),
            torch.einsum("bij,bjk,k->bi", x, y, z), torch.einsum("bij->i", x), torch.einsum("i,j->ij", z, z),
            torch.einsum("bij,...jk->i...k", x, y[:1]), torch.einsum("bij,bij->b", x, x),
            torch.einsum("bhij,bhjk->bihk", x[:, None], y[:, None]), torch.einsum("bij, i -> bij", x, x[0, :, 0]),
        ),
        (r(2, 3, 4), r(2, 4, 5), r(5)),
    ),
    "tensordot": (
        lambda x, y: (TORCH.tensordot(x, y, dims=([1, 2], [1, 0])), torch.tensordot(x, y[:4, 0], 1)),
        (r(2, 3, 4), r(4, 3, 5)),
    ),
    "bilinear": (
        lambda x, y, w, c: (F.bilinear(x, y, w, c), F.bilinear(x[0], y[0], w)),
        (r(2, 5, 3), r(2, 5, 4), r(6, 3, 4), r(6)),
    ),
    "kron": (lambda x, y: (torch.kron(x, y), torch.kron(x[0], y), torch.kron(x, x)), (r(2, 3), r(4, 5))),
    "products": (
        lambda x, y, z: (
            torch.addbmm(x[0], x, y, beta=0.5, alpha=2), torch.addmv(x[0, :, 0], x[0], z), torch.outer(z, z),
            torch.addr(x[0], z, z, alpha=3), torch.inner(x, y), torch.baddbmm(x, x, y, beta=0, alpha=2),
            torch.linalg.multi_dot([x[0], y[0], z]), torch.vdot(z, z), torch.mv(x[0], z), torch.dot(z, z),
        ),
        (r(2, 3, 3), r(2, 3, 3, seed=1), r(3)),
    ),
    "group norm": (
        lambda x, w, c: (F.group_norm(x, 3, w, c), F.group_norm(x, 2), F.group_norm(x[:, :, 0, 0], 2, w, None, 0.1)),
        (r(2, 6, 3, 4), r(6), r(6)),
    ),
    "instance norm": (
        lambda x, w, c: (
            F.instance_norm(x), F.instance_norm(x, weight=w, bias=c), F.instance_norm(x, c, w.abs(), w, c, False),
            F.instance_norm(x[0]),
        ),
        (r(2, 6, 3, 4), r(6), r(6)),
    ),
    "rms norm": (
        lambda x, w: (F.rms_norm(x, (3, 4), w), F.rms_norm(x, (4,), None, 0.1), F.rms_norm(x, (3, 4))),
        (r(2, 3, 4), r(3, 4)),
    ),
    "log softmax": (
        lambda x: (F.log_softmax(x, 1), F.log_softmax(x * 90, -1), F.log_softmax(x[0, 0, 0], 0), F.softmin(x, 0)),
        (r(2, 3, 4),),
    ),
    "lrn": (lambda x: (F.local_response_norm(x, 3, beta=0.5), x), (r(2, 6, 3, 4),)),
    "distances": (
        lambda x, y: (
            F.cosine_similarity(x, y), F.cosine_similarity(x[0], y, 0),
            F.cosine_similarity(x, y[0], -1), F.pairwise_distance(x, y), torch.cdist(x, y),
            torch.cdist(x, y[0], 1.0), F.pairwise_distance(x, y, 1.0, keepdim=True),
        ),
        (r(2, 3, 4), r(2, 3, 4, seed=1)),
    ),
}  # fmt: skip


UNDECOMPOSED = ("attention", "bool mask", "added mask", "heads in groups", "distances")
"""Decomposed, they take elementwise ops that are tested elsewhere."""


@pytest.mark.parametrize("name", CASES)
def test_close(name: str) -> None:
    function, inputs = CASES[name]
    compare(function, *inputs, tolerance=1e-5, decomposed=name not in UNDECOMPOSED)


LAYERS: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
    "multi-head": (nn.MultiheadAttention(8, 2, batch_first=True), (r(2, 5, 8), r(2, 5, 8), r(2, 5, 8))),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (r(2, 5, 8),)),
    "decoder": (nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), (r(2, 5, 8), r(2, 7, 8, seed=2))),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    layer, inputs = LAYERS[name]
    layer.eval()
    with torch.no_grad():
        expected = layer(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = interpret(from_torch(torch.export.export(layer, inputs)), *(value.numpy() for value in inputs))
    for left, right in zip(found, expected, strict=True):
        assert np.allclose(left, right.detach().numpy(), 1e-5, 1e-5)


PACKED = (r(24, 8), r(24), r(8, 8), r(8))
CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)
PADDED = torch.tensor([[False, False, True, False, True], [False, True, False, False, False]])


@pytest.mark.parametrize("mask, kind", [(None, None), (CAUSAL, 0), (PADDED, 1)])
def test_packed_attention(mask: torch.Tensor | None, kind: int | None) -> None:
    """torch's fused layers, as its fast paths call them."""

    def attention(x: torch.Tensor, *weights: torch.Tensor) -> Any:
        fused = TORCH._native_multi_head_attention
        return (
            fused(x, x, x, 8, 2, *weights, mask, True, True, kind),
            fused(x, x, x, 8, 2, *weights, mask, True, False, kind),
            fused(x, x, x, 8, 2, *weights, mask, False, True, kind)[0],
        )

    def layer(x: torch.Tensor, *weights: torch.Tensor) -> Any:
        norms = (weights[1][:8], weights[3], weights[3], weights[1][8:16])
        network = (weights[0][:, :8], weights[1], weights[2].repeat(1, 3), weights[3])
        return [
            TORCH._transformer_encoder_layer_fwd(x, 8, 2, *weights, gelu, first, 1e-3, *norms, *network, mask, kind)
            for gelu, first in ((False, False), (True, True))
        ]

    for function in (attention, layer):
        compare(function, r(2, 5, 8), *PACKED, tolerance=1e-5, decomposed=False)
