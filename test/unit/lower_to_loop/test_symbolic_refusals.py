# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What dynamic sizes do not go together with, as docs/dynamic-shapes.md says, and sizes that a call may not have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from symbolic_images import noise
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F

import qcomp
from qcomp.backend.check import check_program

Function = Callable[[torch.Tensor], torch.Tensor]


class Net(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


REFUSED: dict[str, tuple[Function, str]] = {
    "antialiased": (
        lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True),
        "antialiased resizing of symbolic sizes",
    ),
    "scale": (lambda x: F.interpolate(x, scale_factor=1.23456), "a size .* times 1.23456 is not supported"),
    "adaptive": (lambda x: F.adaptive_avg_pool2d(x, (x.shape[2] // 2, 1)), "a number is needed"),
    "weights": (lambda x: F.conv2d(x, x[:, :, :3, :3] * 2), "weight must be a constant"),
    "padding": (lambda x: F.pad(x, (0, x.shape[2] - 5, 0, 0), mode="replicate"), "a number is needed"),
    "diagonal": (lambda x: torch.diag_embed(x), "of symbolic sizes is not supported"),
    "median": (lambda x: x.median(), "of symbolic sizes is not supported"),
    "quantile": (lambda x: x.quantile(0.5, 2), "of symbolic sizes is not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_page_names_what_is_refused(name: str) -> None:
    function, message = REFUSED[name]
    dims = ({2: Dim("h", min=6, max=60), 3: Dim("w", min=6, max=60)},)
    program = export(Net(function), (noise(1, 2, 12, 16),), dynamic_shapes=dims)
    with pytest.raises(qcomp.QcompError, match=message):
        qcomp.compile(program)
    assert not check_program(program).supported
    # Fixed sizes are the way out, also of what import refuses.
    sizes = {"x.2": 12, "x.3": 16}
    assert check_program(program, dims=sizes).supported
    x = noise(1, 2, 12, 16)
    torch.testing.assert_close(qcomp.compile(program, dims=sizes)(x), function(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(qcomp.QcompError, match=r"no symbolic size x\.1"):
        qcomp.compile(program, dims={"x.1": 2})
    with pytest.raises(qcomp.QcompError, match="is 61, allowed are 6 to 60"):
        qcomp.compile(program, dims={"x.2": 61})


CALLS: dict[str, tuple[Function, tuple[int, ...], tuple[int, ...]]] = {
    "amax": (lambda x: x.amax(1), (3, 4), (3, 0)),
    "max": (lambda x: x.max(1)[0], (3, 4), (3, 0)),
    "argmin": (lambda x: x.argmin(1), (3, 4), (3, 0)),
    "last": (lambda x: x[:, -1], (3, 4), (3, 0)),
    "topk": (lambda x: x.topk(2, 1)[0], (3, 4), (3, 1)),
    "select": (lambda x: x.index_select(1, torch.tensor([0])), (3, 4), (3, 0)),
    "convolution": (lambda x: F.conv1d(x[:, None], torch.ones(1, 1, 3)), (3, 4), (3, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_refused_where_torch_refuses_it(name: str) -> None:
    function, good, bad = CALLS[name]
    program = export(Net(function), (noise(*good),), dynamic_shapes=({1: Dim.AUTO},))
    artifact = qcomp.compile(program)
    x = noise(*good)
    torch.testing.assert_close(artifact(x), function(x))
    with pytest.raises((RuntimeError, IndexError)):
        function(torch.zeros(bad))
    with pytest.raises(qcomp.QcompError, match=r"must not be negative|allowed are"):
        artifact(torch.zeros(bad))
    with pytest.raises(qcomp.QcompError, match=r"must not be negative|allowed are"):
        qcomp.interpret(qcomp.from_torch(program), np.zeros(bad, np.float32))
