# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Torch ops, control flow and PT2E networks with dynamic sizes against eager."""

from __future__ import annotations

import warnings
from typing import Any

import deep
import numpy as np
import pytest
import torch
from symbolic_images import ResNet, noise
from torch import nn
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export
from torch.nn import functional as F
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)

import qcomp

TARGETS = ("generic", "native")


def close(found: Any, want: Any, what: object) -> None:
    found, want = (value if isinstance(value, tuple | list) else (value,) for value in (found, want))
    for place, (one, other) in enumerate(zip(found, want, strict=True)):
        assert one.shape == other.shape and one.dtype == other.dtype, (what, place)
        torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-5, msg=lambda text: f"{what} {place}: {text}")  # noqa: B023


class Many(nn.Module):
    """Ops of daily use over a batch and a length."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        b, t, c = x.shape
        shapes = (
            x.roll(1, 2), x.roll(2, 1), torch.cat([x, x.flip(1)], 1), x.unfold(2, 2, 1), x.repeat(1, 2, 1),
            x.transpose(1, 2).contiguous().view(b * c, t), x.chunk(3, -1)[1], torch.stack([x, x], 1), x[:, ::2],
            x.reshape(-1, c)[:, :2], F.pad(x, (0, 0, 1, 2)), x.repeat_interleave(2, 1), x[:, 1:-1], x.tril(),
            x.unsqueeze(1).expand(-1, 4, -1, -1).mean(1), torch.full((b, t), 2.5), x.new_zeros(b, 3),
        )  # fmt: skip
        reductions = (
            x.std(1), x.var((0, 1), unbiased=False), x.logsumexp(1), x.norm(dim=1), x.abs().amax((1, 2)), x.prod(1),
            x.any(1), (x > 0).sum(1), x.cumsum(1), x.topk(1, 1)[0], x.sort(1)[0], F.one_hot(x.argmax(-1), 3),
        )  # fmt: skip
        return (
            *shapes, *reductions, F.normalize(x, dim=1), torch.einsum("btc,bsc->bts", x, x), x.masked_fill(x > 0, 1.0),
            torch.linspace(0, 1, 4) + x[:, :1, :1], x.size(1) * x, torch.arange(t)[None] * x[..., 0],
            F.log_softmax(x, 1), x.bmm(x.transpose(1, 2)), torch.arange(t) + t,
        )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_ops_of_daily_use(target: str) -> None:
    dims = ({0: Dim("b", min=2, max=50), 1: Dim("t", min=4, max=60)},)
    model = Many()
    artifact = qcomp.compile(export(model, (noise(4, 5, 3),), dynamic_shapes=dims), target=target)
    for b, t in ((4, 5), (2, 4), (7, 33)):
        close(artifact(noise(b, t, 3)), model(noise(b, t, 3)), (b, t))


def _self_product(x: Any, *_: Any) -> Any:
    return torch.softmax(x, -1) @ x.T


class Resized(nn.Module):
    """Pools in all their forms, and resizing by scales and to sizes."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h, w = x.shape[2:]
        pools = (
            F.max_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x, 3, 2, 1, 2),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.max_pool2d(x, 3, 2, 1, return_indices=True)[1], F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
            F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_max_pool2d(x, (2, 3)), F.lp_pool2d(x.abs(), 2, 2),
        )  # fmt: skip
        sizes = [
            F.interpolate(x, scale_factor=2, mode=mode, **({} if "nearest" in mode else {"align_corners": align}))
            for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
            for align in (False, True)
        ]
        return (
            *pools, *sizes, F.interpolate(x, size=(h + 3, 2 * w), mode="bilinear"), F.interpolate(x, size=(5, 7)),
            F.interpolate(x, scale_factor=(1.5, 3.0), mode="bicubic"), F.interpolate(x, scale_factor=0.5),
            F.interpolate(x[:, :, 0], scale_factor=2, mode="linear"), F.interpolate(x, size=(2 * h, w + 1)),
        )  # fmt: skip


@pytest.mark.parametrize("target", deep.except_for(TARGETS[:1], TARGETS))
def test_pools_and_resizing(target: str) -> None:
    model = Resized()
    dims = ({2: Dim.AUTO, 3: Dim.AUTO},)
    artifact = qcomp.compile(export(model, (noise(2, 3, 12, 17),), dynamic_shapes=dims), target=target)
    for h, w in ((12, 17), (7, 8), (33, 9), (6, 64)):
        close(artifact(noise(2, 3, h, w)), model(noise(2, 3, h, w)), (h, w))


class Flow(nn.Module):
    """cond, scan, map and while_loop."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        def step(carried: torch.Tensor, part: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            carried = torch.tanh(self.other(carried) + part)
            return carried, carried * 2

        y = torch.cond(x.sum() > 0, lambda t: self.one(t) + t.shape[0], lambda t: t * 2 - t.mean(0), (x,))
        last, every = scan(step, torch.zeros(x.shape[1], 4), y, dim=0)
        products: Any = map_over(_self_product, x)
        count, grown = while_loop(lambda i, _: i < 3, lambda i, z: (i + 1, z * 1.5 + 1), (torch.tensor(0), x))
        return y, last, every, products, count, grown


@pytest.mark.parametrize("target", deep.except_for(TARGETS[1:], TARGETS))
def test_control_flow(target: str) -> None:
    torch.manual_seed(3)
    model = Flow().eval()
    dims = ({0: Dim("t", min=1, max=50), 1: Dim("b", max=50)},)
    with torch.no_grad():
        artifact = qcomp.compile(export(model, (noise(5, 3, 4),), dynamic_shapes=dims), target=target)
        for t, b in ((5, 3), (1, 2), (33, 7)):
            for x in (noise(t, b, 4), -noise(t, b, 4)):
                close(artifact(x), model(x), (t, b))


class Grids(nn.Module):
    """All forms of grid_sample."""

    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(
            F.grid_sample(x, grid, mode, padding, align)
            for mode in ("bilinear", "nearest")
            for padding in ("zeros", "border", "reflection")
            for align in (False, True)
        )


def test_grid_sample() -> None:
    n = Dim("n", max=40)
    dims = ({0: n, 2: Dim("h", max=50), 3: Dim("w", max=50)}, {0: n, 1: Dim("p", max=50), 2: Dim("q", max=50)})
    model = Grids()
    artifact = qcomp.compile(export(model, (noise(2, 3, 5, 6), noise(2, 4, 7, 2)), dynamic_shapes=dims))
    for b, h, w, p, q in ((2, 5, 6, 4, 7), (1, 1, 3, 1, 2), (0, 2, 2, 2, 2), (3, 33, 7, 2, 9)):
        inputs = noise(b, 3, h, w), noise(b, p, q, 2)
        close(artifact(*inputs), model(*inputs), (b, h, w, p, q))


def converted(model: nn.Module, example: tuple[torch.Tensor, ...], dims: Any, calibration: list[Any], dynamic: bool):
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        prepared = prepare_pt2e(export(model, example, dynamic_shapes=dims).module(), quantizer)
        for inputs in calibration:
            prepared(*inputs)
        return convert_pt2e(prepared)


@pytest.mark.parametrize("image", [False, True])
def test_a_residual_network_in_int8(image: bool) -> None:
    sample = ResNet.sample(image)
    example = sample.inputs(*sample.sizes[0])
    calibration = [sample.inputs(*sizes) for sizes in sample.sizes[:2]]
    model = converted(sample.model, example, sample.dims, calibration, False)
    with torch.no_grad():
        artifacts = {
            target: qcomp.compile(export(model, example, dynamic_shapes=sample.dims), target=target)
            for target in TARGETS
        }
        for artifact in artifacts.values():
            assert artifact.report()["macs_integer_share"] == 1.0
        for sizes in sample.sizes:
            (x,) = sample.inputs(*sizes)
            for artifact in artifacts.values():
                assert artifact.module is not None
                (want,) = qcomp.interpret(artifact.module, x.numpy())
                assert artifact(x).numpy().tobytes() == want.tobytes(), sizes
            np.testing.assert_allclose(artifacts["native"](x).numpy(), model(x).numpy(), rtol=1e-4, atol=1e-5)


def test_dynamically_quantized_linears() -> None:
    torch.manual_seed(5)
    float_model = nn.Sequential(nn.Linear(20, 24), nn.ReLU(), nn.Linear(24, 5)).eval()
    dims = ({0: Dim("b", min=1, max=64), 1: Dim("s", min=1, max=64)},)
    model = converted(float_model, (noise(3, 4, 20),), dims, [(noise(3, 4, 20),)], True)
    with torch.no_grad():
        artifact = qcomp.compile(export(model, (noise(3, 4, 20),), dynamic_shapes=dims))
        assert artifact.report()["macs_integer_share"] == 1.0
        for b, s in ((3, 4), (1, 1), (7, 33)):
            close(artifact(noise(b, s, 20)), model(noise(b, s, 20)), (b, s))
