# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views by strides, of tensors that lie in any way themselves; through a file too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from eager import Call, compare, ints, r

from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

torch: Any = pytest.importorskip("torch")

FUNCTIONS: list[Callable[..., Any]] = [
    lambda x: x.as_strided((2, 3), (5, 1), 7),
    lambda x: x.as_strided((4, 3), (1, 1)),
    lambda x: x.as_strided((), (), 11),
    lambda x: x.as_strided((0, 3), (1, 1)),
    lambda x: x.as_strided((30,), (1,)),
    lambda x: x.permute(2, 0, 1).as_strided((5, 2), (3, 15)),
    lambda x: x[1:, 1:].as_strided((2, 2), (3, 2)),
    lambda x: (x.permute(2, 0, 1) + 1).as_strided((6, 5), (5, 1)),
    lambda x: x[:, :1].expand(2, 4, 5).as_strided((5, 2), (1, 15)),
    lambda x: torch.as_strided_copy(x, (3, 2), (2, 3), 1),
    lambda x: torch.as_strided_scatter(x, x[0, :2, :2] * 3, (2, 2), (7, 3), 2),
    lambda x: torch.as_strided_scatter(x.permute(1, 2, 0), x[0, :2, :2] * 3, (2, 2), (7, 3), 2),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("make", [r, ints])
def test_as_strided(function: Callable[..., Any], make: Callable[..., Any]) -> None:
    compare(function, make(2, 3, 5))


def test_from_a_file(tmp_path: Path) -> None:
    x = r(2, 3, 5)
    model = Call(FUNCTIONS[6])
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "net.pt2")
    (found,) = interpret(from_torch(tmp_path / "net.pt2"), x.numpy())
    assert np.array_equal(found, model(x).numpy())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[0].as_strided((3, 5), (5, 1), 15), "outside its tensor"),
        (lambda x: torch.as_strided_scatter(x, x[0, :2, :2], (2, 2), (1, 1)), "writes a place twice"),
    ],
)
def test_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(QcompError, match=message):
        from_torch(torch.export.export(Call(function), (r(2, 3, 5),)))
