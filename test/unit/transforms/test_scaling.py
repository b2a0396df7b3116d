# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes are linear in the number of ops."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def tool(root: Path) -> ModuleType:
    """tools/pass_scaling.py as a module."""
    spec = importlib.util.spec_from_file_location("pass_scaling", root / "tools" / "pass_scaling.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pass_scaling"] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_is_drawn(request: pytest.FixtureRequest, tmp_path: Path):
    pytest.importorskip("matplotlib")
    tool(request.config.rootpath).plot(str(tmp_path / "p.svg"), [1000, 2000], [["dce", "3", "6", "1.00"]])
    assert "</svg>" in (tmp_path / "p.svg").read_text()


@pytest.mark.deep
def test_time_grows_no_faster_than_the_number_of_ops(request: pytest.FixtureRequest):
    scaling = tool(request.config.rootpath)
    scaling.measure(300)
    (few, before), (many, after) = scaling.measure(500), scaling.measure(4000)
    slow = {
        name: power
        for name in before
        if (power := scaling.exponent((few, many), (before[name], after[name]))) > 1.5 and after[name] > 0.05
    }
    assert not slow
