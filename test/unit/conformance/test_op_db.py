# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's own operator samples: what is accepted equals eager, in the interpreter and compiled."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import deep
import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("expecttest")
ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tools.conformance import op_db  # noqa: E402
from tools.conformance.judge import EQUAL, NOT_EXPORTED, REFUSED, WRONG, difference, judge  # noqa: E402
from tools.conformance.samples import Sample, operators, spread  # noqa: E402

PARTS = 16
EMITTED_SHARE = 10
"""One operator in so many is compiled too."""


@cache
def names() -> list[str]:
    """All operators."""
    return sorted(operators())


@pytest.mark.parametrize("part", deep.except_for(range(0, PARTS, 4), range(PARTS)))
def test_nothing_is_wrong(part: int) -> None:
    wrong: list[str] = []
    for index in range(part, len(names()), PARTS):
        name = names()[index]
        entry = operators()[name]
        dtype = "float32" if torch.float32 in entry.supported_dtypes("cpu") else "int64"
        result = op_db.run(entry, name, dtype, 1, int(index % EMITTED_SHARE == 0))
        wrong += [f"{name}: {reason}" for reason in result.reasons if reason.startswith(WRONG)]
    assert not wrong


class _Entry:
    """What `op_db` needs of an operator."""

    name = "made up"

    def __init__(self, function: Any, *inputs: Any):
        self.op, self.inputs = function, inputs

    def supported_dtypes(self, device: str) -> set[Any]:
        return {torch.float32}

    def sample_inputs(self, device: str, dtype: Any, requires_grad: bool) -> Any:
        first, *rest = self.inputs
        yield type("Input", (), {"input": first, "args": tuple(rest), "kwargs": {}})()


def sample(function: Any, *inputs: Any) -> Sample:
    """A call as `op_db` has them."""
    return Sample(_Entry(function), next(_Entry(function, *inputs).sample_inputs("cpu", torch.float32, False)))


def test_classes() -> None:
    x = torch.randn(3, 5)
    assert judge(sample(torch.add, x, 2), emit=True).kind == EQUAL
    assert judge(sample(torch.linalg.eigvals, x[:, :3])).kind == REFUSED
    assert judge(sample(lambda x: x[bool(x.sum() > 100) :], x)).kind == NOT_EXPORTED


def test_what_differs_is_seen() -> None:
    want = torch.tensor([1.0, float("nan"), float("inf"), -2.0])
    assert not difference([want.numpy().copy()], [want])
    for place, value in ((0, 1.001), (1, 0.0), (2, -np.inf), (3, np.nan)):
        have = want.numpy().copy()
        have[place] = value
        assert difference([have], [want])
    assert difference([want.numpy().astype(np.float64)], [want])
    assert difference([want.numpy()[None]], [want])
    assert difference([], [want])
    assert difference([np.array([1, 2])], [torch.tensor([1, 3])])
    assert not difference([np.array([1, 2])], [torch.tensor([1, 3])], frozenset({0}))


def test_processes_that_hang_or_die_are_wrong() -> None:
    import os
    import time

    options = op_db.Namespace(samples=1, emit=0, timeout=1.0)
    for function in (lambda x: time.sleep(20), lambda x: os._exit(3)):
        result = op_db.run_isolated(_Entry(function, torch.zeros(2)), "odd", "float32", options)
        assert result.counts == {WRONG: 1}


def test_results_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "found.json")
    for _ in range(2):
        assert op_db.main(["add", "--samples", "1", "--dtypes", "float32,int64", "--json", file]) == 0
    assert len(op_db.read(file)) == 2
    assert "all: 2 samples of 2 operators: equal 2 (100.0%)" in capsys.readouterr().out


def test_shares_make_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_db, "operators", lambda: {name: _Entry(torch.neg, torch.zeros(2)) for name in "abcdefg"})
    monkeypatch.setattr(op_db, "run_isolated", lambda entry, name, dtype, options: op_db.Result(name, dtype))
    options = op_db.Namespace(ops=[], dtypes="float32", json=None)
    shares = [[r.op for r in op_db.results(op_db.Namespace(**vars(options), share=(k, 3)))] for k in (1, 2, 3)]
    assert shares == [["a", "d", "g"], ["b", "e"], ["c", "f"]]


def test_samples_are_spread() -> None:
    assert list(spread(3, 8)) == [0, 1, 2]
    assert list(spread(10, 4)) == [0, 3, 6, 9]
    assert Counter(spread(100, 8)).most_common(1)[0][1] == 1
