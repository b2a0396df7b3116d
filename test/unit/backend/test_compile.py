# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""qcomp.compile: every way in, every level and target in the same bits, options, the report."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
import torch
from compiled import network
from tensor_programs import constant, floats, program
from xdsl.dialects.builtin import ModuleOp

import qcomp
from qcomp import QcompError
from qcomp.backend import compile as compile_module
from qcomp.backend import target as target_module
from qcomp.backend.artifact import Artifact
from qcomp.backend.target import GENERIC
from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.location import location
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
@pytest.mark.parametrize("target", ["generic", "native"])
def test_levels_and_targets(artifact: Artifact, sample: Array, opt_level: int, target: str) -> None:
    """The integers are the same on every target; level 0 computes in float, at most a code away at each layer."""
    compiled = qcomp.compile(network(), target=target, opt_level=opt_level)
    kinds = {row["compute"] for row in compiled.report()["ops"] if row["macs"]}
    assert kinds == ({"f32"} if opt_level == 0 else {"i8"})
    if opt_level:
        assert (compiled(sample) == artifact(sample)).all()
    else:
        assert np.abs(compiled(sample) - artifact(sample)).max() <= 2 * 0.0701


def test_the_program_is_not_changed(sample: Array) -> None:
    module = network()
    before = str(module)
    qcomp.compile(module, opt_level=1)
    assert str(module) == before


def test_files_give_the_name(tmp_path: Path, artifact: Artifact, sample: Array) -> None:
    qcomp.save(network(), tmp_path / "my model.mlir")
    for path in (tmp_path / "my model.mlir", str(tmp_path / "my model.mlir")):
        compiled = qcomp.compile(path, opt_level=1)
        assert compiled.manifest.name == "my_model"
        assert (compiled(sample) == artifact(sample)).all()
    assert qcomp.compile(path, opt_level=1, name="other").manifest.name == "other"


class Doubled(torch.nn.Module):
    """Twice the input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def test_torch_programs(tmp_path: Path) -> None:
    x = torch.randn(3, 5)
    exported = torch.export.export(Doubled(), (x,))
    torch.export.save(exported, tmp_path / "doubled.pt2")
    for given in (exported, exported.module(), tmp_path / "doubled.pt2"):
        assert (qcomp.compile(given, opt_level=1)(x) == x + x).all()
    assert (qcomp.compile(Doubled(), opt_level=1, example_inputs=(x,))(x) == x + x).all()


def test_symbolic_sizes_are_fixed_by_examples() -> None:
    x = torch.randn(3, 5)
    exported = torch.export.export(Doubled(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("b", max=64)}})
    free = qcomp.compile(exported, opt_level=1)
    assert all((free(torch.ones(b, 5)) == 2).all() for b in (0, 1, 7))
    assert (qcomp.compile(exported, opt_level=1, example_inputs=(torch.randn(7, 5),))(torch.ones(7, 5)) == 2).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numerics": "fixed"}, "numerics 'fixed' is not supported"),
        ({"threads": 2}, "threads = 2 is not supported"),
        ({"io": "int8"}, "io 'int8' is not supported"),
        ({"dims": {"b": 1}}, "the program has no symbolic size b"),
        ({"opt_level": 4}, "opt_level 4 does not exist"),
        ({"target": (torch.ones(1),)}, "target is a tuple, expected a name"),
        ({"target": "pdp11"}, r"unknown target pdp11 \(hint: one of native, generic"),
    ],
)
def test_options_that_are_not_there(options: dict[str, Any], message: str) -> None:
    with pytest.raises(QcompError, match=message) as found:
        qcomp.compile(network(), **options)
    assert found.value.code in ("option", "unknown-target")


def test_falling_back_is_said(sample: Array, artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU without VNNI native is generic; asking for generic is no fall-back."""
    monkeypatch.setattr(target_module, "cpu_flags", frozenset)
    with pytest.warns(UserWarning, match="this CPU lacks AVX512-VNNI: compiled for generic") as caught:
        compiled = qcomp.compile(network(), opt_level=1)
    assert caught[0].filename == __file__
    assert compiled.report()["warnings"] == [str(caught[0].message)]
    assert compiled.manifest.target == "generic"
    assert (compiled(sample) == artifact(sample)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert qcomp.compile(network(), target="generic", opt_level=1).report()["warnings"] == []


def test_without_a_compiler(sample: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(UserWarning, match="CC is no-such-compiler.*the artifact can be saved but not called") as caught:
        compiled = qcomp.compile(network(), opt_level=1)
    assert caught[0].filename == __file__
    with pytest.raises(QcompError, match="was not built"):
        compiled(sample)
    compiled.save(tmp_path / "out")
    monkeypatch.delenv("CC")
    assert qcomp.load(tmp_path / "out")(sample).shape == (2, 5)


def test_weights_as_c_where_the_assembler_is_another(
    artifact: Artifact, sample: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_module, "assembler_takes_binaries", lambda: False)
    assert (qcomp.compile(network(), opt_level=1)(sample) == artifact(sample)).all()


def partly_float() -> ModuleOp:
    """Two linears of 7 x 5: one works on codes, one has a weight whose zero point is not 0."""
    rng = np.random.default_rng(3)
    codes = rng.integers(-100, 100, (7, 5)).astype(np.int8)

    def build(add: Any, x: Any) -> Any:
        results: list[Any] = []
        for index, zero in enumerate((0, 4)):
            value = add(DequantizeOp(add(QuantizeOp(x, Encoding.make(0.02 + index / 99, 3)))))
            weight = add(DequantizeOp(add(constant(codes, Encoding.make(0.01, zero)))))
            op = nn.LinearOp(value, weight)
            op.location = location(f"heads.{index}", "model.py", 12 + index)
            results.append(add(DequantizeOp(add(QuantizeOp(add(op), Encoding.make(0.05, 1))))))
        return [*results, add(nn.LinearOp(x, add(constant(rng.standard_normal((9, 5)).astype(np.float32)))))]

    return program(build, floats(2, 5))


def test_report() -> None:
    report = qcomp.compile(partly_float(), opt_level=2).report()
    rows = {row["name"]: row for row in report["ops"] if row["op"] == "nn.linear"}
    zero, one = rows["heads.0"], rows["heads.1"]
    assert zero == {
        "name": "heads.0", "op": "nn.linear", "loc": "model.py:12", "macs": 70, "compute": "i8",
        "memory": "i8", "reason": None,
    }  # fmt: skip
    assert (one["loc"], one["macs"], one["compute"]) == ("model.py:13", 70, "f32")
    assert "zero point" in (one["reason"] or "")
    assert rows["linear"]["macs"] == 90 and rows["linear"]["compute"] == "f32"
    assert report["macs_integer_share"] == 0.5
    assert report["weight_bytes"] > 2 * 35
    assert 0 < report["arena_bound_bytes"] <= report["arena_bytes"]


def test_report_of_a_float_model() -> None:
    def build(add: Any, x: Any) -> Any:
        return add(nn.LinearOp(x, add(constant(np.ones((3, 5), np.float32)))))

    report = qcomp.compile(program(build, floats(2, 5)), target=GENERIC.name, opt_level=1).report()
    assert report["macs_integer_share"] == 0.0
    assert [(row["compute"], row["macs"], row["reason"]) for row in report["ops"]] == [("f32", 30, None)]


def test_verify_holds_passes_to_their_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    original = compile_module.run_passes
    monkeypatch.setattr(
        compile_module, "run_passes", lambda module, text, verify: (seen.append(verify), original(module, text, verify))
    )
    qcomp.compile(network(), opt_level=1, verify=True)
    assert seen == [True] * 3


def test_not_a_program(tmp_path: Path) -> None:
    with pytest.raises(QcompError, match="cannot import a int"):
        qcomp.compile(7)
    with pytest.raises(QcompError, match="has no function main"):
        qcomp.compile(ModuleOp([]))
    lowered = network()
    qcomp.run_passes(lowered, "O1,quantize,O2,integer,lower-to-loop,plan-memory")
    with pytest.raises(QcompError, match="only tensors are compiled"):
        qcomp.compile(lowered)


def test_prepared_and_converted_graphs_are_one_program() -> None:
    """A calibrated PT2E graph compiles as what convert_pt2e makes of it, and compares with its program."""
    inputs = networks.example("golden", 5)
    prepared, converted = networks.quantize(networks.build("golden"), networks.example("golden"))
    one, other = qcomp.compile(prepared, opt_level=2), qcomp.compile(converted, opt_level=2)
    assert (one(*inputs) == other(*inputs)).all()
    assert one.report()["macs_integer_share"] == 1.0
    for row in qcomp.compare(prepared, one, inputs):
        assert (row.max_off or 0) <= 1 and row.differ <= max(1, row.elements / 1000), row


def test_bfloat16_goes_in_and_out_as_tensors() -> None:
    class Twice(torch.nn.Module):
        def forward(self, x, y):
            return x.to(torch.bfloat16) + y, y * 2

    inputs = torch.randn(3), torch.tensor([1.0, -0.3, 1e30], dtype=torch.bfloat16)
    artifact = qcomp.compile(torch.export.export(Twice(), inputs))
    for found, expected in zip(artifact(*inputs), Twice()(*inputs), strict=True):
        assert found.dtype == torch.bfloat16 and torch.equal(found, expected)
    with pytest.raises(QcompError, match=r"input y: expected bfloat16, got torch\.float32"):
        artifact(inputs[0], inputs[0])
    bits = inputs[1].view(torch.int16).numpy().view("uint16")
    assert artifact(inputs[0].numpy(), bits)[1].dtype == "uint16", "numpy has no bfloat16: its bits"
