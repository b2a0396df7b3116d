# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every command prints with --json and --quiet, suggestions for names, progress, completion."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shell

import qcomp
from qcomp import progress
from qcomp.cli import main as qcomp_main
from qcomp.cli.output import show
from qcomp.cli.terminal import progress_line
from qcomp.suggestions import did_you_mean

CONVOLUTION = """func.func @main(%x: tensor<2x3x9x8xf32>) -> (tensor<2x2x9x8xf32>, tensor<2x2x9x8xf32>) {
  %o = quant.observe %x : tensor<2x3x9x8xf32> as !quant.uniform<i8:f32, 0.02:3>
  %w = nn.constant dense<[[[[0.5]], [[-0.25]], [[0.75]]], [[[1.5]], [[-1.0]], [[0.3]]]]> : tensor<2x3x1x1xf32>
  %p = quant.observe %w : tensor<2x3x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.006, 0.012}>
  %c = nn.conv2d %o, %p {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, \
groups = 1 : i64} : (tensor<2x3x9x8xf32>, tensor<2x3x1x1xf32>) -> tensor<2x2x9x8xf32>
  %q = quant.observe %c : tensor<2x2x9x8xf32> as !quant.uniform<i8:f32, 0.03:-7>
  %e = nn.exp %q : tensor<2x2x9x8xf32> -> tensor<2x2x9x8xf32>
  func.return %q, %e : tensor<2x2x9x8xf32>, tensor<2x2x9x8xf32>
}
"""
COMMANDS = {
    "compile": "net.mlir -o out --target generic --opt-level 1",
    "check": "net.mlir --target generic",
    "report": "out",
    "run": "out --random 3",
    "compare": "net.mlir out",
    "bench": "out --seconds 0.01",
    "passes": "",
    "targets": "",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("output")
    (path / "net.mlir").write_text(CONVOLUTION)
    assert shell.run(f"qcomp compile {COMMANDS['compile']} --quiet", path) == shell.Result(0, "", "")
    return path


def test_every_command_has_json_and_quiet(folder: Path) -> None:
    assert set(COMMANDS) == set(qcomp_main.COMMANDS)
    found: dict[str, dict[str, Any]] = {}
    for name, line in COMMANDS.items():
        result = shell.run(f"qcomp {name} {line} --json", folder)
        assert (result.code, result.err) == (0, ""), (name, result.err)
        found[name] = json.loads(result.out, parse_constant=pytest.fail)
        assert found[name]["format_version"] == 1 and next(iter(found[name])) == "format_version", name
        assert name == "check" or found[name]["command"] == name
        if name != "compile":
            assert shell.run(f"qcomp {name} {line} --quiet", folder) == shell.Result(0, "", ""), name
    for name in ("compile", "report"):
        report = found[name]["report"]
        assert report["macs_integer"] == report["macs"] == 2 * 2 * 9 * 8 * 3 and report["macs_integer_share"] == 1.0
        assert "net.c" in found[name]["files"] and found[name]["interface"]["inputs"][0]["name"] == "x"
    assert [row["shape"] for row in found["run"]["outputs"]] == [[2, 2, 9, 8]] * 2
    assert {row["op"] for row in found["compare"]["layers"]} >= {"nn.conv2d"}
    assert found["bench"]["seconds"]["least"] <= found["bench"]["seconds"]["percentile_90"]
    assert found["passes"]["pipelines"]["O1"].startswith("remove-identities")
    assert [row["name"] for row in found["targets"]["targets"] if row["native"]]


def test_errors_are_json_too(folder: Path) -> None:
    for name, code in (("run nosuch.mlir --random 1", "file"), ("report nosuch", "artifact"), ("runn", "usage")):
        result = shell.run(f"qcomp {name} --json", folder)
        assert result.code != 0 and result.err == "", name
        error = json.loads(result.out)["error"]
        assert error["code"] == code and error["message"], name


def test_numbers_that_json_lacks_are_strings(capsys: pytest.CaptureFixture[str]) -> None:
    show(Namespace(json=True, quiet=False, command="x"), "", {"a": [np.inf.real, float("nan")], "b": {"c": -np.inf}})
    assert json.loads(capsys.readouterr().out) == {
        "format_version": 1, "command": "x", "a": ["inf", "nan"], "b": {"c": "-inf"},
    }  # fmt: skip


def test_report_does_not_load_the_library(folder: Path, tmp_path: Path) -> None:
    shell.run("cp -r out elsewhere && echo damaged > elsewhere/net.so", folder)
    text = shell.run("qcomp report elsewhere", folder)
    assert text.code == 0 and "  inputs     x: float32[2, 3, 9, 8]\n" in text.out
    assert "nn.conv2d" in text.out and "1,296" not in text.out.split("MACs")[0]
    assert "no saved artifact" in shell.run("qcomp report .", folder).err


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("qcomp compil net.mlir", "did you mean compile?"),
        ("qcomp compile net.mlir -o o --taget generic", "did you mean --target"),
        ("qcomp compile net.mlir -o o --target generc", "did you mean generic?"),
        ("qcomp compile net.mlri -o o", "did you mean net.mlir?"),
        ("qcomp run net.mlir --random 1 --evaluator torhc", "did you mean torch?"),
        ("qcomp passes fold-constant", "did you mean fold-constants"),
        ("qcomp-opt net.mlir -p fold-constants{dequantise=true}", "did you mean dequantize?"),
        ("qcomp-opt net.mlir -t mlr", "did you mean mlir"),
        ("qcomp-opt net.mlir --print-ir-after-al", "did you mean --print-ir-after-all"),
        ("qcomp-opt bad.mlir", "(hint: did you mean nn.linear?)"),
        ("qcomp-opt worse.mlir", "(hint: did you mean quant.dequantize or quant.requantize"),
        ("qcomp report out --dim y.0=3", "all its sizes are fixed"),
        ("qcomp-opt net.onnx", "net.onnx is an ONNX model, not a .pt2 or .mlir program (hint: export the"),
        ("qcomp compile net.onnx -o o", "it is an ONNX model: export the PyTorch model that it was made of: torch."),
    ],
)
def test_names_that_do_not_exist_get_a_suggestion(folder: Path, line: str, hint: str) -> None:
    (folder / "bad.mlir").write_text('"nn.linaer"() : () -> ()')
    (folder / "worse.mlir").write_text('"qaunt.dequantize"() : () -> ()')
    (folder / "net.onnx").write_bytes(b"\x08")
    result = shell.run(line, folder)
    assert result.code != 0 and hint in result.err and result.err.count("\n") == 1, result.err


def test_suggestions_do_not_take_long_for_a_hostile_name() -> None:
    start = time.process_time()
    assert did_you_mean("a" * 10**6, [f"option-{number}" for number in range(200)], "none") == "none"
    assert time.process_time() - start < 0.5
    assert did_you_mean("GENERIC", ["generic", "native"]) == "did you mean generic?"
    assert did_you_mean("zzz", ["a", "b"]) == "one of a, b"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        progress.step("reading")
        assert list(progress.counted("sample", [7, 8])) == [7, 8]

    for stream, quiet, shown in ((Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_line(quiet):
            work()
        work()
        text = stream.getvalue()
        assert ("reading ..." in text and "sample 2/2 ..." in text) == shown
        if shown:
            assert "\n" not in text and text.endswith("\r") and text.count("reading") == 1
        else:
            assert text == ""


def test_output_stands_in_the_place_of_the_progress_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Terminal()
    monkeypatch.setattr(sys, "stderr", both)
    monkeypatch.setattr(sys, "stdout", both)
    monkeypatch.chdir(folder)
    compiled = "bench net.mlir --target generic --opt-level 0 --seconds 0.01"
    for line in (compiled, "check net.mlir", "compare net.mlir out"):
        both.truncate(0)
        both.seek(0)
        assert qcomp_main.main(line.split()) == 0
        progressed, text = both.getvalue().rsplit("\r", 1)
        assert progressed.endswith(" ") and " ..." in progressed and "\n" not in progressed, line
        assert text.count("\n") > 0 and " ..." not in text


def test_long_work_tells_its_steps(folder: Path) -> None:
    steps: list[str] = []
    with progress.listening(lambda name, number, total: steps.append(f"{name} {number}/{total}")):
        shell.run("qcomp compare net.mlir out", folder)
        shell.run("qcomp bench out --seconds 0.01", folder)
    assert any("pass fuse-qdq" in step for step in steps) and "comparing sample 1/1" in steps
    assert any(step.startswith("measuring") for step in steps)


def test_completion_knows_values() -> None:
    parser = qcomp_main.make_parser()
    (commands,) = [action for action in parser._actions if action.dest == "_command"]
    found: dict[tuple[str, str], list[str]] = {}
    for name, sub in commands.choices.items():  # pyright: ignore
        for action in sub._actions:
            completer = getattr(action, "completer", None)
            if completer is not None and action.dest in ("target", "name"):
                found[name, action.dest] = completer(prefix="")
    assert "generic" in found["compile", "target"] and found["check", "target"] == found["bench", "target"]
    assert {"fuse-qdq", "O1"} <= set(found["passes", "name"])


def test_completion_in_a_shell(folder: Path) -> None:
    pytest.importorskip("argcomplete")
    for line, expected in (
        ("qcomp compile --target g", "generic"),
        ("qcomp passes fuse-q", "fuse-qdq"),
        ("qcomp compile net.m", "net.mlir"),
        ("qcomp-opt -p O1,fuse-q", "O1,fuse-qdq"),
    ):
        tool, module = ("qcomp-opt", "opt") if line.startswith("qcomp-opt") else ("qcomp", "main")
        command = (
            f"_ARGCOMPLETE=1 _ARGCOMPLETE_STDOUT_FILENAME=found COMP_LINE='{line}' COMP_POINT={len(line)} "
            f"{sys.executable} -m qcomp.cli.{module}"
        )
        subprocess.run(command, shell=True, cwd=folder, check=False)
        assert expected in (folder / "found").read_text().split("\x0b")[0], (tool, line)


def test_tensors_and_paths_are_no_list_of_samples() -> None:
    kind = "tensor<1x3xf32>"
    module = qcomp.parse(f"func.func @main(%x: {kind}) -> {kind} {{\n  func.return %x : {kind}\n}}")
    for given, message in (
        (np.zeros((4, 3), np.float32), r"calibration is one ndarray of shape \[4, 3\], expected a list of samples"),
        ({"x": np.zeros((1, 3))}, "calibration is a dict, expected a list of samples"),
        ("samples.npz", "calibration is a str, expected a list of samples"),
        (7, "calibration is a int, expected a list of samples"),
        ([{"x": np.zeros((1, 3))}], "input 0 of a sample is a dict, expected an array or a tensor"),
    ):
        with pytest.raises(qcomp.QcompError, match=message) as caught:
            qcomp.quantize(module, given)  # pyright: ignore[reportArgumentType]
        assert caught.value.hint
