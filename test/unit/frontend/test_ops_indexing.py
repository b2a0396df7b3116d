# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices, orders, running totals and statistics, against eager torch."""

from __future__ import annotations

import pytest
import torch
from eager import Call, Case, compare, ints, r

from qcomp.errors import QcompError
from qcomp.frontend import from_torch

I = torch.tensor([2, 0, -1, 2])  # noqa: E741
J = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 1]])
CASES: dict[str, Case] = {
    "picked": (lambda x, i: (x[i], x[:, i], x[i, i], x[i[:, None], :, i], x.index_select(1, i.abs())), (r(4, 5, 6), I)),
    "gathered": (lambda x, j: (x.gather(0, j), x.gather(1, j), x.take(j), x.take_along_dim(j[:1], 0)), (r(3, 4), J)),
    "put": (
        lambda x, j: (x.scatter(0, j, x * 2), x.scatter(1, j, 7.0), x.scatter_add(0, j, x), x.scatter(1, j, x)),
        (r(3, 4), J),
    ),
    "combined": (
        lambda x, j: [
            x.scatter_reduce(0, j, x * 3, kind, include_self=own)
            for kind in ("sum", "prod", "amax", "amin", "mean") for own in (True, False)
        ]
        + [
            x.index_reduce(0, j[0, :3], x * 3, kind, include_self=own)
            for kind in ("prod", "amax", "amin", "mean") for own in (True, False)
        ],
        (r(3, 4), J),
    ),
    "index put": (
        lambda x, i: (x.index_put((i,), x[0], accumulate=True), x.index_add(0, i.abs(), x * 2), x.index_fill(0, i, 1)),
        (r(4, 5), I),
    ),
    "moved": (
        lambda x: (x.flip(0, 2), x.roll(2, 1), x.roll((1, -2), (0, 2)), x.roll(3), x.rot90(1), x.rot90(3, (1, 2))),
        (r(3, 4, 5),),
    ),
    "made": (
        lambda x: (x.tril(), x.triu(1), x.diag_embed(), x[0].diag(), x[:, :3].diag(-1), torch.eye(3) + x[:3, :3]),
        (r(3, 4),),
    ),
    "repeated": (
        lambda x: (x.repeat_interleave(3), x.repeat_interleave(2, 1), torch.linspace(0, 1, 4) + x),
        (r(3, 4),),
    ),
    "orders": (
        lambda x: (x.sort(), x.sort(0, descending=True), x.argsort(1), x.topk(3), x.topk(2, 0, largest=False)),
        (r(4, 5),),
    ),
    "places": (
        lambda x: (x.max(1), x.min(0, keepdim=True), x.argmax(), x.argmin(1), x.median(), x.kthvalue(2)),
        (r(4, 5),),
    ),
    "totals": (
        lambda x: (x.cumsum(1), x.cumprod(0), x.cummax(1), x.cummin(0), x.logcumsumexp(1), x.int().cumsum(0)),
        (r(4, 5),),
    ),
    "truths": (lambda x: (x.any(), x.all(1), x.any(0, True), x.count_nonzero(), x.amin(1), x.aminmax()), (ints(4, 5),)),
    "moments": (
        lambda x: (x.var(), x.std(1), x.var(0, correction=0), torch.var_mean(x, 1, keepdim=True), x.prod(), x.prod(1)),
        (r(4, 5),),
    ),
    "norms": (
        lambda x: (
            x.norm(), x.norm(3, 1), torch.linalg.vector_norm(x, float("inf"), 0), x.logsumexp(1), x.log_softmax(1),
        ),
        (r(4, 5),),
    ),
    "one hot": (lambda x: torch.nn.functional.one_hot(x, 5), (ints(7).abs() % 5,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str):
    function, inputs = CASES[name]
    compare(function, *inputs, tolerance=1e-5)


def test_sizes_that_depend_on_data_are_refused():
    with pytest.raises(QcompError, match="size depends on data"):
        from_torch(torch.export.export(Call(lambda x: x[x > 0]), (r(3, 4),)))
