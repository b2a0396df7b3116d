# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything that is not supported shows at once, whatever refuses it, and compile says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import qcomp
from qcomp.backend.check import check_program
from qcomp.cli.main import main
from qcomp.dialects import nn as ir
from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.refusals import Place, RefusalError, refused_kinds
from qcomp.transforms.lower_to_loop import driver, registry


@torch.library.custom_op("checks::twist", mutates_args=())
def twist(x: torch.Tensor) -> torch.Tensor:
    return x.flip(-1)


@twist.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Twist(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return twist(x)


def net() -> nn.Module:
    """Two ops that cannot be imported, with ops of three kinds before, between and after."""
    return nn.Sequential(nn.Linear(5, 4), Twist(), nn.ReLU(), nn.Linear(4, 3), Twist(), nn.Softmax(-1)).eval()


@pytest.fixture
def exported() -> torch.export.ExportedProgram:
    return torch.export.export(net(), (torch.randn(2, 5),))


@pytest.fixture
def file(exported: torch.export.ExportedProgram, tmp_path: Path) -> Path:
    torch.export.save(exported, tmp_path / "net.pt2")
    return tmp_path / "net.pt2"


def without(monkeypatch: pytest.MonkeyPatch, *classes: type) -> None:
    """A target that does not know some ops."""
    qcomp.run_passes(qcomp.parse("func.func @main() {\nfunc.return\n}"), "lower-to-loop")  # loads them all
    table = registry._ENTRIES  # pyright: ignore[reportPrivateUsage]
    known = {cls: entry for cls, entry in table.items() if cls not in classes}
    monkeypatch.setattr(registry, "_ENTRIES", known)


def test_import_and_lowering_in_one_list(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, ir.SoftmaxOp, ir.LinearOp)
    found = check_program(file, "generic")
    kinds = [(kind.op, kind.stage, kind.count) for kind in refused_kinds(found.refusals)]
    assert kinds == [
        ("checks.twist.default", "import", 2), ("nn.linear", "lower", 2), ("nn.softmax", "lower", 1),
    ]  # fmt: skip
    assert not found.supported and found.ops is None
    first = refused_kinds(found.refusals)[0]
    assert [place.module for place in first.places] == ["1", "4"]
    assert {place.file for place in first.places} == {"test_check.py"} and all(place.line for place in first.places)
    assert first.hint is not None and "checks is a custom library" in first.hint


def test_compile_says_the_same(
    exported: torch.export.ExportedProgram, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, ir.SoftmaxOp, ir.LinearOp)
    expected = check_program(file, "generic")
    for program in (file, exported):
        with pytest.raises(RefusalError, match="5 ops of the program cannot be compiled for generic") as caught:
            qcomp.compile(program, target="generic")
        assert caught.value.refusals == expected.refusals and caught.value.code == "unsupported-op"
    with pytest.raises(RefusalError, match="2 ops of the program cannot be imported") as caught:
        from_torch(file)
    assert caught.value.refusals == tuple(entry for entry in expected.refusals if entry.stage == "import")


def test_lowering_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, ir.SoftmaxOp, ir.LinearOp)
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3), nn.Softmax(-1)).eval()
    program = torch.export.export(model, (torch.randn(2, 5),))
    with pytest.raises(RefusalError, match="3 ops of the program cannot be compiled for generic") as caught:
        qcomp.compile(program, target="generic")
    assert caught.value.code == "lower" and {entry.stage for entry in caught.value.refusals} == {"lower"}
    monkeypatch.undo()
    without(monkeypatch, ir.SoftmaxOp)
    with pytest.raises(QcompError, match=r"nn\.softmax: is not lowered to loops") as one:
        qcomp.compile(program, target="generic")
    assert not isinstance(one.value, RefusalError)


def test_types_of_the_interface() -> None:
    module = qcomp.parse("""
    func.func @main(%x: tensor<2x3xui64>, %y: tensor<2x3xui64>) -> (tensor<3x2xui64>, tensor<2x3xui64>) {
      %0 = nn.permute %x {dims = array<i64: 1, 0>} : tensor<2x3xui64> -> tensor<3x2xui64>
      func.return %0, %y : tensor<3x2xui64>, tensor<2x3xui64>
    }
    """)
    found = check_program(module, "generic", opt_level=0)
    assert len(found.refusals) == 5, "two arguments, two results, an op"
    assert all("ui64" in entry.reason for entry in found.refusals)


class Sized(nn.Module):
    """A refused op over a symbolic size, and numbers among the outputs."""

    def __init__(self, numbers: bool) -> None:
        super().__init__()
        self.numbers = numbers

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        return (x * 2, x.shape[0] + 1, n.item()) if self.numbers else twist(x * 2).relu()


@pytest.mark.parametrize(("numbers", "count"), [(False, 1), (True, 2)])
def test_symbols_add_no_refusals_of_their_own(numbers: bool, count: int) -> None:
    inputs, sizes = (torch.randn(3, 5), torch.tensor(4)), {"x": {0: torch.export.Dim("b")}, "n": None}
    program = torch.export.export(Sized(numbers), inputs, dynamic_shapes=sizes)
    found = check_program(program, "generic").refusals
    assert len(found) == count and all(entry.stage == "import" for entry in found)
    if numbers:
        assert all("an output that is a number" in entry.reason for entry in found)


def test_supported() -> None:
    program = torch.export.export(nn.Sequential(nn.Linear(5, 4), nn.ReLU()).eval(), (torch.randn(2, 5),))
    found = check_program(program, "generic")
    assert found.supported and found.ops == 1 and found.in_float == ()


class Alike(nn.Module):
    """Three hundred ops of three kinds; two linears of one shape with weights of their own, and the second again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in range(100):
            x = torch.sigmoid(x + float(step)) * 0.5
        return self.second(self.second(self.first(x))).softmax(-1)


def test_ops_that_are_alike_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those that differ in weights, which decide what a kernel is; and all that are refused are named."""
    module = from_torch(torch.export.export(Alike().eval(), (torch.randn(2, 6),)))
    lowered: list[str] = []
    lower = driver.Lowering._lower  # pyright: ignore[reportPrivateUsage]

    def count(self: driver.Lowering, entry: Any, op: Any) -> None:
        lowered.append(op.name)
        lower(self, entry, op)

    monkeypatch.setattr(driver.Lowering, "_lower", count)
    found = check_program(module, "generic", opt_level=1)
    assert found.supported and found.ops == 304
    assert lowered == ["nn.add", "nn.sigmoid", "nn.mul", "nn.linear", "nn.linear", "nn.softmax"]
    without(monkeypatch, ir.LinearOp, ir.SigmoidOp)
    with pytest.raises(RefusalError) as caught:
        qcomp.compile(module, target="generic", opt_level=1)
    assert caught.value.refusals == check_program(module, "generic", opt_level=1).refusals
    assert len(caught.value.refusals) == 103


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["check", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, file, "--target", "generic", "--json")
    found: Any = json.loads(out)
    assert (code, err) == (1, "")
    assert list(found) == [
        "format_version", "program", "target", "supported", "ops", "refused", "in_float", "error",
    ]  # fmt: skip
    assert list(found["refused"][0]) == ["op", "stage", "count", "reason", "hint", "places"]
    assert list(found["refused"][0]["places"][0]) == ["module", "file", "line"]


def test_a_file_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pt2"
    path.write_bytes(b"PK")
    code, out, err = run(capsys, path)
    assert (code, out) == (1, "") and err.count("\n") == 1 and "x.pt2 is not a .pt2 archive" in err
    code, out, err = run(capsys, path, "--json")
    found: Any = json.loads(out)
    assert (code, err, found["supported"], found["error"]["code"]) == (1, "", False, "malformed-pt2")
    code, out, err = run(capsys, tmp_path / "nothing.pt2")
    assert code == 1 and "no such file" in err
    code, out, err = run(capsys, path, "--target", "pdp11")
    assert code == 2 and "unknown target" in err


def test_what_stays_in_float(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %o = quant.observe %x : tensor<2x4xf32> as !quant.uniform<i8:f32, 0.02:3>
      %w = nn.constant dense<0.5> : tensor<4x4xf32>
      %r = nn.linear %o, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      %p = quant.observe %r : tensor<2x4xf32> as !quant.uniform<i8:f32, 0.01:-128>
      func.return %p : tensor<2x4xf32>
    }
    """
    (tmp_path / "m.mlir").write_text(text)
    code, out, _ = run(capsys, tmp_path / "m.mlir", "--verbose", "--target", "generic")
    assert code == 0 and "in float: nn.linear x1: " in out
    code, out, _ = run(capsys, tmp_path / "m.mlir", "--target", "generic")
    assert code == 0 and out.count("\n") == 1


def test_places_are_read_back() -> None:
    from qcomp.refusals import Refusal

    texts = ["a.b (m.py:3)", "m.py:3", "a.b", "a (b) c", "x\ny (f.py:1)"]
    (kind,) = refused_kinds([Refusal("op", "no", text) for text in texts])
    assert kind.places == (
        Place("a.b", "m.py", 3), Place(None, "m.py", 3), Place("a.b", None, None), Place("a (b) c", None, None),
        Place("x?y", "f.py", 1),
    )  # fmt: skip
