# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmarks measure what they say."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from compiled import network

from qcomp.backend.compile import emit
from qcomp.backend.target import AVX512VNNI, runs_here

torch: Any = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.benchmark import layers  # noqa: E402
from tools.benchmark.importing import measure  # noqa: E402
from tools.benchmark.kernels import RESNET50, emit_case  # noqa: E402
from tools.benchmark.profile import profile  # noqa: E402
from tools.benchmark.symbolic import both  # noqa: E402
from tools.benchmark.weights import FORMATS  # noqa: E402


def test_resnet50_has_its_work() -> None:
    """4.09 GMAC in 53 convolutions and a linear, as counted from the network itself."""
    cases = {case: emit_case(case, "generic")[1] for case in RESNET50 if case.inputs <= 64}
    assert {str(case): count for case, count in cases.items() if case.size == 224} == {
        "224x224    3 ->   64 7x7 s2": 112 * 112 * 64 * 3 * 49
    }
    assert sum(case.count for case in RESNET50) == 54
    sides = {case: (case.size // case.stride) ** 2 * case.inputs * case.outputs for case in RESNET50}
    assert sum(side * max(case.kernel, 1) ** 2 * case.count for case, side in sides.items()) == 4089184256


@pytest.mark.parametrize("in_turn", [False, True])
def test_profile(in_turn: bool) -> None:
    """A time for every call of the program, in order; the peak only where the dot instruction is used."""
    target = "native" if runs_here(AVX512VNNI) else "generic"
    program = emit(network(), target, 1).program
    found = profile(program, "gcc", "-O1", 0.005, in_turn)
    names = [name for name, _ in found.steps]
    assert [name for name in names if name.startswith(("conv2d", "linear"))] == ["conv2d_0", "conv2d_1", "linear_0"]
    assert names[-1].startswith("dequantize")
    assert all(0 < seconds < 1 for _, seconds in found.steps)
    assert (found.peak > 1e10) == (target == "native")


class Steps(torch.nn.Module):
    """Two states, a branch, and a size that is a symbol."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("last", torch.ones(5))

    def forward(self, x: Any) -> Any:
        self.total.add_(x[0])
        self.last.mul_(self.total.sum())
        return torch.cond(self.last.sum() > 0, lambda x: x.exp() + 1, lambda x: x * 2, (x,)) * self.total


def test_layers_of_a_program_with_states_branches_and_symbols(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    x = torch.ones(4, 3)
    steps = torch.export.export(Steps(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("rows", min=2, max=9)}})
    torch.export.save(steps, tmp_path / "steps.pt2")
    program = str(tmp_path / "steps.pt2")
    options = Namespace(program=program, target="generic", size=5, seconds=0.01, cc=["gcc"], flags="-O1")
    assert layers.run(options) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines if line.endswith("%")]
    assert "if" in names and not {"const", "}", "else"} & {*names}, lines
    times = [float(line.split()[1]) for line in lines if line.endswith("%")]
    assert len(times) > 4 and all(0 <= time < 100 for time in times), lines


def test_command_line() -> None:
    command = [sys.executable, str(ROOT / "tools" / "bench")]
    done = subprocess.run([*command, "kernels", "--only", "linear", "--target", "generic", "--seconds", "0.01"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "linear 2048 -> 1000 x1" in done.stdout and "all, as often as in ResNet-50" in done.stdout
    done = subprocess.run([*command, "kernels", "--target", "pdp11"], capture_output=True, text=True)
    assert done.returncode == 1 and "unknown target pdp11" in done.stderr


def test_weights() -> None:
    """A line for each format, codes smaller than float32 by what they save."""
    command = [sys.executable, str(ROOT / "tools" / "bench"), "weights", "--cc", "gcc", "--target", "generic"]
    options = ["--size", "40x64", "--rows", "1,3", "--layers", "2", "--seconds", "0.01"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.endswith(" MB")]
    assert [" ".join(row[:-5]) for row in rows] == [*FORMATS] * 2
    assert all(float(row[-5]) > 0 for row in rows)


def test_fixed_and_symbolic_sizes() -> None:
    """Both of one program, at the sizes asked for."""
    dims = {"input": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}
    program = torch.export.export(torch.nn.Linear(5, 3).eval(), (torch.ones(2, 4, 5),), dynamic_shapes=dims)
    assert all(0 < seconds < 1 for seconds in both(program, (3, 7, 5), "generic", 0.01))


def test_import(tmp_path: Path) -> None:
    """Weights are in memory once, and torch is not imported."""
    path = tmp_path / "net.pt2"
    wide = torch.nn.Sequential(torch.nn.Linear(2048, 4096, bias=False), torch.nn.Linear(4096, 2048, bias=False))
    torch.export.save(torch.export.export(wide.eval(), (torch.ones(1, 2048),)), path)
    found = measure(path, 1)
    assert found.weights == 2 * 4 * 2048 * 4096 and not found.with_torch
    assert found.seconds < 20 and 1 < found.ratio < 1.3
