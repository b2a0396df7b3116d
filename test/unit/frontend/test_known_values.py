# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that follow from constants alone are numbers at import, the same ones from a file and from memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qcomp
from qcomp.frontend import known_values
from qcomp.interpreter import dispatch

torch: Any = pytest.importorskip("torch")


class Model(torch.nn.Module):
    def __init__(self, *formulas: Callable[[Any, Any], Any]):
        super().__init__()
        self.formulas = formulas
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.register_buffer("three", torch.tensor(3))
        self.register_buffer("steps", torch.tensor([2, 1, 3]))
        self.register_buffer("calls", torch.tensor(2))

    def forward(self, x: Any) -> tuple[Any, ...]:
        return tuple(formula(self, x) for formula in self.formulas)


def exported(*formulas: Callable[[Any, Any], Any], x: Any | None = None) -> Any:
    return torch.export.export(Model(*formulas).eval(), (torch.randn(3, 4) if x is None else x,))


def compiled_both_ways(
    tmp_path: Path, *formulas: Callable[[Any, Any], Any], x: Any
) -> tuple[list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]:
    """What eager torch and what the imported module give; the file and the program in memory import as one module."""
    program = exported(*formulas, x=x)
    torch.export.save(program, tmp_path / "model.pt2")
    module = qcomp.from_torch(program)
    assert str(qcomp.from_torch(tmp_path / "model.pt2")) == str(module)
    found = qcomp.interpret(module, x.numpy())
    return [value.numpy() for value in Model(*formulas)(x)], list(found)


def _patches(model: Model, x: Any) -> Any:
    """Position numbers of image patches, as Idefics3's vision embeddings make them."""
    out = torch.full((3, 16), 0)
    for row, patch in enumerate(torch.ones(3, 4, 4, dtype=torch.bool)):
        height = torch.arange(patch[:, 0].sum(), dtype=torch.float32) / patch[:, 0].sum()
        bucket = torch.bucketize(height, torch.arange(0.25, 1.0, 0.25), right=True)
        out[row][patch.view(-1)] = (bucket[:, None] * 4 + bucket).flatten()
    return x[:, :1] + out


def _two_ends(model: Model, x: Any) -> Any:
    places = torch.arange(8)
    first = places[4] - places[0]
    return x + torch.arange(first, first + 4)


EXACT = (
    _patches, _two_ends,
    lambda m, x: x[:, :1] + torch.arange(torch.ones(4, 4).sum()),
    lambda m, x: x[:, :1] + torch.arange(torch.ones(2, 5, dtype=torch.bool)[1].sum(), dtype=torch.float32),
    lambda m, x: x[:, : m.three.item()] * m.steps.float().mean().item(),
    lambda m, x: x.narrow(1, m.steps[1].item(), m.steps[2].item()),
    lambda m, x: x[:, m.mask],
    lambda m, x: x[:, torch.arange(4) > 1],
    lambda m, x: x[torch.ones(3, 4, dtype=torch.bool).tril()],
    lambda m, x: torch.index_put(x, (torch.tensor([2, 0, 1]), m.mask), torch.tensor([7.0, 8.0, 9.0])),
    lambda m, x: x[:, m.mask.nonzero(as_tuple=True)[0]],
    lambda m, x: x.sum() + torch.argwhere(torch.eye(3, 4)[:2].flip(1)),
    lambda m, x: torch.masked_select(x, m.mask),
    lambda m, x: x[:, :1] + torch.unique(torch.tensor([3, 1, 3, 2])),
    lambda m, x: x + torch.unique(torch.tensor([3.5, 1.0, 3.5, 2.0]), return_inverse=True, return_counts=True)[1],
    lambda m, x: x[:, :1] + torch.unique_consecutive(torch.tensor([3, 3, 1, 3]), return_counts=True)[1],
    lambda m, x: torch.repeat_interleave(x, torch.tensor([1, 2, 0, 3]), dim=1),
    lambda m, x: x[:, :1] + torch.repeat_interleave(m.steps),
    lambda m, x: x + torch.bincount(torch.tensor([0, 1, 1, 3])),
    lambda m, x: x[:, :3] + torch.fft.rfftfreq(4, d=0.25),
    lambda m, x: x + torch.fft.fftshift(torch.fft.fftfreq(4, d=0.3)),
    lambda m, x: x[:, :1] + torch.fft.fftfreq(5, d=0.7),
)  # fmt: skip


def test_sizes_and_places_from_constants(tmp_path: Path):
    wanted, found = compiled_both_ways(tmp_path, *EXACT, x=torch.randn(3, 4))
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        assert one.shape == other.shape, number
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6, err_msg=str(number))


WINDOWS = (
    lambda m, x: torch.stft(x, 16, hop_length=5, window=torch.hann_window(16), return_complex=True).abs(),
    lambda m, x: x[:, :9] * torch.hann_window(9, periodic=False),
    lambda m, x: x[:, :9] * torch.hamming_window(9) * torch.hamming_window(9, False, 0.6, 0.3),
    lambda m, x: x[:, :9] * torch.blackman_window(9) + torch.blackman_window(9, periodic=False, dtype=torch.float64),
    lambda m, x: x[:, :9] * torch.bartlett_window(9) + torch.bartlett_window(9, periodic=False),
    lambda m, x: x[:, :9] * torch.kaiser_window(9) + torch.kaiser_window(9, False, 5.5),
    lambda m, x: x[:, :1] * torch.hann_window(1) + torch.bartlett_window(1, False),
)


def test_windows_made_in_forward(tmp_path: Path):
    wanted, found = compiled_both_ways(tmp_path, *WINDOWS, x=torch.randn(2, 50))
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        assert one.dtype == other.dtype, number
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=2e-6, err_msg=str(number))


def test_torch_evaluates_what_the_table_lacks(tmp_path: Path):
    program = exported(lambda m, x: x + torch.histc(torch.arange(5.0), 4) + torch.special.bessel_j0(m.steps)[:1])
    x = torch.randn(3, 4)
    (found,) = qcomp.interpret(qcomp.from_torch(program), x.numpy())
    np.testing.assert_array_equal(found, program.module()(x)[0].numpy())
    torch.export.save(program, tmp_path / "model.pt2")
    with pytest.raises(qcomp.QcompError, match=r"aten.histc.default.*constants.*pass the ExportedProgram"):
        qcomp.from_torch(tmp_path / "model.pt2")


def _counted(model: Model, x: Any) -> Any:
    model.calls.add_(1)
    return x[:, :1] + torch.arange(model.calls.item())


REFUSED = {
    "inputs": (lambda m, x: x[:, :1] + torch.arange((x[0] > 0).sum().item()), "end of aten.arange"),
    "states": (_counted, "end of aten.arange"),
    "random": (lambda m, x: x + torch.rand(4), "aten.rand.default.*call model.eval"),
    "large": (lambda m, x: x[:, :1] + torch.arange(torch.ones(1 << 16, 1 << 16, dtype=torch.bool).sum().item()),
              "end of aten.arange"),
    "repeated": (lambda m, x: torch.repeat_interleave(x, torch.tensor([1, 1 << 40, 1, 1]), dim=1), "numbers at import"),
    "counted": (lambda m, x: x.sum() + torch.bincount(torch.tensor([3, 1 << 40])), "numbers at import"),
    "elements": (lambda m, x: x[x > 0], "a mask as index makes a result whose size depends on data"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_constant(case: str):
    formula, message = REFUSED[case]
    with pytest.raises(qcomp.QcompError, match=f"(?s){message}"):
        qcomp.from_torch(exported(formula))


def test_each_op_is_evaluated_once(monkeypatch: pytest.MonkeyPatch):
    seen: list[object] = []

    def counted(op: Any, operands: Any) -> Any:
        seen.append(op)
        return dispatch.evaluate_op(op, operands)

    monkeypatch.setattr(known_values, "evaluate_op", counted)

    def deep(model: Model, x: Any) -> Any:
        value = torch.ones(2, dtype=torch.int64)
        for _ in range(10):
            value = value + value.flip(0) - 1
            x = x[:, : value[0].item() + 3]
        return x

    program = exported(deep)
    qcomp.from_torch(program)
    assert len(set(seen)) == len(seen) > 20
