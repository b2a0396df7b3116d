# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linears and convolutions whose weights are inputs, from torch to C."""

from __future__ import annotations

from typing import Any

import pytest

import qcomp

torch = pytest.importorskip("torch")
functional = torch.nn.functional

CASES: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    ("linear", [(2, 3, 5), (7, 5), (7,)], {}),
    ("linear", [(5,), (7, 5)], {}),
    ("conv1d", [(2, 6, 11), (4, 3, 3), (4,)], {"stride": 2, "padding": 1, "groups": 2}),
    ("conv2d", [(2, 3, 7, 9), (4, 3, 3, 2)], {"dilation": (1, 2), "padding": "same"}),
    ("conv_transpose1d", [(2, 6, 7), (6, 2, 4)], {"stride": 3, "padding": 2, "output_padding": 1, "groups": 2}),
    ("conv_transpose2d", [(2, 3, 5, 4), (3, 4, 3, 2), (4,)], {"stride": (2, 1), "padding": (4, 0), "dilation": (2, 3)}),
    ("conv3d", [(1, 2, 5, 4, 6), (3, 2, 2, 3, 1), (3,)], {"stride": (1, 2, 1), "padding": (1, 0, 2)}),
]


class Call(torch.nn.Module):
    """A function of its inputs."""

    def __init__(self, name: str, options: dict[str, Any]):
        super().__init__()
        self.function, self.options = getattr(functional, name), options

    def forward(self, *inputs: Any) -> Any:
        return torch.relu(self.function(*inputs, **self.options))


@pytest.mark.parametrize(("name", "shapes", "options"), CASES, ids=[f"{c[0]}-{len(c[1])}" for c in CASES])
def test_weights_that_are_inputs(name: str, shapes: list[tuple[int, ...]], options: dict[str, Any]):
    generator = torch.Generator().manual_seed(len(shapes) + len(name))
    inputs = tuple(torch.randn(shape, generator=generator) for shape in shapes)
    model = Call(name, options)
    artifact = qcomp.compile(torch.export.export(model, inputs))
    torch.testing.assert_close(artifact(*inputs), model(*inputs), rtol=1e-5, atol=1e-5)


def test_statistics_that_are_inputs():
    generator = torch.Generator().manual_seed(7)
    x, mean, weight, bias = (torch.randn(shape, generator=generator) for shape in ((2, 3, 4, 5), (3,), (3,), (3,)))

    class Norm(torch.nn.Module):
        def forward(self, x: Any, mean: Any, var: Any, weight: Any, bias: Any) -> Any:
            return functional.batch_norm(x, mean, var, weight, bias, eps=0.01)

    inputs = (x, mean, torch.tensor([0.1, 2.0, 30.0]), weight, bias)
    artifact = qcomp.compile(torch.export.export(Norm(), inputs))
    torch.testing.assert_close(artifact(*inputs), Norm()(*inputs), rtol=1e-5, atol=1e-5)
