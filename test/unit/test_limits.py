# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits are those that docs/limits.md lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qcomp import limits
from qcomp.limits import misfit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"


def test_the_page_lists_every_limit_with_its_value():
    stated = {
        name: int(base) ** int(power or 1)
        for name, base, power in re.findall(r"^\| `(\w+)` \| (\d+)(?:\^(\d+))? \|", PAGE.read_text(), re.MULTILINE)
    }
    assert stated == {name: value for name, value in vars(limits).items() if name.startswith("MAX_")}


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ((1 << 18, 1 << 18), None),
        ((1 << 18, 0, 1 << 18, 2), "137438953472 elements"),
        ((-1, (1 << 36) + 1), "68719476737 elements"),
        ((-(2**63), 1 << 36), None),
        ((1,) * 64, None),
        ((1,) * 65, "65 dimensions"),
        ((1 << 40,) * 30, "more than 2^1200 elements"),
    ],
)
def test_sizes(sizes: tuple[int, ...], problem: str | None):
    found = misfit(sizes)
    assert found is None if problem is None else found is not None and found.startswith(problem)
