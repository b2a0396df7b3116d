# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The module around the ops: names, structure, constants, locations, sizes, errors; and importing without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.nn import functional
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from qcomp.dialects.location import describe
from qcomp.dialects.nn import ConstantOp
from qcomp.errors import QcompError
from qcomp.frontend import check, from_torch
from qcomp.frontend.pytree import Tree
from qcomp.interpreter.run import interpret


def main_of(module: ModuleOp) -> FuncOp:
    (main,) = module.body.block.ops
    assert isinstance(main, FuncOp)
    return main


def names(attributes: Any) -> list[str]:
    return [entry.data["nn.name"].data for entry in attributes]


def tree(main: FuncOp, name: str) -> Tree:
    text = main.attributes[name]
    assert isinstance(text, StringAttr)
    return Tree.load(text.data)


def example(batch: int) -> tuple[Any, ...]:
    """Arguments of `varied`."""
    g = torch.Generator().manual_seed(5)
    d = {"a": torch.randn(batch, 5, generator=g), "b": [torch.randn(1, generator=g)]}
    return d, torch.randn(2, generator=g), torch.randn(2, 2, generator=g).double()


@pytest.mark.parametrize("batch", [2, 7])
def test_structure_and_results(varied: ExportedProgram, varied_file: Path, batch: int) -> None:
    d, y, k = example(batch)
    module = from_torch(varied_file, (d, y, k))
    main = main_of(module)
    assert main.sym_visibility is not None and main.sym_visibility.data == "public"
    assert names(main.arg_attrs) == ["d_a", "d_b_0", "y", "k"]
    rest = [f"output.0.rest.{index}" for index in (0, 1, 4)]
    assert names(main.res_attrs) == ["output.0.main", *rest, "output.1.0", "output.1.1", "output.2"]
    inputs = tree(main, "nn.in_tree").flatten(((d, y), {"k": k}))
    found = interpret(module, *(value.numpy() for value in inputs))  # pyright: ignore[reportAttributeAccessIssue]
    rebuilt: Any = tree(main, "nn.out_tree").unflatten(found)
    expected = varied.module()(d, y, k=k)
    assert rebuilt[0]["rest"][2:4] == [3, None] and set(rebuilt[0]) == {"main", "rest"}
    leaves = torch.utils._pytree.tree_leaves(expected)  # pyright: ignore
    kept = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    for left, right in zip(found, kept, strict=True):
        assert left.dtype == right.detach().numpy().dtype
        assert np.allclose(left, right.detach().numpy(), 1e-5, 1e-6)


def test_examples_are_checked(varied_file: Path) -> None:
    with pytest.raises(QcompError, match=r"shape \[65, 5\]"):
        from_torch(varied_file, example(65))
    d, y, k = example(3)
    with pytest.raises(QcompError, match="rank 1, not 2"):
        from_torch(varied_file, ({"a": y, "b": d["b"]}, y, k))


class Shared(nn.Module):
    """One weight under two names, an unread one, a passed-through and an unused input."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.unread = nn.Parameter(torch.randn(1000, 1000))

    def forward(self, x: torch.Tensor, unused: torch.Tensor) -> Any:
        return x, self.second(self.first(x)), x


def test_constants_and_aliases() -> None:
    program = torch.export.export(Shared().eval(), (torch.randn(2, 3), torch.randn(5)))
    for form in (program, program.module()):
        module = from_torch(form)
        constants = [op for op in module.walk() if isinstance(op, ConstantOp)]
        assert [op.array.shape for op in constants] == [(3, 3)]
        assert len(main_of(module).body.block.args) == 2
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        found = interpret(module, x, np.zeros(5, np.float32))
        assert np.array_equal(found[0], x) and np.array_equal(found[2], x)


def test_later_changes_do_not_reach_the_module() -> None:
    model = nn.Linear(3, 2).eval()
    program = torch.export.export(model, (torch.randn(4, 3),))
    module, x = from_torch(program), np.ones((4, 3), np.float32)
    before = interpret(module, x)[0]
    with torch.no_grad():
        for value in (*model.parameters(), *program.state_dict.values()):
            value.zero_()
    assert np.array_equal(interpret(module, x)[0], before)


def test_locations() -> None:
    model, inputs = networks.build("resnet8"), networks.example("resnet8")
    module = from_torch(torch.export.export(model, inputs))
    places = {op.name: describe(op.location) or "" for op in module.walk()}
    assert places["nn.conv2d"].startswith("body.3.shortcut.0 (networks.py:")
    assert places["nn.linear"].startswith("head (networks.py:")
    constants = [describe(op.location) for op in module.walk() if isinstance(op, ConstantOp)]
    assert "body.0.0.weight" in constants and "head.bias" in constants
    assert describe(main_of(module).body.block.args[0].location) == "x"


class Bessel(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.i0()


class Unsupported(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(Bessel(), Bessel())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        x = functional.relu(x.igamma(x))
        return x.mode(1, keepdim=True)[0] + functional.dropout(x, 0.5, training=True)


def test_everything_unsupported_in_one_error(tmp_path: Path) -> None:
    program = torch.export.export(Unsupported(), (torch.randn(3, 4),))
    torch.export.save(program, tmp_path / "model.pt2")
    for form in (program, tmp_path / "model.pt2", program.module()):
        with pytest.raises(QcompError) as caught:
            from_torch(form)
        text = str(caught.value)
        assert caught.value.code == "unsupported-op" and "5 ops of the program" in text
        assert "aten.i0.default x2: is not supported; at inner.0 (test_importer.py:" in text
        assert "inner.1 (test_importer.py:" in text
        assert "aten.igamma.default x1" in text and "aten.mode.default x1" in text
        assert "aten.dropout.default x1: dropout in training mode" in text and "model.eval()" in text
        found = check(form)
        assert [refusal.target for refusal in found].count("aten.i0.default") == 2
        assert all("test_importer.py:" in refusal.location for refusal in found)
    assert check(torch.export.export(nn.ReLU(), (torch.randn(3),))) == []


def test_dead_ops_are_not_asked_for() -> None:
    class Dead(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.sort(0)
            return x + 1

    assert check(torch.export.export(Dead(), (torch.randn(3, 4),))) == []


def test_unsupported_values() -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            return x + n

    program = torch.export.export(Sum(), (torch.randn(3), 4))
    module = from_torch(program)
    assert tree(main_of(module), "nn.in_tree").flatten(((1, 4), {})) == [1]
    with pytest.raises(QcompError, match="exported as 4, got 5"):
        tree(main_of(module), "nn.in_tree").flatten(((1, 5), {}))
    dynamic = torch.export.export(Sum(), (torch.randn(3), 4), dynamic_shapes=(None, torch.export.Dim.DYNAMIC))
    with pytest.raises(QcompError, match="numbers as inputs are not supported"):
        from_torch(dynamic)
    with pytest.raises(QcompError, match="complex64"):
        from_torch(torch.export.export(nn.Identity(), (torch.randn(3, dtype=torch.complex64),)))


def test_without_torch(small_file: Path) -> None:
    program = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('torch', 'torchao', 'sympy'):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import qcomp
module = qcomp.from_torch({str(small_file)!r})
print(sum(op.name == 'nn.linear' for op in module.walk()), 'torch' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


@pytest.mark.deep
def test_resnet50_in_time(tmp_path: Path) -> None:
    """Under 1.5 s of CPU from a cold start, all weights read."""
    path = tmp_path / "model.pt2"
    torch.export.save(networks.exported("resnet50")[2], path)
    program = f"""
import time; start = time.process_time()
import qcomp
module = qcomp.from_torch({str(path)!r})
digests = [op.value.data.digest for op in module.walk() if op.name == 'nn.constant']
print(time.process_time() - start, len(digests))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, constants = done.stdout.split()
    assert float(seconds) < 1.5 and int(constants) == 267
