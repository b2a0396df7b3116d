# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/ops.md lists the ops that there are, and what it says of them is so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from qcomp.frontend.ops import HANDLERS
from qcomp.frontend.ops.complexes import COMPLEX_TARGETS

torch: Any = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tools.conformance.ops_page import PAGE, listed_ops, page, read_page  # noqa: E402
from tools.conformance.probes import probes_by_hand  # noqa: E402
from tools.conformance.status import NONE, PARTLY, YES, Status, status  # noqa: E402

TRIED = [
    "aten.conv2d.default", "aten.conv1d.padding", "aten.linear.default", "aten.batch_norm.default",
    "aten.dropout.default", "aten.upsample_bilinear2d.vec", "aten.gru.input",
]  # fmt: skip


def test_all_ops_are_listed() -> None:
    core, others = listed_ops()
    rows = read_page(PAGE.read_text(encoding="utf-8"))
    assert list(rows) == [*core, *others], "python -m tools.conformance.ops_page"
    for name, row in rows.items():
        assert row.imported == ("yes" if name in {*HANDLERS, *COMPLEX_TARGETS} else "no"), name


@pytest.mark.parametrize("name", TRIED)
def test_rows_are_true(name: str) -> None:
    row = read_page(PAGE.read_text(encoding="utf-8"))[name]
    found = status(name, probes_by_hand([name])[name], name in HANDLERS)
    assert found.imported == row.imported
    for ours, written in zip(_steps(found), _steps(row), strict=True):
        assert written in (ours, PARTLY, NONE), "python -m tools.conformance.ops_page"


def _steps(row: Status) -> tuple[str, str, str]:
    return row.interpreted, row.emitted, row.integer


def test_pages_are_read_as_they_are_written() -> None:
    core, others = listed_ops()
    rows = {name: Status(YES, PARTLY, NONE, YES, f"{name} | x") for name in [*core, *others]}
    assert read_page(page(rows)) == rows
