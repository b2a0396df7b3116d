# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes from torch.export through import, passes, text and the interpreter, against eager at several sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from dynamic_models import MODELS, Attention, ConvNet, Sample
from torch import nn
from torch.export import Dim, export

import qcomp
from qcomp.backend.check import check_program

AUTO = Dim.AUTO


def imported(model: nn.Module, inputs: tuple[torch.Tensor, ...], dims: Any) -> Any:
    return qcomp.from_torch(export(model, inputs, dynamic_shapes=dims))


def check(module: Any, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    want = model(*inputs)
    got = qcomp.interpret(module, *(value.numpy() for value in inputs))
    for expected, found in zip(want if isinstance(want, tuple) else (want,), got, strict=True):
        array = cast(torch.Tensor, expected).detach().numpy()
        assert found.shape == array.shape and found.dtype == array.dtype
        np.testing.assert_allclose(found, array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_network_runs_at_all_sizes_before_and_after_passes(name: str, tmp_path: Path):
    sample: Sample = MODELS[name]()
    module = imported(sample.model, sample.inputs(*sample.sizes[2]), sample.dims)
    for sizes in sample.sizes:
        check(module, sample.model, sample.inputs(*sizes))
    qcomp.run_passes(module, "O1,O2", verify=True)
    qcomp.save(module, tmp_path / "net.mlir")
    again = qcomp.parse(tmp_path / "net.mlir")
    for sizes in sample.sizes[:3]:
        check(again, sample.model, sample.inputs(*sizes))


def test_a_pt2_file_keeps_its_symbols(tmp_path: Path):
    sample = Attention.sample()
    torch.export.save(export(sample.model, sample.inputs(3, 7), dynamic_shapes=sample.dims), tmp_path / "a.pt2")
    module = qcomp.from_torch(tmp_path / "a.pt2")
    check(module, sample.model, sample.inputs(2, 5))


def test_examples_fix_sizes_and_wrong_shapes_are_named():
    sample = ConvNet.sample()
    program = export(sample.model, sample.inputs(2), dynamic_shapes=sample.dims)
    module = qcomp.from_torch(program)
    (name,) = [str(symbol) for symbol in program.range_constraints]
    for shape, message in (
        ((65, 3, 8, 8), f"dimension 0 of input x: {name} is 65, allowed are 0 to 64"),
        ((2, 4, 8, 8), "dimension 1 of input x is 4, expected 3"),
        ((2, 3, 8), f"input x: expected shape [{name}, 3, 8, 8], got [2, 3, 8]"),
    ):
        with pytest.raises(qcomp.QcompError) as caught:
            qcomp.interpret(module, np.zeros(shape, np.float32))
        assert caught.value.message == message
    static = qcomp.from_torch(program, example_inputs=sample.inputs(3))
    with pytest.raises(qcomp.QcompError, match=r"expected shape \[3, 3, 8, 8\], got \[2, 3, 8, 8\]"):
        qcomp.interpret(static, np.zeros((2, 3, 8, 8), np.float32))


def test_slices_that_some_sizes_lack_are_refused_when_they_are_known():
    class Last(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, -2:] * 2

    module = imported(Last(), (torch.randn(2, 5),), {"x": {0: AUTO, 1: Dim("s", min=3)}})
    check(module, Last(), (torch.randn(1, 4),))
    with pytest.raises(qcomp.QcompError, match="allowed are 3 to any"):
        qcomp.interpret(module, np.zeros((2, 1), np.float32))


class Derived(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[:, 1:] + y[::2, None, 0] * x.shape[1]


def numbers(x: torch.Tensor) -> torch.Tensor:
    return x / x.shape[1] + x.shape[0] * 2 - x.shape[1] ** -0.5


def made(x: torch.Tensor) -> torch.Tensor:
    n, s = x.shape
    return torch.cat([torch.zeros(n, s), torch.full((n, 2), 3.0), x, torch.arange(1, n + 1)[:, None] * 1.0], 1)


def shaped(x: torch.Tensor) -> torch.Tensor:
    n, s = x.shape
    y = x.repeat(2, 1).view(2, n, s).permute(1, 0, 2).reshape(n, 2 * s)
    return y.unflatten(1, (2, s)).flatten(0, 1).expand(3, -1, -1).sum(0) + x.new_ones(2 * n, s)


class Function(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def means_of_losses(x: torch.Tensor) -> Any:
    y, f = x.sigmoid(), nn.functional
    return f.mse_loss(x, y), f.huber_loss(x, y), f.binary_cross_entropy(y, y), f.kl_div(x, y), f.poisson_nll_loss(x, y)


@pytest.mark.parametrize("function", [numbers, made, shaped, means_of_losses])
def test_sizes_used_as_numbers_and_shapes(function: Callable[[torch.Tensor], Any]):
    model = Function(function)
    module = imported(model, (torch.randn(3, 5),), {"x": {0: AUTO, 1: AUTO}})
    for shape in ((3, 5), (1, 2), (7, 1), (0, 4)):
        check(module, model, (torch.randn(shape),))
    static = qcomp.from_torch(export(model, (torch.randn(3, 5),)))
    x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    for one, other in zip(qcomp.interpret(module, x), qcomp.interpret(static, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_derived_dimensions():
    n = Dim("n", min=1)
    dims = {"x": {0: n, 1: AUTO}, "y": {0: 2 * n, 1: AUTO}}
    module = imported(Derived(), (torch.randn(3, 5), torch.randn(6, 4)), dims)
    check(module, Derived(), (torch.randn(2, 3), torch.randn(4, 2)))
    with pytest.raises(qcomp.QcompError, match="dimension 0 of input y is 5"):
        qcomp.interpret(module, np.zeros((2, 3), np.float32), np.zeros((5, 2), np.float32))


def spectrum(x: torch.Tensor) -> Any:
    f = torch.fft.rfft2(x, norm="ortho")
    return torch.fft.irfft2(f, s=(5, 7), norm="ortho"), torch.view_as_real(torch.fft.fft(f, n=6)), f.abs()


def quantiles(x: torch.Tensor) -> Any:
    shares = torch.tensor([0.2, 0.7])
    return x.quantile(0.3, 1), x.nanquantile(shares, 2), *x.median(1), *x.nanmedian(2, keepdim=True)


@pytest.mark.parametrize("function", [spectrum, quantiles])
def test_what_needs_fixed_sizes_needs_them_of_its_own_dimensions_only(function: Callable[[torch.Tensor], Any]):
    model = Function(function)
    artifact = qcomp.compile(export(model, (torch.randn(3, 5, 7),), dynamic_shapes={"x": {0: AUTO}}), "generic")
    for batch in (3, 1, 4):
        x = torch.randn(batch, 5, 7)
        for found, expected in zip(artifact(x), model(x), strict=True):
            assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(qcomp.QcompError, match="symbolic size"):
        imported(model, (torch.randn(3, 5, 7),), {"x": {1: AUTO, 2: AUTO}})


class Training(nn.Module):
    """A batch norm twice, in training mode, and windows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.norm(self.norm(x) * 3 + 1)
        windows = nn.functional.unfold(x, (2, 3), dilation=(1, 2), stride=2, padding=1)
        return y, self.norm.get_buffer("running_var") * 1, nn.functional.group_norm(x, 3), windows


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_statistics_over_symbolic_images(dtype: torch.dtype, decomposed: bool):
    torch.manual_seed(2)
    model = Training().to(dtype)
    sizes = {"x": {0: Dim("n", min=1), 2: Dim("h", min=3), 3: Dim("w", min=5)}}
    program = export(model, (torch.randn(2, 3, 5, 6, dtype=dtype),), dynamic_shapes=sizes)
    artifact = qcomp.compile(program.run_decompositions() if decomposed else program, "generic")
    near = 1e-4 if dtype == torch.float32 else 0.04
    for shape in ((2, 3, 5, 6), (1, 3, 4, 5), (7, 3, 9, 11)):
        x = (torch.randn(shape) * 2 + 1).to(dtype)
        with torch.no_grad():
            wanted = model(x)
        for found, expected in zip(artifact(x), wanted, strict=True):
            assert found.dtype == expected.dtype
            assert torch.allclose(found.float(), expected.float(), rtol=near, atol=near)


@pytest.mark.parametrize("function", [lambda x: x[0], lambda x: x.flatten().topk(4)[0], lambda x: x[2:] * 2])
def test_sizes_that_are_fixed_are_checked_as_those_of_calls(function: Callable[[torch.Tensor], Any]):
    program = export(Function(function), (torch.randn(5, 3),), dynamic_shapes={"x": {0: AUTO}})
    for door in (qcomp.compile, check_program):
        with pytest.raises(qcomp.QcompError, match=r"does not work for \w+ = 0") as found:
            door(program, "generic", dims={"x.0": 0})
        assert "pass" not in found.value.message
    x = torch.randn(4, 3)  # At 3 torch's own program of the last one is refused by a guard.
    assert torch.equal(qcomp.compile(program, "generic", dims={"x.0": 4})(x), function(x))
