# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cond, while_loop, scan and map: equal to eager in the interpreter, the loop interpreter and C, through every door."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import three_way
import torch
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch.utils._pytree import tree_leaves

import qcomp
from qcomp.dialects.text import parse_text

COMPILERS = ("gcc -O1", *((f"{three_way.CLANG} -O1",) if three_way.CLANG else ()))


def check(model: nn.Module, *probes: Sequence[torch.Tensor], folder: Path | None = None) -> Any:
    """Every door and level gives eager's results at all `probes`; the module of the first door."""
    program = torch.export.export(model.eval(), tuple(probes[0]))
    forms: list[Any] = [program, program.module(), program.run_decompositions()]
    if folder is not None:
        torch.export.save(program, folder / "m.pt2")
        forms.append(folder / "m.pt2")
    modules = [qcomp.from_torch(form) for form in forms]
    for module in modules:
        qcomp.run_passes(module, "O1,O2", verify=True)
    for probe in probes:
        with torch.no_grad():
            expected = tree_leaves(model(*(value.clone() for value in probe)))
        arrays = [value.numpy() for value in probe]
        for module in modules:
            same(qcomp.interpret(module, *arrays), expected)
        same(qcomp.interpret(modules[0], *arrays, evaluator="torch"), expected)
        same(three_way.check(modules[0], *arrays, compilers=COMPILERS, relative=1e-5), expected)
    return modules[0]


def same(found: Sequence[np.ndarray], expected: Sequence[torch.Tensor]) -> None:
    for left, right in zip(found, expected, strict=True):
        assert left.dtype == right.numpy().dtype and np.allclose(left, right, rtol=1e-4, atol=1e-5)


def seeded(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.4
    return model


X = torch.tensor([[1.5, -2.0, 0.25], [0.5, -1.0, 4.0]])


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: self.a(t), lambda t: self.b(t) * 2, (x,))


def test_both_branches(tmp_path: Path) -> None:
    module = check(seeded(Branches()), (X,), (-X,), folder=tmp_path)
    assert "nn.cond" in str(module)


def test_nested_branches_with_several_results() -> None:
    class Nested(nn.Module):
        def forward(self, x: torch.Tensor, p: torch.Tensor, q: torch.Tensor) -> Any:
            y = x.relu()

            def inner(t: torch.Tensor, u: torch.Tensor) -> Any:
                return torch.cond(q, lambda t, u: (t + u, u * 2), lambda t, u: (t - u, u.neg()), (t, u))

            return torch.cond(p, inner, lambda t, u: (t * u, t + 1), (x, y))

    flags = [(p, q) for p in (True, False) for q in (True, False)]
    check(Nested(), *((X, torch.tensor(p), torch.tensor(q)) for p, q in flags))


def test_while_loop(tmp_path: Path) -> None:
    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor, count: torch.Tensor) -> Any:
            def more(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
                return (i < count) & (y.abs().sum() < 100)

            def step(i: torch.Tensor, y: torch.Tensor) -> Any:
                return i + 1, torch.tanh(self.layer(y)) + x

            return while_loop(more, step, (torch.zeros((), dtype=torch.int64), x * 1))

    check(seeded(Steps()), (X, torch.tensor(5)), (X, torch.tensor(0)), (X * 1e3, torch.tensor(4)), folder=tmp_path)


SWAP = """
func.func @main(%n: tensor<i64>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %zero = nn.constant dense<0> : tensor<i64>
  %one = nn.constant dense<1> : tensor<i64>
  %i, %a, %b = nn.while(%n, %x, %y)
      : (tensor<i64>, tensor<2xf32>, tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%j: tensor<i64>, %p: tensor<2xf32>, %q: tensor<2xf32>):
    %more = nn.compare "gt", %j, %zero : (tensor<i64>, tensor<i64>) -> tensor<i1>
    nn.yield %more : tensor<i1>
  } do {
  ^bb0(%j: tensor<i64>, %p: tensor<2xf32>, %q: tensor<2xf32>):
    %k = nn.sub %j, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    nn.yield %k, %q, %p : tensor<i64>, tensor<2xf32>, tensor<2xf32>
  }
  func.return %a, %b : tensor<2xf32>, tensor<2xf32>
}
"""


def test_carried_values_that_change_places() -> None:
    module = parse_text(SWAP, qcomp.context(), "test")
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    for count in (0, 1, 4, 5):
        found = three_way.check(module, np.array(count), x, y)
        assert [array.tolist() for array in found] == ([[3, 4], [1, 2]] if count % 2 else [[1, 2], [3, 4]])


def test_a_cache_carried_by_a_loop_is_written_in_place() -> None:
    class Fill(nn.Module):
        def forward(self, cache: torch.Tensor, n: torch.Tensor) -> Any:
            def step(i: torch.Tensor, c: torch.Tensor) -> Any:
                return i + 1, c.index_copy(0, i.reshape(1), (c.sum(0, keepdim=True) + i))

            return while_loop(lambda i, c: i < n, step, (torch.zeros((), dtype=torch.int64), cache))

    module = check(Fill(), (torch.ones(4, 3), torch.tensor(3)))
    lowered = str(three_way.lower(module, three_way.TARGETS[0]))
    body = lowered[lowered.index("} do {") : lowered.index("return", lowered.index("} do {"))]
    assert body.count("call @copy") == 1  # the counter


def test_scan_is_a_recurrent_net(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.back = nn.Linear(3, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> Any:
            def step(h: torch.Tensor, row: torch.Tensor) -> Any:
                h = torch.tanh(self.into(row) + self.back(h))
                return h, h * 2 + 1

            return scan(step, torch.zeros(2, 4), x)

    check(seeded(Net()), (torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(1)),), folder=tmp_path)


def test_a_condition_on_sizes_is_decided_by_the_importer() -> None:
    class Sized(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.cond(x.shape[0] > 1, lambda t: t + 1, lambda t: t - 1, (x,))

    assert "nn.cond" not in str(check(Sized(), (X,)))


def test_artifacts_and_text(tmp_path: Path) -> None:
    model = seeded(Branches())
    artifact = qcomp.compile(torch.export.export(model, (X,)))
    artifact.save(tmp_path / "saved")
    for run in (artifact, qcomp.load(tmp_path / "saved")):
        for x in (X, -X):
            assert torch.allclose(run(x), model(x), rtol=1e-4, atol=1e-5)
    assert artifact.module is not None
    qcomp.save(artifact.module, tmp_path / "m.mlir")
    again = qcomp.parse(tmp_path / "m.mlir")
    assert str(again) == str(artifact.module)
    assert np.allclose(qcomp.interpret(again, X.numpy())[0], artifact(X.numpy()), rtol=1e-5)
    assert len(qcomp.compare(torch.export.export(model, (X,)), artifact, X).outputs) == 1


ENDLESS = """
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %y = nn.while(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    nn.yield %p : tensor<i1>
  } do {
  ^bb0(%a: tensor<2xf32>):
    nn.yield %a : tensor<2xf32>
  }
  func.return %y : tensor<2xf32>
}
"""


def test_endless_loops_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qcomp.interpreter.run.MAX_ITERATIONS", 50)
    monkeypatch.setattr("qcomp.interpreter.loop.program.MAX_ITERATIONS", 50)
    module, x = parse_text(ENDLESS, qcomp.context(), "test"), np.ones(2, np.float32)
    for level in (module, three_way.lower(module, three_way.TARGETS[0])):
        assert qcomp.interpret(level, np.array(False), x)[0].tolist() == [1, 1]
        with pytest.raises(qcomp.QcompError, match="does not end within"):
            qcomp.interpret(level, np.array(True), x)


def test_passes_walk_into_regions() -> None:
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<2x3xf32>) -> tensor<6xf32> {
      %c = nn.constant dense<2.0> : tensor<f32>
      %0 = nn.cond %p : (tensor<i1>) -> tensor<6xf32> {
        %d = nn.constant dense<2.0> : tensor<f32>
        %k = nn.mul %c, %d : (tensor<f32>, tensor<f32>) -> tensor<f32>
        %a = nn.reshape %x : tensor<2x3xf32> -> tensor<3x2xf32>
        %b = nn.reshape %a : tensor<3x2xf32> -> tensor<6xf32>
        %m = nn.mul %b, %k : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
        %n = nn.mul %b, %k : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
        %dead = nn.exp %m : tensor<6xf32> -> tensor<6xf32>
        %s = nn.add %m, %n : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
        nn.yield %s : tensor<6xf32>
      } else {
        %b = nn.reshape %x : tensor<2x3xf32> -> tensor<6xf32>
        nn.yield %b : tensor<6xf32>
      }
      %unused = nn.cond %p : (tensor<i1>) -> tensor<2x3xf32> {
        nn.yield %x : tensor<2x3xf32>
      } else {
        nn.yield %x : tensor<2x3xf32>
      }
      func.return %0 : tensor<6xf32>
    }
    """
    module = parse_text(text, qcomp.context(), "test")
    qcomp.run_passes(module, "O1,O2", verify=True)
    result = str(module)
    assert [result.count(name) for name in ("nn.cond", "nn.mul", "nn.reshape", "nn.exp")] == [1, 1, 2, 0]
    for flag in (True, False):
        three_way.check(module, np.array(flag), np.arange(6, dtype=np.float32).reshape(2, 3))
