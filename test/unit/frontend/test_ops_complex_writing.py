# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors that are made, chosen from, contracted and written to, against eager torch; compiled too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from eager import Call, r
from torch.export import Dim, export

import qcomp

KERNEL = torch.view_as_complex(r(3, 4, 5, 2, seed=4))
see, parts = torch.view_as_complex, torch.view_as_real


def fourier_layer(x: torch.Tensor) -> torch.Tensor:
    """What a Fourier neural operator does to [batch, 3, length]: the low frequencies times a kernel, the rest 0."""
    found = torch.fft.rfft(x)
    kept = torch.zeros(x.shape[0], 4, found.shape[-1], dtype=torch.cfloat)
    kept[:, :, :5] = torch.einsum("bix,iox->box", found[:, :, :5], KERNEL)
    return torch.fft.irfft(kept, n=x.shape[-1])


def made(x: torch.Tensor) -> Any:
    z = see(x)
    ones = torch.ones(2, 4, dtype=torch.cfloat)
    found = torch.zeros_like(z) + 2j, torch.full((4,), 1 - 3j) * z, ones @ z.mT, z @ z.mH, z.reciprocal()
    return tuple(map(parts, found))


def chosen(x: torch.Tensor) -> Any:
    z, mask = see(x), x[..., 0] > 0.1
    found = torch.where(mask, z, z * 1j), z.masked_fill(mask, 2.5), torch.where(mask, z, 0.5), 1 / z, z.cumsum(1)
    return *map(parts, found), z == z.real, torch.where(mask, z, z.conj()) != z


def contracted(x: torch.Tensor) -> Any:
    z = see(x)
    three = torch.einsum("ab,cb,b->ac", z, z.clone() * 1j, z[0] + 1)
    return parts(three), parts(torch.einsum("ab,b->a", z, x[0, :, 0].to(z.dtype)))


def written(x: torch.Tensor) -> Any:
    z = see(x).clone()
    z[:, 1] = x[:, 0, 0]
    z[0, :2] = torch.tensor(1j)
    z[2].copy_(see(x)[1])
    z.imag[0] = 7
    z[:, ::2] *= x[:, ::2, 1] - 2j
    parts(z)[1, :, 0] = x[0, :, 1]
    z.T[0] += 1
    return parts(z)


def written_memory(x: torch.Tensor) -> Any:
    y = x * 1
    z = see(y)
    z[1] *= 2j
    z.real[0] = 5
    return y, z.abs()


@pytest.mark.parametrize("target", ["native", "generic"])
@pytest.mark.parametrize("function", [made, chosen, contracted, written, written_memory])
def test_equals_eager(function: Callable[[torch.Tensor], Any], target: str) -> None:
    x = r(3, 4, 2, seed=2)
    wanted = function(x)
    found = qcomp.compile(export(Call(function), (x,)), target)(x)
    wanted, found = (value if isinstance(value, tuple) else (value,) for value in (wanted, found))
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype and torch.allclose(one.double(), other.double(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decomposed", [False, True])
def test_a_fourier_layer_of_any_batch(decomposed: bool) -> None:
    model = Call(fourier_layer)
    program = export(model, (r(2, 3, 16),), dynamic_shapes=(({0: Dim("n")},),))
    artifact = qcomp.compile(program.run_decompositions() if decomposed else program, "generic")
    for batch in (1, 2, 5):
        x = r(batch, 3, 16, seed=batch)
        assert torch.allclose(artifact(x), fourier_layer(x), rtol=1e-4, atol=1e-5)
