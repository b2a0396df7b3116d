# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions over NaN, infinities, zeros, denormals and their like: the share of `tools/specials` of each run."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import three_way

import qcomp

torch: Any = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tools.conformance.judge import to_array  # noqa: E402
from tools.conformance.special_cases import Case  # noqa: E402
from tools.conformance.specials import DTYPES, Program, compare, main, operands, runnable, sweep  # noqa: E402


@pytest.mark.parametrize("name", DTYPES)
def test_as_torch(name: str) -> None:
    """Every function of every type by the interpreter of the imported program."""
    counts: list[int] = []
    for arity in range(4):
        given = operands(DTYPES[name], arity, 3)
        every = runnable(DTYPES[name], arity, given)
        counts.append(len(every))
        assert sweep(DTYPES[name], arity, every, given, ()) == []
    assert counts[0] >= 17 and counts[1] >= 80 and counts[2] >= 30 and counts[3] >= 1


@pytest.mark.parametrize("arity", [2, 3])
def test_levels(arity: int) -> None:
    """The loop level and C in bits; the other types and numbers of operands are in `tools/specials`."""
    given = operands(torch.float32, arity)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Program(runnable(torch.float32, arity, given)), given, strict=False)
    three_way.check(qcomp.from_torch(program), *map(to_array, given), targets=[three_way.GENERIC])


def test_long_rows() -> None:
    """Beyond the lanes that sums have."""
    given = operands(torch.float32, 0, 19)
    assert sweep(torch.float32, 0, runnable(torch.float32, 0, given), given, ()) == []


@pytest.mark.parametrize(
    "want, have", [(float("nan"), 0.0), (0.0, -0.0), (float("inf"), 3.4e38), (1.0, 1.001), (0.0, float("nan"))]
)
def test_differences_are_found(want: float, have: float) -> None:
    case, value = Case(name="f", arity=1, function=torch.abs), torch.ones(1)
    assert compare(case, [value], torch.tensor([want]), torch.tensor([have])) != ""
    assert compare(case, [value], torch.tensor([want]), torch.tensor([want])) == ""


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hypot", "complex abs", "--dtypes", "float64", "--targets", "generic"]) == 0
    assert capsys.readouterr().out == "2 functions, 0 differ\n"
