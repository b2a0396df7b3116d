# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Handlers of float and integer ops against eager torch, before and after decomposition."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from eager import Call, Case, compare, ints, r
from torch.nn import functional as F

from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.frontend.ops import HANDLERS
from qcomp.frontend.ops.complexes import COMPLEX_TARGETS

EXACT: dict[str, Case] = {
    "add": (lambda x, y: (x + y, x + 2, 2.5 + x, torch.add(x, y, alpha=2)), (r(2, 3), r(3, seed=1))),
    "add ints": (lambda x, y: (x + y, x + 2, x + 2.5, x * y), (ints(2, 3), r(3))),
    "int kinds": (lambda x, y: (x + y, x * 2, x - y, 3 - x), (ints(4, dtype=torch.int8), ints(4, dtype=torch.int16))),
    "zero-d": (lambda x, y: (x + y, y * 2, x * 0.5), (r(3), torch.tensor(1.5, dtype=torch.float64))),
    "sub": (lambda x, y: (x - y, 1 - x, torch.sub(x, y, alpha=4), torch.rsub(x, y)), (r(2, 3), r(2, 1, seed=1))),
    "mul div": (lambda x, y: (x * y, x / y, x / 4, 1 / x, x * 0.5), (r(2, 3), r(3, seed=1))),
    "div ints": (lambda x, y: (x / y, x / 2), (ints(5), ints(5).abs() + 1)),
    "extremes": (lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.max(x, y)), (r(2, 3), r(3, seed=1))),
    "signs": (lambda x: (-x, x.abs(), x.square(), x**2, x**1, x.reciprocal()), (r(4, 5),)),
    "clamps": (
        lambda x: (x.clamp(-0.5, 0.25), x.clamp(min=0.5), x.clamp_max(0), F.hardtanh(x), F.relu6(x * 9)),
        (r(9),),
    ),
    "clamp ints": (lambda x: (x.clamp(-3, 5), x.clamp(min=2), torch.clamp(x, 0.5)), (ints(20),)),
    "relus": (lambda x: (F.relu(x), F.leaky_relu(x), F.leaky_relu(x, 0.3), x.relu()), (r(4, 5),)),
    "casts": (lambda x: (x.to(torch.int32), x.double(), x.half().float(), x.to(torch.bool)), (r(9) * 3,)),
    "casts of ints": (lambda x: (x.float(), x.to(torch.uint8), x.type_as(x.float()), x.bool().int()), (ints(9).abs(),)),
    "copies": (lambda x: (x.clone(), x.contiguous() + 0, x.detach() * 1, F.dropout(x, 0.5, False)), (r(2, 3),)),
    "views": (lambda x: (x.view(6, 4), x.reshape(-1, 2), x.flatten(), x.flatten(1), x.view(2, -1, 2)), (r(2, 3, 4),)),
    "unflatten": (lambda x: (x.unflatten(1, (2, -1)), x.unflatten(-1, (3, 1, 2)), x.view_as(x.t().t())), (r(4, 6),)),
    "squeezes": (
        lambda x: (x.squeeze(), x.squeeze(1), x.squeeze(0), x.squeeze((1, 3)), x.unsqueeze(-1)),
        (r(2, 1, 3, 1),),
    ),
    "permutes": (
        lambda x: (x.permute(2, 0, 1), x.transpose(0, -1), x.movedim(0, 2), x.mT, x.swapaxes(0, 1)),
        (r(2, 3, 4),),
    ),
    "transposes": (lambda x: (x.t(), x.T, x.t().t(), x.mT), (r(2, 3),)),
    "expands": (lambda x, y: (x.expand(4, 2, 3), x.expand(-1, 3), x.expand_as(y), x.repeat(3, 2)), (r(2, 1), r(2, 3))),
    "slices": (lambda x: (x[1:3], x[:, -2:], x[::2, 1:-1:2], x[5:], x[1, 2], x[-1], x[:, 7:9]), (r(5, 8),)),
    "narrow": (lambda x: (x.narrow(1, 2, 3), x.narrow(0, -2, 1), x.select(1, -1)), (r(5, 8),)),
    "splits": (lambda x: (x.split(3, 1), x.split([1, 4, 3], 1), x.chunk(3, 1), x.unbind(0)), (r(2, 8),)),
    "cats": (
        lambda x, y: (torch.cat([x, y], 1), torch.cat([x, x, y], -1), torch.stack([x, x * 2], 1)),
        (r(2, 3), r(2, 4)),
    ),
    "cat kinds": (lambda x, y: (torch.cat([x, y]), torch.cat([x.new_zeros(0), x])), (r(3), ints(2))),
    "pads": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=2.5), F.pad(x, (-1, 2, 0, -2))), (r(2, 5, 6),)),
    "shuffles": (lambda x: (F.pixel_shuffle(x, 2), F.channel_shuffle(x, 3)), (r(2, 12, 3, 5),)),
    "unshuffle": (lambda x: F.pixel_unshuffle(x, 2), (r(2, 3, 4, 6),)),
    "fills": (
        lambda x: (x + torch.ones(3), x + torch.full((2, 3), 2.5), torch.zeros_like(x), torch.full((2,), 7)),
        (r(2, 3),),
    ),
    "aranges": (lambda x: (x + torch.arange(3), torch.arange(1, 9, 3), torch.arange(0.5, 2, 0.25)), (r(2, 3),)),
    "embedding": (lambda w, i: (F.embedding(i, w), F.embedding(i, w, padding_idx=1)), (r(7, 3), ints(2, 4).abs() % 7)),
    "max pools": (lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, (3, 2), (2, 1), (1, 0), 1, True)), (r(2, 3, 7, 6),)),
    "dilated pool": (lambda x: (F.max_pool2d(x, 2, 1, 0, (2, 3)), F.max_pool2d(x[0], 3, 2, 1)), (r(2, 3, 7, 8),)),
    "max pool 1d": (lambda x: F.max_pool1d(x, 3, 2, 1), (r(2, 3, 9),)),
    "largest": (lambda x: (x.amax(1), x.amax((0, 2), True), x.max()), (r(2, 3, 4),)),
    "sums": (lambda x: (x.sum(), x.sum(1), x.bool().sum(0, True), x.sum((0, -1))), (ints(2, 3, 4),)),
    "scalars": (lambda x: (torch.scalar_tensor(2.5) + x, x * torch.tensor(3)), (r(2, 3),)),
}
CLOSE: dict[str, Case] = {
    "curves": (lambda x: (x.sigmoid(), x.tanh(), F.silu(x), F.gelu(x), F.gelu(x, approximate="tanh")), (r(5, 7),)),
    "hard curves": (lambda x: (F.hardswish(x * 4), F.hardsigmoid(x * 4)), (r(5, 7),)),
    "powers": (lambda x: (x.exp(), x.abs().sqrt(), (x.abs() + 1).rsqrt(), x.abs() ** 0.5, x**3, x.erf()), (r(5, 7),)),
    "curves of ints": (lambda x: (x.sigmoid(), x.exp(), x.abs().sqrt()), (ints(6),)),
    "linear": (lambda x, w, c: (F.linear(x, w, c), F.linear(x[0], w), F.linear(x, w[0])), (r(2, 3, 4), r(5, 4), r(5))),
    "matmuls": (
        lambda x, y: (x @ y, x[0] @ y, x[0, 0] @ y[0], x @ y[:, :, 0][0], x[0, 0] @ y[0, :, 0]),
        (r(2, 3, 4), r(2, 4, 5)),
    ),
    "mm": (
        lambda x, y, c: (torch.mm(x, y), torch.addmm(c, x, y), torch.addmm(c, x, y, beta=0.5, alpha=2)),
        (r(3, 4), r(4, 5), r(5)),
    ),
    "transposed mm": (
        lambda x, y, c: (torch.addmm(c, x, y.t()), x @ y.t(), torch.addmm(c[:1], x, y.t())),
        (r(3, 4), r(5, 4), r(5)),
    ),
    "bmm": (
        lambda x, y, c: (torch.bmm(x, y), torch.baddbmm(c, x, y, beta=2, alpha=0.5)),
        (r(2, 3, 4), r(2, 4, 5), r(2, 3, 5)),
    ),
    "vectors": (lambda x, y: (torch.dot(x, x), torch.mv(y, x)), (r(4), r(3, 4))),
    "conv2d": (
        lambda x, w, c: (F.conv2d(x, w, c, (2, 1), (1, 2), (1, 2)), F.conv2d(x[0], w)),
        (r(2, 4, 9, 8), r(6, 4, 3, 2), r(6)),
    ),
    "grouped conv": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 2), (r(2, 4, 5, 6), r(6, 2, 3, 3))),
    "same conv": (
        lambda x, w: (F.conv2d(x, w, padding="same"), F.conv2d(x, w, padding="valid")),
        (r(1, 2, 6, 7), r(3, 2, 4, 2)),
    ),
    "dilated same conv": (lambda x, w: F.conv2d(x, w, padding="same", dilation=(1, 3)), (r(1, 2, 6, 7), r(3, 2, 4, 2))),
    "conv1d": (lambda x, w: (F.conv1d(x, w, None, 2, 1), F.conv1d(x, w, padding="same")), (r(2, 3, 9), r(4, 3, 2))),
    "conv3d": (lambda x, w: F.conv3d(x, w, None, (1, 2, 1), 1), (r(1, 2, 3, 5, 4), r(3, 2, 2, 3, 1))),
    "average pools": (
        lambda x: (
            F.avg_pool2d(x, 2),
            F.avg_pool2d(x, 3, 2, 1, True, False),
            F.avg_pool2d(x, 2, 1, 0, divisor_override=3),
        ),
        (r(2, 3, 7, 6),),
    ),
    "average pool 1d": (lambda x: (F.avg_pool1d(x, 3, 2, 1), F.adaptive_avg_pool1d(x, 4)), (r(2, 3, 9),)),
    "adaptive pools": (
        lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool2d(x[0], 2)),
        (r(2, 3, 7, 6),),
    ),
    "means": (lambda x: (x.mean(), x.mean(1), x.mean((-1, -2), True), x.mean(1, dtype=torch.float64)), (r(2, 3, 4),)),
    "float sums": (lambda x: (x.sum(), x.sum(1, True), x.sum(-1, dtype=torch.float64)), (r(2, 3, 4),)),
    "batch norm": (
        lambda x, m, v, w, c: (F.batch_norm(x, m, v, w, c, eps=0.1), F.batch_norm(x, m, v)),
        (r(2, 3, 4, 5), r(3), r(3).abs() + 0.5, r(3, seed=2), r(3, seed=3)),
    ),
    "layer norm": (
        lambda x, w, c: (F.layer_norm(x, (4,), w, c), F.layer_norm(x, (3, 4), eps=0.1)),
        (r(2, 3, 4), r(4), r(4, seed=1)),
    ),
    "softmax": (lambda x: (x.softmax(-1), x.softmax(1), x.softmax(0, dtype=torch.float64)), (r(2, 3, 4),)),
    "softmax of a scalar": (lambda x: x.sum().softmax(0), (r(2, 3),)),
    "half": (lambda x: ((x.half() * 0.3).float(), (x.half() + x.half() * 3).float()), (r(50),)),
}


def groups(cases: dict[str, Case], size: int = 7) -> list[tuple[str, ...]]:
    """Several cases share a program: exporting takes longer than running."""
    names = list(cases)
    return [tuple(names[start : start + size]) for start in range(0, len(names), size)]


def together(cases: dict[str, Case], names: tuple[str, ...], tolerance: float) -> None:
    def body(*inputs: torch.Tensor) -> Any:
        rest = iter(inputs)
        return {name: cases[name][0](*(next(rest) for _ in cases[name][1])) for name in names}

    compare(body, *(value for name in names for value in cases[name][1]), tolerance=tolerance)


@pytest.mark.parametrize("names", groups(EXACT), ids=", ".join)
def test_exact(names: tuple[str, ...]) -> None:
    together(EXACT, names, 0.0)


@pytest.mark.parametrize("names", groups(CLOSE), ids=", ".join)
def test_close(names: tuple[str, ...]) -> None:
    together(CLOSE, names, 2e-6)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda x: torch.view_as_real(x.to(torch.complex64).tan()), "aten.tan.default x1: of complex numbers"),
        (lambda x: x.unique(), "aten._unique2.default x1: makes a result whose size depends on data"),
        (lambda x: torch.zeros(x.sum().long().item() + 2), "computed by the program"),
        (lambda x: x.max().item(), "output x1: an output that is a number, zuf0"),
        (lambda x: x[x > 0], "aten.index.Tensor x1: "),
    ],
)
def test_refused_by_name(body: Callable[..., Any], match: str) -> None:
    program = torch.export.export(Call(body), (r(2, 3, 4, 6),))
    with pytest.raises(QcompError, match=match) as caught:
        from_torch(program)
    assert "; at eager.py:" in str(caught.value) or "output x1" in str(caught.value)


def test_every_target_exists() -> None:
    """A misspelled target would never be met. ExecuTorch registers quantized embeddings, which torch has not."""
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    elsewhere = ("quantized_decomposed.embedding_byte", "quantized_decomposed.embedding_4bit",
                 "quantized_decomposed.embedding_2bit")  # fmt: skip
    for name in (*HANDLERS, *COMPLEX_TARGETS):
        if name.startswith(elsewhere):
            continue
        namespace, operation, overload = (*name.split("."), "")[:3]
        if namespace == "higher_order":
            assert hasattr(torch.ops.higher_order, operation), name
        if namespace in ("aten", "quantized_decomposed", "prims"):
            assert hasattr(getattr(torch.ops, namespace), operation), name
            assert overload in getattr(getattr(torch.ops, namespace), operation).overloads(), name
