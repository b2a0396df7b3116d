# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts with inputs and outputs of float16, bfloat16 and float64: called, saved, loaded, self-tested, run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shell
import torch
from compiled import STRICT, run_c
from eager import Call
from torch import nn

import qcomp
from qcomp.backend.artifact import Artifact
from qcomp.backend.interface import Port
from qcomp.backend.selftest import made_up_input
from qcomp.interpreter.reference.narrow_floats import widen

DTYPES = [torch.float16, torch.bfloat16, torch.float64]


class Mixed(nn.Module):
    """What moves, what computes, a constant of each type, and another type among the results."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.scale = nn.Parameter(torch.randn(5, generator=generator).to(dtype))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = x * self.scale - y
        return total, torch.cat([x, y], 1), x > y, total.to(torch.float32)


def compiled(dtype: torch.dtype, target: str) -> tuple[Artifact, tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(1)
    inputs = tuple(torch.randn(3, 5, generator=generator).to(dtype) for _ in range(2))
    model = Mixed(dtype).eval()
    return qcomp.compile(model, target=target, example_inputs=inputs), inputs, model(*inputs)


@pytest.mark.parametrize("target", ["native", "generic"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[6:])
def test_saved_and_loaded(dtype: torch.dtype, target: str, tmp_path: Path) -> None:
    artifact, inputs, expected = compiled(dtype, target)
    artifact.save(tmp_path / "saved")
    for one in (artifact, qcomp.load(tmp_path / "saved")):
        for found, want in zip(one(*inputs), expected, strict=True):
            assert found.dtype == want.dtype and torch.equal(found, want)
    (tmp_path / "saved" / "net.so").unlink()
    assert torch.equal(qcomp.load(tmp_path / "saved")(*inputs)[0], expected[0]), "built again from the sources"


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[6:])
def test_self_test(dtype: torch.dtype, tmp_path: Path) -> None:
    """Strict C99 that finds what it expects, and finds the damage of one expected number."""
    artifact, _, _ = compiled(dtype, "generic")
    artifact.save(tmp_path / "saved")
    done = run_c("gcc", tmp_path / "saved", STRICT)
    assert (done.returncode, done.stdout) == (0, "net: 0 of 75 outputs are not as expected\n")
    path = tmp_path / "saved" / "net_selftest.c"
    text = path.read_text()
    start = text.index("{\n", text.index("expected0[15] =")) + 2
    damaged = text[:start] + "  7," + text[text.index(",", start) + 1 :]
    path.write_text(damaged)
    done = run_c("gcc", tmp_path / "saved", STRICT)
    assert (done.returncode, done.stdout) == (1, "net: 1 of 75 outputs are not as expected\n")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[6:])
def test_self_test_within_rounding(dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a library here, sums are compared within what their order may change."""
    from qcomp.backend import compile as compile_module

    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compile_module, "find_compiler", lambda: None)
    torch.manual_seed(0)
    model, value = nn.Conv2d(3, 4, 3).to(dtype).eval(), torch.randn(1, 3, 7, 5).to(dtype)
    with pytest.warns(UserWarning, match="no C compiler"):
        artifact = qcomp.compile(model, target="generic", example_inputs=(value,))
    artifact.save(tmp_path / "saved")
    done = run_c("gcc", tmp_path / "saved", STRICT)
    assert (done.returncode, done.stdout) == (0, "net: 0 of 60 outputs are not as expected\n")


def test_the_header_names_the_type() -> None:
    for dtype, text in ((torch.float16, "int16_t[3, 5] (float16)"), (torch.bfloat16, "int16_t[3, 5] (bfloat16)")):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            compiled(dtype, "generic")[0].save(Path(folder, "saved"))
            assert f" *   x: input, {text}" in Path(folder, "saved", "net.h").read_text()


def test_made_up_halves_are_spread() -> None:
    for dtype, element in (("float16", ""), ("uint16", "bfloat16")):
        values = made_up_input(3, Port("x", dtype, (4096,), element=element))
        assert values.dtype == dtype
        numbers = widen(values, qcomp_element(element or dtype))
        assert numbers.min() == -2 and numbers.max() == 2 - 1 / 64 and abs(float(numbers.mean())) < 0.1
        assert len(np.unique(numbers)) == 256


def qcomp_element(name: str):
    from qcomp.dialects.element import element_type

    return element_type(name)


BFLOAT = """func.func @main(%x: tensor<2x9xbf16> {nn.name = "x"}) -> (tensor<2x9xbf16> {nn.name = "y"}, tensor<2xbf16> {nn.name = "z"}) {
  %y = nn.add %x, %x : (tensor<2x9xbf16>, tensor<2x9xbf16>) -> tensor<2x9xbf16>
  %z = nn.amax %y {dim = array<i64: 1>, keepdim = false} : tensor<2x9xbf16> -> tensor<2xbf16>
  func.return %y, %z : tensor<2x9xbf16>, tensor<2xbf16>
}
"""  # noqa: E501


def test_run_from_the_command_line(tmp_path: Path) -> None:
    """Bits or float32 in, bits out; what is printed are numbers."""
    (tmp_path / "b.mlir").write_text(BFLOAT)
    numbers = np.linspace(-1, 1, 18, dtype=np.float32).reshape(2, 9)
    held = torch.from_numpy(numbers).bfloat16()
    bits = held.view(torch.int16).numpy().view(np.uint16)
    np.savez(tmp_path / "f.npz", x=numbers)
    np.savez(tmp_path / "u.npz", x=bits)
    np.savez(tmp_path / "v.npz", x=bits.view("V2"))
    assert shell.run("qcomp compile b.mlir -o out", tmp_path).code == 0
    for program in ("out", "b.mlir"):
        printed = {
            shell.run(f"qcomp run {program} --inputs {name}.npz --outputs o.npz", tmp_path).out for name in "fuv"
        }
        first, second = printed.pop().splitlines()
        assert not printed and first.startswith("y: bfloat16[2, 9] min -2 max 2 mean ")
        assert second == f"z: bfloat16[2] [{2 * float(held[0].max()):.8g},  2.        ]"
        with np.load(tmp_path / "o.npz") as file:
            assert np.array_equal(file["y"], (held * 2).view(torch.int16).numpy().view(np.uint16))
    assert shell.run("qcomp run out --random 3", tmp_path).out == shell.run("qcomp run b.mlir --random 3", tmp_path).out
    assert "min 0 max 0" not in shell.run("qcomp run out --random 3", tmp_path).out


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_decomposed_batch_norm_has_the_exports_types(dtype: torch.dtype) -> None:
    def normalized(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.batch_norm(x, torch.full((3,), 0.5, dtype=dtype), torch.full((3,), 2.0, dtype=dtype))

    x = torch.randn(2, 3, 4, dtype=dtype)
    program = torch.export.export(Call(normalized), (x,)).run_decompositions()
    found = qcomp.compile(program, "generic")(x)
    assert found.dtype == dtype and torch.allclose(found.double(), normalized(x).double(), atol=2e-2)
