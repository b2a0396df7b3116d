# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of qcomp that look at or interpret programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shell

import qcomp
from qcomp.cli import main as qcomp_main

PROGRAM = """func.func @main(%x: tensor<2x3xf32> {nn.name = "pixels"}, %n: tensor<4xi64>, %q: tensor<5x!quant.uniform<u8<3:9>:f32, 0.5:7>>) \
-> (tensor<2x3xf32>, tensor<4xi64>, tensor<5xf32>) {
  %0 = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = quant.dequantize %q : tensor<5x!quant.uniform<u8<3:9>:f32, 0.5:7>> -> tensor<5xf32>
  func.return %0, %n, %1 : tensor<2x3xf32>, tensor<4xi64>, tensor<5xf32>
}
"""  # noqa: E501


SYMBOLIC = """func.func @main(%x: tensor<?x3xf32, #nn.dims<[b, 3]>>) \
-> tensor<?x3xf32, #nn.dims<[b, 3]>> \
attributes {nn.symbols = [#nn.symbol<b, 0, 9>]} {
  %0 = nn.relu %x : tensor<?x3xf32, #nn.dims<[b, 3]>> -> tensor<?x3xf32, #nn.dims<[b, 3]>>
  func.return %0 : tensor<?x3xf32, #nn.dims<[b, 3]>>
}
"""
COUNTER = """func.func @main(%x: tensor<3xf32>, %a: tensor<3xf32> {nn.name = "a", nn.state = #nn.data<dense<1.5> : tensor<3xf32>>}) \
-> (tensor<3xf32>, tensor<3xf32> {nn.state = "a"}) {
  %0 = nn.add %a, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %0, %0 : tensor<3xf32>, tensor<3xf32>
}
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.mlir").write_text(PROGRAM)
    return tmp_path


def run(folder: Path, line: str) -> shell.Result:
    return shell.run(f"qcomp {line}", folder)


def fails(folder: Path, line: str, code: int = 1) -> str:
    """The one line of error that `line` prints."""
    result = run(folder, line)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: ") and result.err.count("\n") == 1, result.err
    return result.err


def test_help_lists_every_command(folder: Path) -> None:
    text = run(folder, "--help").out
    assert all(f"    {name} " in text for name in qcomp_main.COMMANDS)
    for name in qcomp_main.COMMANDS:
        assert run(folder, f"{name} --help").code == 0
    assert run(folder, "--version").out == f"qcomp {qcomp.__version__}\n"


USAGE = ("argument", "the following", "one of the arguments", "unknown", "unrecognized", "numerics")
"""How errors of the command line begin; all others are of the input."""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("nosuch", "argument COMMAND: invalid choice: 'nosuch'"),
        ("run net.mlir", "one of the arguments --inputs --random is required"),
        ("run net.mlir --random x", "argument --random: invalid int value: 'x'"),
        ("run nosuch.mlir --random 1", "nosuch.mlir: no such file"),
        ("run net.txt --random 1", "net.txt is neither .mlir nor .pt2"),
        ("run empty --random 1", "empty is no saved artifact"),
        ("compile net.mlir", "the following arguments are required: -o/--output"),
        ("compile nosuch.pt2 -o out", "nosuch.pt2: no such file"),
        ("compile net.txt -o out", "net.txt is neither .mlir nor .pt2"),
        ("compile net.mlir -o out --target nosuch", "unknown target nosuch"),
        ("compile net.mlir -o out --opt-level 4", "argument --opt-level: invalid choice: 4"),
        ("compile net.mlir -o out --numerics nosuch", "numerics 'nosuch' is not supported"),
        ("bench nosuch.mlir", "nosuch.mlir: no such file"),
        ("bench net.mlir --seconds x", "argument --seconds: invalid float value: 'x'"),
        ("run net.mlir --inputs nosuch.npz", "nosuch.npz: No such file or directory"),
        ("run net.mlir --inputs net.mlir", "net.mlir is no .npz file of arrays"),
        ("run net.mlir --inputs one.npz", "one.npz holds other; the program takes pixels, n, q"),
        ("run net.mlir --inputs objects.npz", "objects.npz is no .npz file of arrays"),
        ("run net.mlir --inputs wrong.npz", "input 0 of main: expected shape [2, 3], got [3, 2]"),
        ("passes nosuch", "unknown pass 'nosuch'"),
        ("passes cs", "unknown pass 'cs' (hint: did you mean cse"),
        ("check net.npz", "net.npz: no such file"),
        ("check made", "made is neither .mlir nor .pt2 (hint: it is the folder of an artifact"),
        ("report nosuch", "nosuch is no saved artifact: it has no manifest.json (hint: there is no such folder"),
        ("report net.txt", "net.txt is no saved artifact: it has no manifest.json (hint: an artifact is a folder"),
        ("compile net.mlir -o out --int8", "unrecognized arguments: --int8 (hint: qcomp compile --help"),
        ("compile net.mlir -o out --targt x", "unrecognized arguments: --targt x (hint: did you mean --target?"),
    ],
)
def test_errors_are_one_line(folder: Path, line: str, message: str) -> None:
    (folder / "net.txt").write_text("")
    (folder / "empty").mkdir()
    (folder / "made").mkdir()
    (folder / "made/manifest.json").write_text("")
    np.savez(folder / "one.npz", other=np.zeros(2))
    np.savez(folder / "objects.npz", pixels=np.array([{}], dtype=object))
    np.savez(
        folder / "wrong.npz",
        pixels=np.zeros((3, 2), np.float32),
        n=np.zeros(4, np.int64),
        q=np.full(5, 4, np.uint8),
    )
    assert fails(folder, line, 2 if message.startswith(USAGE) else 1).startswith(f"error: {message}")


def test_folders_that_cannot_be_written_are_named(folder: Path) -> None:
    assert fails(folder, "run net.mlir --random 1 --outputs nosuch/out.npz").endswith("/nosuch: no such folder\n")
    error = fails(folder, "compile net.mlir -o net.mlir/out --target generic")
    assert "/net.mlir/out: /" in error and error.endswith("/net.mlir is a file (hint: choose another folder)\n")
    assert "partial" not in error and [path.name for path in folder.iterdir()] == ["net.mlir"]


def test_traceback_when_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(qcomp.QcompError):
        qcomp_main.main(["run", "nosuch.mlir", "--random", "1", "--debug"])
    monkeypatch.setenv("QCOMP_DEBUG", "1")
    with pytest.raises(qcomp.QcompError):
        qcomp_main.main(["run", "nosuch.mlir", "--random", "1"])


def test_run_with_inputs_by_name_or_in_order(folder: Path) -> None:
    pixels = np.array([[-1.5, 2, -0.0], [4, -5, 6]], np.float32)
    numbers, codes = np.array([9, 8, 7, 6]), np.array([3, 4, 7, 8, 9], np.uint8)
    np.savez(folder / "named.npz", q=codes, n=numbers, pixels=pixels)
    np.savez(folder / "ordered.npz", pixels, numbers, codes)
    for name in ("named", "ordered"):
        result = run(folder, f"run net.mlir --inputs {name}.npz --outputs out.npz")
        assert (result.code, result.err) == (0, "")
        with np.load(folder / "out.npz") as out:
            assert out.files == ["output0", "output1", "output2"]
            assert np.array_equal(out["output0"], np.maximum(pixels, 0))
            assert np.array_equal(out["output1"], numbers)
            assert np.array_equal(out["output2"], np.array([-2, -1.5, 0, 0.5, 1], np.float32))
        assert "output2: float32[5] [-2. , -1.5,  0. ,  0.5,  1. ]" in result.out
    assert sorted(path.name for path in folder.iterdir()) == ["named.npz", "net.mlir", "ordered.npz", "out.npz"]


def test_run_on_random_inputs_is_repeatable(folder: Path) -> None:
    first = run(folder, "run net.mlir --random 11").out
    assert first == run(folder, "run net.mlir --random 11").out != run(folder, "run net.mlir --random 12").out
    assert first.count("\n") == 3


def test_run_refuses_to_guess_a_symbolic_size(folder: Path) -> None:
    (folder / "dyn.mlir").write_text(
        "func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {\n  func.return %x : tensor<?x3xf32>\n}\n"
    )
    assert "input x has a symbolic size" in fails(folder, "run dyn.mlir --random 1")
    (folder / "sym.mlir").write_text(SYMBOLIC)
    assert run(folder, "compile sym.mlir -o sym --target generic").code == 0
    for line in ("run sym --random 1", "compare sym.mlir sym"):
        assert "input x has a symbolic size (hint: give it with --inputs, or compile" in fails(folder, line)
    assert "input x has a symbolic size (hint: compile the program with --dim" in fails(folder, "bench sym")
    assert "input x has a symbolic size (hint: fix it with --dim" in fails(folder, "bench sym.mlir --target generic")
    assert run(folder, "bench sym.mlir --dim x.0=2 --target generic --seconds 0.01").code == 0
    np.savez(folder / "x.npz", np.ones((7, 3), np.float32))
    assert run(folder, "run dyn.mlir --inputs x.npz").out.startswith("output0: float32[7, 3] min 1 max 1")


def test_run_starts_from_the_initial_state(folder: Path) -> None:
    (folder / "count.mlir").write_text(COUNTER)
    np.savez(folder / "x.npz", np.array([1, 2, 3], np.float32))
    assert run(folder, "compile count.mlir -o count --target generic").code == 0
    for what in ("count.mlir", "count", "count"):
        result = run(folder, f"run {what} --inputs x.npz")
        assert (result.code, result.out) == (0, "output0: float32[3] [2.5, 3.5, 4.5]\n"), result.err


def test_one_array_without_a_name_is_no_npz(folder: Path) -> None:
    np.save(folder / "x.npy", np.ones((2, 3), np.float32))
    assert "x.npy holds one array without a name, expected an .npz file (hint: " in fails(
        folder, "run net.mlir --inputs x.npy"
    )


def test_run_needs_a_main(folder: Path) -> None:
    (folder / "other.mlir").write_text("func.func @other() {\n  func.return\n}\n")
    assert "no function main" in fails(folder, "run other.mlir --random 1")


def test_passes_lists_letters(folder: Path) -> None:
    lines = run(folder, "passes").out.splitlines()
    assert lines[0].split() == ["pass", "letter", "what", "it", "does"]
    table = {line.split()[0]: line.split()[1] for line in lines[1:]}
    assert table["insert-qdq"] == "lossy" and table["cse"] == "exact"
    text = run(folder, "passes insert-qdq").out
    assert text.startswith("insert-qdq (lossy)\n") and "=>" in text


def test_targets(folder: Path) -> None:
    lines = run(folder, "targets").out.splitlines()
    names = [line[2:].split()[0] for line in lines]
    assert "generic" in names and sum(line.startswith("*") for line in lines) == 1


def export(folder: Path, module: object, *inputs: object) -> None:
    import torch

    program = torch.export.export(module.eval(), inputs)  # pyright: ignore
    torch.export.save(program, folder / "net.pt2")


def test_exported_program_runs_and_becomes_text(folder: Path) -> None:
    import torch

    torch.manual_seed(5)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 5, (3, 2)), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(150, 7)
    )
    x = torch.randn(2, 3, 7, 7)
    export(folder, net, x)
    np.savez(folder / "x.npz", x.numpy())
    assert run(folder, "check net.pt2").out.startswith("net.pt2: everything is supported on ")
    assert run(folder, "run net.pt2 --inputs x.npz --outputs a.npz").code == 0
    assert shell.run("qcomp-opt net.pt2 -o text.mlir && qcomp-opt -f pt2 < net.pt2 | cmp - text.mlir", folder).code == 0
    assert run(folder, "run text.mlir --inputs x.npz --outputs b.npz").code == 0
    with np.load(folder / "a.npz") as a, np.load(folder / "b.npz") as b, torch.no_grad():
        (name,) = a.files
        assert np.array_equal(a[name].view(np.uint32), b[name].view(np.uint32))
        assert np.allclose(a[name], net(x).numpy(), atol=1e-5)
    assert run(folder, "run net.pt2 --inputs x.npz --evaluator torch").code == 0


def test_check_lists_all_unsupported_ops_at_once(folder: Path) -> None:
    import torch

    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(x) + torch.linalg.det(x @ x.T)

    export(folder, Odd(), torch.randn(3, 3))
    result = run(folder, "check net.pt2")
    assert result.code == 1
    assert "aten.linalg_inv" in result.out and "det" in result.out and "test_qcomp.py" in result.out


QUANTIZED = """func.func @main(%x: tensor<2x3x9x8xf32> {nn.name = "image"}) -> (tensor<2x3x9x8xf32> {nn.name = "out"}) {
  %o = quant.observe %x : tensor<2x3x9x8xf32> as !quant.uniform<i8:f32, 0.02:3>
  %r = nn.relu %o : tensor<2x3x9x8xf32> -> tensor<2x3x9x8xf32>
  %p = quant.observe %r : tensor<2x3x9x8xf32> as !quant.uniform<i8:f32, 0.01:-128>
  func.return %p : tensor<2x3x9x8xf32>
}
"""


@pytest.mark.parametrize("target", ["native", "generic"])
def test_compile_save_run(folder: Path, target: str) -> None:
    """What is saved gives the interpreter's bits after the same passes, under the same names."""
    (folder / "q.mlir").write_text(QUANTIZED)
    x = (np.arange(432, dtype=np.float32).reshape(2, 3, 9, 8) - 200) / 77
    np.savez(folder / "x.npz", image=x)
    result = run(folder, f"compile q.mlir -o out --target {target} --name my-net")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("my_net for ") and result.out.endswith("saved in out\n")
    assert (folder / "out" / "my_net.c").is_file() and (folder / "out" / "my_net.h").is_file()
    assert shell.run("qcomp-opt q.mlir -p quantize,integer -o i.mlir", folder).code == 0
    assert run(folder, "run i.mlir --inputs x.npz --outputs a.npz").code == 0
    assert run(folder, "run out --inputs x.npz --outputs b.npz").code == 0
    with np.load(folder / "a.npz") as a, np.load(folder / "b.npz") as b:
        assert a.files == b.files == ["out"]
        assert np.array_equal(a["out"].view(np.uint32), b["out"].view(np.uint32))
    assert run(folder, "compile q.mlir -o out --opt-level 1 --verify-rewrites").code == 0
    assert run(folder, "run out --random 4").out == run(folder, "run i.mlir --random 4").out
    assert "holds other files" in fails(folder, "compile q.mlir -o .")
    np.savez(folder / "wrong.npz", image=x[:1])
    message = fails(folder, "run out --inputs wrong.npz")
    assert message == "error: input image: expected shape [2, 3, 9, 8], got [1, 3, 9, 8]\n"


def test_bench(folder: Path) -> None:
    (folder / "q.mlir").write_text(QUANTIZED)
    assert run(folder, "compile q.mlir -o out").code == 0
    for line in ("bench out --seconds 0.01", "bench q.mlir --seconds 0.01 --target generic --random 3"):
        result = run(folder, line)
        assert (result.code, result.err) == (0, "")
        first, second = result.out.splitlines()
        assert first.startswith("q for ") and " ops, 0 MACs; weights " in first
        assert "calls: least" in second and "GMAC/s" in second


def test_warnings_are_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qcomp.backend import compile as compile_module

    (folder / "q.mlir").write_text(QUANTIZED)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compile_module, "find_compiler", lambda: None)
    result = run(folder, "compile q.mlir -o out")
    assert result.code == 0
    assert result.err.startswith("warning: there is no C compiler here") and result.err.count("\n") == 1


CONVOLUTION = """func.func @main(%x: tensor<2x3x9x8xf32>) -> tensor<2x2x9x8xf32> {
  %o = quant.observe %x : tensor<2x3x9x8xf32> as !quant.uniform<i8:f32, 0.02:3>
  %w = nn.constant dense<[[[[0.5]], [[-0.25]], [[0.75]]], [[[1.5]], [[-1.0]], [[0.3]]]]> : tensor<2x3x1x1xf32>
  %p = quant.observe %w : tensor<2x3x1x1xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.006, 0.012}>
  %c = nn.conv2d %o, %p {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, \
groups = 1 : i64} : (tensor<2x3x9x8xf32>, tensor<2x3x1x1xf32>) -> tensor<2x2x9x8xf32>
  %q = quant.observe %c : tensor<2x2x9x8xf32> as !quant.uniform<i8:f32, 0.03:-7>
  func.return %q : tensor<2x2x9x8xf32>
}
"""


def test_compile_text_at_any_level(folder: Path) -> None:
    """Saved after any pass of the pipeline, it compiles to the same results."""
    (folder / "q.mlir").write_text(CONVOLUTION)
    results: set[str] = set()
    for pipeline in ("", "insert-qdq", "quantize", "quantize,O2", "quantize,O2,integer"):
        assert shell.run(f"qcomp-opt q.mlir -p '{pipeline}' -o s.mlir", folder).code == 0
        assert run(folder, "compile s.mlir -o out").err == ""
        results.add(run(folder, "run out --random 4").out)
    assert len(results) == 1 and "float32[2, 2, 9, 8]" in results.pop()


def test_compare(folder: Path) -> None:
    (folder / "q.mlir").write_text(CONVOLUTION)
    np.savez(folder / "x.npz", np.linspace(-3, 3, 432, dtype=np.float32).reshape(2, 3, 9, 8))
    assert run(folder, "compile q.mlir -o out").code == 0
    for line in ("out --inputs x.npz", "out --random 5", "--target generic", "out --evaluator torch"):
        result = run(folder, f"compare q.mlir {line}")
        assert (result.code, result.err) == (0, "")
        head, *layers = result.out.splitlines()
        assert head.split() == ["off", "differ", "SQNR", "dB", "layer"]
        assert layers.index("end to end") == len(layers) - 2
        assert "nn.conv2d" in "".join(layers) and int(layers[0].split()[0]) <= 1
    short = run(folder, "compare q.mlir out --rows 1").out.splitlines()
    assert short.index("end to end") == 2 and short[-1].endswith("more layers are not worse")
    assert "no saved artifact" in fails(folder, "compare q.mlir nosuch")
