# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of a program under no_grad and autocast, through every door; exported types that torchao's rewrites left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from eager import r
from torch import nn

from qcomp.errors import QcompError
from qcomp.frontend import from_torch, read_graph
from qcomp.frontend.graph import Graph, Input, Node, Ref, Subgraph
from qcomp.frontend.inline import inline_wrappers
from qcomp.interpreter.run import interpret


class Guarded(nn.Module):
    """Layers under no_grad in no_grad, two results, an op in place on what the region got."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 9), nn.Linear(9, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        with torch.no_grad():
            y.add_(1)
            hidden = torch.relu(self.first(y))
            with torch.enable_grad():
                z = self.second(hidden)
        return z * 3, hidden + y.sum()


class Cast(nn.Module):
    """A linear layer in an autocast region."""

    def __init__(self, enabled: bool):
        super().__init__()
        self.inner, self.enabled = nn.Linear(6, 5), enabled

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.enabled):
            y = self.inner(x)
        return y.float() * 2


def doors(model: nn.Module, inputs: tuple[torch.Tensor, ...], folder: Path, strict: bool) -> Iterator[Any]:
    """The program in memory, as a module, decomposed, and as a file."""
    program = torch.export.export(model, inputs, strict=strict)
    yield program
    yield program.module()
    yield program.run_decompositions()
    torch.export.save(program, folder / "program.pt2")
    yield folder / "program.pt2"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("model", [Guarded(), Cast(False)])
def test_regions_are_inlined(model: nn.Module, strict: bool, tmp_path: Path) -> None:
    x = r(3, 5, 6)
    with torch.no_grad():
        expected = model(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for program in doors(model.eval(), (x,), tmp_path, strict):
        assert not any("wrap_with" in node.target for node in read_graph(program).nodes)
        found = interpret(from_torch(program), x.numpy(), evaluator="torch")
        for left, right in zip(found, expected, strict=True):
            assert np.array_equal(left, right.numpy()), program


def test_autocast_is_refused_until_it_is_spelled_out() -> None:
    x, model = r(3, 6), Cast(True).eval()
    program = torch.export.export(model, (x,))
    with pytest.raises(QcompError, match=r"wrap_with_autocast x1.*run_decompositions"):
        from_torch(program)
    with torch.no_grad():
        expected = model(x).numpy()
    (found,) = interpret(from_torch(program.run_decompositions()), x.numpy(), evaluator="torch")
    assert np.array_equal(found, expected)


def test_names_of_bodies_do_not_clash() -> None:
    inner = Graph((Input("a", Ref("a")),), (Ref("b"),), (relu("b", "a"),), {})
    names = ("x", "b", "c")
    wraps = [
        Node(name, "higher_order.wrap_with_set_grad_enabled", arguments, (Ref(name),))
        for name, source in (("b", "x"), ("c", "b"))
        for arguments in [(("", False), ("", Subgraph("body", inner)), ("", Ref(source)))]
    ]
    graph = inline_wrappers(Graph((Input("x", Ref("x")),), (Ref("c"), Ref("b")), tuple(wraps), {}))
    results = [node.results()[0] for node in graph.nodes]
    assert len(set(results)) == 2 and set(results).isdisjoint(names)
    assert graph.nodes[1].uses() == [results[0]] and graph.outputs == (Ref(results[1]), Ref(results[0]))


def relu(name: str, source: str) -> Node:
    return Node(name, "aten.relu.default", (("self", Ref(source)),), (Ref(name),))
