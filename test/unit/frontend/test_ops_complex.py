# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers and Fourier transforms between real inputs and real outputs, against eager torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from eager import Call, Case, compare, r

import qcomp
from qcomp.errors import QcompError
from qcomp.frontend import from_torch

TURNS = torch.polar(torch.ones(5, 4), torch.linspace(0, 3, 20).reshape(5, 4))
WINDOW = torch.hann_window(12)


def _rotary(x: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding as Llama's own code has it."""
    pairs = torch.view_as_complex(x.reshape(2, 5, 3, 4, 2))
    return torch.view_as_real(pairs * TURNS[:, None]).flatten(3)


def _spectrum(x: torch.Tensor, **options: Any) -> torch.Tensor:
    found = torch.stft(x, 16, 4, 12, window=WINDOW, return_complex=True, **options)
    return torch.view_as_real(found)


CASES: dict[str, Case] = {
    "rotary": (_rotary, (r(2, 5, 3, 8),)),
    "spectrogram": (lambda x: torch.stft(x, 16, 4, 12, window=WINDOW, return_complex=True).abs().pow(2), (r(3, 40),)),
    "stft forms": (
        lambda x: (_spectrum(x, center=False), _spectrum(x[0], normalized=True), _spectrum(x, onesided=False)),
        (r(3, 40),),
    ),
    "back again": (
        lambda x: (
            torch.istft(torch.stft(x, 16, 4, 12, WINDOW, return_complex=True) * 2, 16, 4, 12, WINDOW, length=40),
            torch.istft(torch.stft(x, 8, return_complex=True, normalized=True), 8, normalized=True),
        ),
        (r(3, 40),),
    ),
    "real transforms": (
        lambda x: (
            torch.view_as_real(torch.fft.rfft(x)), torch.fft.irfft(torch.fft.rfft(x), n=7), torch.fft.fft(x).real,
            torch.fft.irfft(torch.fft.rfft(x, n=9, norm="ortho")), torch.fft.irfftn(torch.fft.rfftn(x)),
        ),
        (r(3, 10),),
    ),
    "plane transforms": (
        lambda x: (torch.fft.rfft2(x).abs(), torch.fft.ifft2(torch.fft.fft2(x)).real,
                   torch.fft.fftn(x).resolve_conj().imag,
                   torch.view_as_real(torch.fft.ifft(x, 5, norm="forward").resolve_conj())),
        (r(2, 6, 7),),
    ),
    "arithmetic": (
        lambda x, y: [
            torch.view_as_real(z)
            for a, c in ((torch.view_as_complex(x), torch.view_as_complex(y)),)
            for z in (a + c, a - c * 2, a * c, a / c, a / 3, a * 1j, a.conj() * a, a.exp(), a**2, a * x[..., 0], -a,
                      torch.cat([a, c], 1), torch.stack([a, c]).sum(0), a.transpose(0, 1) @ c, a[:, 1:], a.flip(0))
        ],
        (r(3, 4, 2), r(3, 4, 2, seed=1)),
    ),
    "parts": (
        lambda x: (
            torch.complex(x, x[0]).abs(), torch.polar(x.abs(), x).angle(),
            torch.view_as_complex(x.view(2, 6)[:, :2]).real,
        ),
        (r(3, 4),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str):
    function, inputs = CASES[name]
    compare(function, *inputs, tolerance=2e-5)


@pytest.mark.parametrize("target", ["native", "generic"])
@pytest.mark.parametrize("decomposed", [False, True])
def test_compiles(target: str, decomposed: bool):
    x = r(2, 5, 3, 8)
    program = torch.export.export(Call(lambda v: (_rotary(v), _spectrum(v.flatten(1)))), (x,), strict=False)
    artifact = qcomp.compile(program.run_decompositions() if decomposed else program, target=target)
    for have, want in zip(artifact(x.numpy()), (_rotary(x), _spectrum(x.flatten(1))), strict=True):
        np.testing.assert_allclose(have, want.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (torch.fft.rfft, "complex outputs are not supported.*view_as_real"),
        (lambda x: torch.fft.rfft(x).sin().real, "aten.sin.default.*of complex numbers is not supported"),
        (lambda x: torch.fft.rfft(x.repeat(1, 410)[:, :4097]).real, "a Fourier transform of 4097 elements"),
    ],
)
def test_refusals_say_what_to_do(function: Any, message: str):
    with pytest.raises(QcompError, match=f"(?s){message}"):
        from_torch(torch.export.export(Call(function), (r(3, 10),)))


def test_the_longest_transform_is_accurate():
    compare(lambda x: torch.view_as_real(torch.fft.rfft(x)), r(2, 4096), tolerance=2e-4, decomposed=False)


def test_complex_inputs_are_refused():
    with pytest.raises(QcompError, match="complex64"):
        from_torch(torch.export.export(Call(lambda z: z.real), (TURNS,)))
