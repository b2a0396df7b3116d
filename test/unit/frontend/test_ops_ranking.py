# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places, statistics and order: against eager torch in the interpreter, some in C too; ties, NaN, sizes 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from eager import Call, compare, ints, r

import qcomp
from qcomp.frontend import from_torch

torch: Any = pytest.importorskip("torch")

X, N = r(2, 3, 5), ints(3, 4, 5)
TIES = torch.tensor([[1.0, 3.0, 3.0, -2.0, 1.0], [-0.0, 0.0, -5.0, -5.0, 2.0], [4.0, 4.0, 4.0, 4.0, 4.0]])
ODD = torch.tensor([[1.0, float("nan"), 3.0, float("nan")], [float("inf"), 2.0, float("-inf"), float("inf")]])

EXACT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "triangles": (lambda x: (x.triu(), x.tril(1), x.triu(-1), x.tril(-2)), (X,)),
    "triangles of integers": (lambda x: (x.triu(1), x.tril()), (N,)),
    "identity": (lambda x: (torch.eye(3) + x[0, 0, 0], torch.eye(2, 5, dtype=torch.int64)), (X,)),
    "one hot": (lambda i: torch.nn.functional.one_hot(i, 9), (N.abs() % 9,)),
    "flip": (lambda x: (x.flip(0), x.flip(2, 1)), (X,)),
    "repeat": (lambda x: (x.repeat_interleave(3), x.repeat_interleave(2, 1), x.repeat_interleave(0, 0)), (X,)),
    "places": (lambda x: (x.argmax(), x.argmin(), x.argmax(1), x.argmin(-1, keepdim=True)), (X,)),
    "places among equals": (lambda x: (x.argmax(1), x.argmin(1), x.max(1), x.min(0, keepdim=True)), (TIES,)),
    "places of odd numbers": (lambda x: (x.argmax(1), x.argmin(1), x.max(1), x.min(1)), (ODD,)),
    "places of integers": (lambda x: (x.argmax(), x.max(1), x.min(2), x.argmin(0)), (N,)),
    "a scalar": (lambda x: (x[0, 0, 0].argmax(), x[1, 0, 0].max(0), x[0, 1, 0].sort(), x[0, 0, 1].cumsum(0)), (X,)),
    "best": (lambda x: (x.topk(2, 1), x.topk(3, largest=False), x.topk(1, 0)), (X,)),
    "none of the best": (lambda x: x.topk(0, 1), (X,)),
    "order": (lambda x: (x.sort(), x.sort(1, descending=True), x.argsort(0), x.sort(stable=True, dim=0)), (X,)),
    "order of equals": (lambda x: (x.sort(stable=True, dim=1), x.sort(stable=True, dim=1, descending=True)), (TIES,)),
    "order of odd numbers": (lambda x: (x.sort(1), x.sort(stable=True, dim=1, descending=True)), (ODD,)),
    "order of integers": (lambda x: (x.sort(stable=True, dim=1), torch.argsort(x, dim=2, stable=True)), (N,)),
    "truth": (lambda x: (x.any(), (x > 0).any(1), x.bool().all(2, keepdim=True), x.all(0)), (N,)),
    "truth of nothing": (lambda x: (x[:0].any(0), x[:0].all(0), x[:0].any(), x[:0].all()), (X,)),
    "truth in uint8": (lambda x: (x.to(torch.uint8).any(1), x.to(torch.uint8).all()), (N,)),
    "running": (lambda x: (x.cumsum(1), x.cumprod(2), x.cumsum(0)), (N,)),
    "running in int64": (lambda x: (x.cumsum(1), x.cumsum(0, dtype=torch.int32)), (N.to(torch.int8),)),
}
CLOSE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "log softmax": (lambda x: (x.log_softmax(1), x.log_softmax(-1), x.sum().log_softmax(0)), (X * 5,)),
    "log of sums": (lambda x: (x.logsumexp(1), x.logsumexp((0, 2), keepdim=True)), (X * 30,)),
    "log of sums of infinities": (lambda x: x.logsumexp(0), (ODD.nan_to_num(1.0, float("inf"), float("-inf")),)),
    "variance": (lambda x: (x.var(), x.var((0, 2), unbiased=False), x.var(2, correction=2, keepdim=True)), (X,)),
    "deviation": (lambda x: (x.std(), torch.std_mean(x, 1), torch.var_mean(x, (1, 2), correction=0)), (X,)),
    "one element": (lambda x: (x[:1].var(0), x[:1].std(0, correction=0)), (X,)),
    "norms": (lambda x: tuple(torch.linalg.vector_norm(x, o, 1) for o in (0, 1, 2, float("inf"), -float("inf"))), (X,)),
    "norm of all": (lambda x: (torch.linalg.vector_norm(x), torch.norm(x, dim=(0, 2), keepdim=True)), (X,)),
    "running floats": (lambda x: (x.cumsum(1), x.cumprod(2), x.cumsum(2, dtype=torch.float64)), (X,)),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str) -> None:
    function, inputs = EXACT[name]
    compare(function, *inputs, tolerance=0.0)


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    function, inputs = CLOSE[name]
    compare(function, *inputs)


def test_roll() -> None:
    model = Call(lambda x: (x.roll(2, 1), x.roll((1, -7), (0, 2)), x.roll(4), x.roll(0, 0), x[:0].roll(1, 0)))
    found = qcomp.interpret(from_torch(torch.export.export(model, (X,))), X.numpy())
    for ours, eager in zip(found, model(X), strict=True):
        assert np.array_equal(ours, eager.numpy())


def test_in_c() -> None:
    """What the decompositions are made of, compiled: in bits as the interpreter has it."""

    def several(x: Any, t: Any) -> Any:
        return (
            x.triu(), x.roll(2, 1), x.flip(0), x.repeat_interleave(2, 1), x.argmax(1), t.max(1), t.topk(3), t.sort(1),
            x.cumsum(1), x.log_softmax(1), x.std(1), torch.linalg.vector_norm(x, dim=2), x.cumprod(2),
        )  # fmt: skip

    program = torch.export.export(Call(several), (X, TIES))
    arrays = [X.numpy(), TIES.numpy()]
    artifact = qcomp.compile(program)
    assert artifact.module is not None
    for found, same in zip(artifact.run(arrays), qcomp.interpret(artifact.module, *arrays), strict=True):
        assert np.array_equal(found, same)
