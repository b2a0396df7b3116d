# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every option of qcomp-opt."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import shell
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.exceptions import PassFailedException

from qcomp.cli import opt
from qcomp.dialects import plugins
from qcomp.dialects.text import parse

TWICE = """func.func @main(%a: f32, %b: f32) -> f32 {
  %0 = arith.addf %a, %b : f32
  %1 = arith.addf %a, %b : f32
  %2 = arith.mulf %0, %1 : f32
  func.return %2 : f32
}
"""
BAD = "func.func @main(%a: f32) -> f32 {\n  %0 = arith.addf %a, %b : f32\n  func.return %0 : f32\n}\n"
ILL_TYPED = """func.func @f(%a: f32) {
  %0 = "arith.addf"(%a, %a) : (f32, f32) -> f64
  func.return
}
"""


@dataclass(frozen=True)
class BreakModule(ModulePass):
    """Leaves an op that does not verify."""

    name: ClassVar[str] = "test-break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, arith.AddfOp):
                inner.operands[0] = arith.ConstantOp.from_int_and_width(1, 32).result


@dataclass(frozen=True)
class Fail(ModulePass):
    """Fails, in the way asked for."""

    name: ClassVar[str] = "test-fail"
    bug: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.MulfOp):
                inner.attributes["seen"] = op.attributes.get("x", inner.fastmath)  # pyright: ignore
        if self.bug:
            raise KeyError("lost")
        raise PassFailedException("two\nlines")


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    mine = Universe(all_passes={"test-break": lambda: BreakModule, "test-fail": lambda: Fail})
    monkeypatch.setattr(plugins, "third_party", lambda: (("tests", mine),))


def run(tmp_path: Path, options: str, text: str = TWICE, name: str = "in.mlir") -> shell.Result:
    (tmp_path / name).write_text(text)
    return shell.run(f"qcomp-opt {name} {options}", tmp_path)


def test_prints_the_module(tmp_path: Path) -> None:
    result = run(tmp_path, "")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("builtin.module {\n  func.func @main(") and result.out.endswith("}\n}\n")
    assert run(tmp_path, "", result.out).out == result.out


LARGE = (
    f"func.func @main(%x: tensor<20x!quant.uniform<i8:f32:0, {{{', '.join(['0.5:3'] * 20)}}}>>) -> tensor<40xi16> {{\n"
    f"  %w = nn.constant dense<[{', '.join(map(str, range(40)))}]> : tensor<40xi16>\n"
    "  func.return %w : tensor<40xi16>\n}\n"
)


def test_constants_in_pipes(tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(LARGE)
    broken = shell.run("qcomp-opt in.mlir | qcomp-opt", tmp_path)
    assert broken.code == 1 and "<stdin>:2:" in broken.err and "--inline-constants" in broken.err
    whole = shell.run("qcomp-opt in.mlir --inline-constants | qcomp-opt --inline-constants -p cse", tmp_path)
    assert whole.code == 0 and whole.out.count('dense<"0x') == 3 and 'dense<"0x000001000200' in whole.out
    assert shell.run("qcomp-opt in.mlir --inline-constants -o out.mlir", tmp_path).code == 0
    assert not (tmp_path / "out.safetensors").exists()
    assert run(tmp_path, "--inline-constants", (tmp_path / "out.mlir").read_text(), "again.mlir").out == whole.out


def test_pipeline_runs_in_order(tmp_path: Path) -> None:
    assert run(tmp_path, "-p cse").out.count("arith.addf") == 1
    assert run(tmp_path, "-p cse,dce").code == 0
    assert run(tmp_path, "-p canonicalize").code == 0  # one of xDSL's own


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-p sce", "error: unknown pass 'sce' (hint: did you mean "),
        ("-p 'cse{x=3}'", 'error: pass cse: Provided arguments ["x"] not found'),
        ("-p 'cse{'", "error: pipeline 'cse{'"),
        ("-t mlri", "error: unknown target 'mlri' (hint: did you mean mlir"),
        ("-t 'a b'", "error: target 'a b' does not parse"),
        ("-t 'c{nosuch=1}'", 'error: target c: Provided arguments ["nosuch"] not found'),
        ("--nonsense", "error: unrecognized arguments: --nonsense"),
        ("--print-ir", "error: unrecognized arguments: --print-ir"),
        ("-f onnx", "error: argument -f/--frontend: invalid choice: 'onnx'"),
    ],
)
def test_usage_errors_are_one_line(tmp_path: Path, options: str, message: str) -> None:
    result = run(tmp_path, options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(message) and result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BAD, "in.mlir:2:23: error: value %b is used but not defined"),
        ("func.func @main() {\n\n  nosuch.op\n}", "in.mlir:3:3: error: Operation nosuch.op is not registered"),
        ("%0 = arith.constant 1 : f33", "in.mlir:1:25: error: "),
        (
            'func.func @f(%a: tensor<2x!quant.uniform<i8:f32, -1.0>>) {\n  "func.return"() : () -> ()\n}',
            "in.mlir:1:27: error: ",
        ),
        (
            ILL_TYPED,
            "in.mlir:2:3: error: ",
        ),
    ],
)
def test_errors_in_the_text_have_a_position(tmp_path: Path, text: str, message: str) -> None:
    result = run(tmp_path, "", text)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(message), result.err
    assert result.err.count("\n") == 1


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    result = shell.run("qcomp-opt nosuch.mlir", tmp_path)
    assert (result.code, result.err) == (1, "error: nosuch.mlir: No such file or directory\n")
    (tmp_path / "raw.mlir").write_bytes(b"\xff\xfe\x00")
    result = shell.run("qcomp-opt raw.mlir", tmp_path)
    assert (result.code, result.err) == (1, "error: raw.mlir is no UTF-8 text\n")


def test_reads_standard_input(tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(TWICE)
    assert shell.run("qcomp-opt -p cse < in.mlir", tmp_path).out == run(tmp_path, "-p cse").out
    assert shell.run("qcomp-opt - -f mlir < in.mlir", tmp_path).code == 0
    (tmp_path / "bad.mlir").write_text(BAD)
    assert shell.run("qcomp-opt < bad.mlir", tmp_path).err.startswith("<stdin>:2:23: error:")


def test_split_input_file(tmp_path: Path) -> None:
    text = f"{TWICE}// -----\n{BAD}// ----- //\n// -----\n{TWICE}"
    assert run(tmp_path, "", text).code == 1
    result = run(tmp_path, "--split-input-file -p cse", text)
    assert result.code == 1
    assert result.err == "in.mlir:9:23: error: value %b is used but not defined\n"
    assert result.out.count("arith.addf") == 2 and result.out.count("// -----\n") == 1
    clean = run(tmp_path, "--split-input-file", f"{TWICE}// -----\n{TWICE}")
    assert run(tmp_path, "--split-input-file", clean.out).out == clean.out


def annotated(comment: str) -> str:
    return BAD.replace("{\n", "{\n  " + comment + "\n", 1)


@pytest.mark.parametrize(
    "comment",
    [
        "// expected-error@+1 {{%b is used but not defined}}",
        "// expected-error@below {{used but}}",
        "// expected-error @+1 {{used}}",
        "// expected-error-re@+1 {{value %{{[a-c]}} is {{.*}} not}}",
    ],
)
def test_verify_diagnostics_accepts_what_is_announced(tmp_path: Path, comment: str) -> None:
    result = run(tmp_path, "--verify-diagnostics", annotated(comment))
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize(
    ("comment", "problems"),
    [
        ("// nothing announced", ["in.mlir:3:23: error: unexpected error: value %b"]),
        (
            "// expected-error@+1 {{something else}}",
            ["in.mlir:3:23: error: unexpected error", 'in.mlir:2: error: expected error "something else" at line 3'],
        ),
        (
            "// expected-error@+2 {{used}}",
            ["in.mlir:3:23: error: unexpected error", 'in.mlir:2: error: expected error "used" at line 4'],
        ),
        (
            "// expected-remark@+1 {{used}}",
            ["in.mlir:3:23: error: unexpected error", 'in.mlir:2: error: expected remark "used" at line 3'],
        ),
        (
            "// expected-error@unknown {{used}}",
            ["in.mlir:3:23: error: unexpected error", 'in.mlir:2: error: expected error "used" without a line'],
        ),
    ],
)
def test_verify_diagnostics_refuses_the_rest(tmp_path: Path, comment: str, problems: list[str]) -> None:
    result = run(tmp_path, "--verify-diagnostics", annotated(comment))
    assert result.code == 1
    lines = result.err.splitlines()
    assert len(lines) == len(problems)
    assert all(line.startswith(problem) for line, problem in zip(lines, problems, strict=True)), result.err


def test_verify_diagnostics_misses_an_error_that_does_not_come(tmp_path: Path) -> None:
    result = run(tmp_path, "--verify-diagnostics", "// expected-error@+1 {{x}}\n" + TWICE)
    assert (result.code, result.err) == (1, 'in.mlir:1: error: expected error "x" at line 2 was not produced\n')


def test_verify_diagnostics_by_chunk(tmp_path: Path) -> None:
    good = annotated("// expected-error@+1 {{not defined}}")
    options = "--split-input-file --verify-diagnostics"
    assert run(tmp_path, options, f"{TWICE}// -----\n{good}").code == 0
    result = run(tmp_path, options, f"{good}// -----\n{TWICE}// -----\n{BAD}")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert result.err.startswith("in.mlir:15:23: error: unexpected error")


def test_verify_diagnostics_of_a_pass_without_a_line(tmp_path: Path, plugin: None) -> None:
    text = "// expected-error@unknown {{pass test-fail: two lines}}\n" + TWICE
    assert run(tmp_path, "--verify-diagnostics -p test-fail", text).code == 0


@pytest.mark.parametrize("flag", ["--print-ir-after-all", "--mlir-print-ir-after-all"])
def test_print_ir_after_all(tmp_path: Path, flag: str) -> None:
    result = run(tmp_path, f"{flag} -p cse,dce")
    heads = [line for line in result.err.splitlines() if line.startswith("// -----//")]
    assert heads == ["// -----// IR Dump After cse //----- //", "// -----// IR Dump After dce //----- //"]
    assert result.err.count("arith.addf") == 2
    assert result.out == run(tmp_path, "-p cse,dce").out


def test_print_ir_before_and_after_a_pass(tmp_path: Path) -> None:
    result = run(tmp_path, "--print-ir-before cse --print-ir-after=dce -p cse,dce")
    heads = [line for line in result.err.splitlines() if line.startswith("// -----//")]
    assert heads == ["// -----// IR Dump Before cse //----- //", "// -----// IR Dump After dce //----- //"]
    assert result.err.count("arith.addf") == 3
    heads = run(tmp_path, "--print-ir-before-all -p cse,dce").err
    assert heads.count("IR Dump Before") == 2 and heads.count("IR Dump After") == 0


def test_print_ir_of_a_failing_pass(tmp_path: Path, plugin: None) -> None:
    result = run(tmp_path, "--print-ir-after-all -p cse,test-fail")
    assert result.code == 1 and "// -----// IR Dump After test-fail Failed //----- //" in result.err


def test_dumps_elide_constants(tmp_path: Path) -> None:
    numbers = ", ".join(str(float(n)) for n in range(17))
    text = (
        "func.func @f() -> (tensor<17xf32>, tensor<2xf32>) {\n"
        f"  %0 = arith.constant dense<[{numbers}]> : tensor<17xf32>\n  %1 = arith.constant dense<2.5> : tensor<2xf32>\n"
        "  func.return %0, %1 : tensor<17xf32>, tensor<2xf32>\n}\n"
    )
    result = run(tmp_path, "--print-ir-after-all -p cse", text)
    assert "arith.constant dense_resource<__elided__> : tensor<17xf32>" in result.err
    assert "dense<2.5" in result.err and "1.600000e+01" not in result.err and "1.600000e+01" in result.out


def test_timing(tmp_path: Path) -> None:
    result = run(tmp_path, "--mlir-timing -p cse,dce")
    names = [line.split()[-1] for line in result.err.splitlines() if "%)" in line]
    assert names == ["Parser", "cse", "dce", "Output", "Total"]
    assert "Execution time report" not in result.out


def test_generic_and_debuginfo(tmp_path: Path) -> None:
    generic = run(tmp_path, "--print-op-generic")
    assert '"arith.addf"(%a, %b)' in generic.out
    assert run(tmp_path, "", generic.out).out == run(tmp_path, "").out
    located = run(tmp_path, "--print-debuginfo")
    assert 'loc("in.mlir":2:3)' in located.out
    again = run(tmp_path, "--print-debuginfo", located.out, "other.mlir")
    assert again.out == located.out
    assert "fastmath" not in run(tmp_path, "--print-no-properties --print-op-generic").out.split("{", 1)[0]


def test_syntax_highlight(tmp_path: Path) -> None:
    assert "\x1b[" in run(tmp_path, "--syntax-highlight").out
    assert "\x1b[" not in run(tmp_path, "").out


def test_no_implicit_module(tmp_path: Path) -> None:
    result = run(tmp_path, "--no-implicit-module")
    assert result.code == 1 and "builtin.module" in result.err
    assert run(tmp_path, "--no-implicit-module", f"builtin.module {{\n{TWICE}}}\n").code == 0


def test_allow_unregistered_dialect(tmp_path: Path) -> None:
    text = '%0 = "alien.op"() : () -> i32\n'
    assert run(tmp_path, "", text).code == 1
    assert '"alien.op"()' in run(tmp_path, "--allow-unregistered-dialect", text).out


def test_disable_verify_lasts_for_one_run(tmp_path: Path) -> None:
    assert run(tmp_path, "--disable-verify", ILL_TYPED).code == 0
    assert run(tmp_path, "", ILL_TYPED).code == 1


def test_a_pass_that_breaks_the_module(tmp_path: Path, plugin: None) -> None:
    result = run(tmp_path, "-p test-break")
    assert result.code == 3 and result.err.count("\n") == 2  # The second tells of the reproducer.
    assert result.err.startswith("in.mlir:2:3: error: pass test-break: 'arith.addf': "), result.err
    assert run(tmp_path, "-p test-break --disable-verify").code == 0


def test_a_pass_that_fails(tmp_path: Path, plugin: None) -> None:
    assert run(tmp_path, "-p test-fail").err == "error: pass test-fail: two lines\n"
    bug = run(tmp_path, "-p 'test-fail{bug=true}'")
    assert bug.code == 3 and bug.err.startswith("error: pass test-fail: internal error: KeyError: 'lost'\nnote: ")


@pytest.mark.parametrize("how", ["option", "environment"])
def test_traceback_only_when_asked(tmp_path: Path, plugin: None, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "environment":
        monkeypatch.setenv("QCOMP_DEBUG", "1")
    (tmp_path / "in.mlir").write_text(TWICE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception) as caught:
        opt.main(["in.mlir", "-p", "test-fail", *(["--debug"] if how == "option" else [])])
    assert isinstance(caught.value.__cause__, PassFailedException)


def test_reproducer(tmp_path: Path, plugin: None) -> None:
    option = "--mlir-pass-pipeline-crash-reproducer=crash.mlir"
    assert run(tmp_path, f"{option} -p cse").code == 0
    assert not (tmp_path / "crash.mlir").exists()
    result = run(tmp_path, f"{option} -p 'cse,test-fail{{bug=true}},dce'")
    assert result.code == 3 and "qcomp-reproducer" not in result.err
    assert result.err.splitlines()[0] == "note: reproducer written: qcomp-opt crash.mlir --run-reproducer"
    text = (tmp_path / "crash.mlir").read_text()
    assert text.startswith("// qcomp-opt reproducer: test-fail{bug=true},dce\n")
    assert text.count("arith.addf") == 1 and "seen" not in text
    again = shell.run("qcomp-opt crash.mlir --run-reproducer", tmp_path)
    assert again.err.startswith("error: pass test-fail: internal error: KeyError: 'lost'\nnote: ")


def test_run_reproducer_needs_one(tmp_path: Path) -> None:
    assert run(tmp_path, "--run-reproducer").err == (
        "error: in.mlir is no reproducer: its first line names no pipeline\n"
    )


def test_output_file_is_whole_or_untouched(tmp_path: Path, plugin: None) -> None:
    assert run(tmp_path, "-o out.mlir -p cse").out == ""
    assert (tmp_path / "out.mlir").read_text() == run(tmp_path, "-p cse").out
    before = (tmp_path / "out.mlir").read_bytes()
    assert run(tmp_path, "-o out.mlir -p test-fail").code == 1
    assert run(tmp_path, "-o out.mlir --split-input-file", f"{TWICE}// -----\n{BAD}").code == 1
    assert (tmp_path / "out.mlir").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["in.mlir", "out.mlir"]
    result = run(tmp_path, "-o no/such/out.mlir")
    assert result.code == 1 and result.err.endswith("no such folder\n") and result.err.count("\n") == 1


def test_output_through_a_link_and_onto_itself(tmp_path: Path) -> None:
    (tmp_path / "link.mlir").symlink_to(tmp_path / "real.mlir")
    assert run(tmp_path, "-o link.mlir").code == 0
    assert (tmp_path / "link.mlir").is_symlink() and (tmp_path / "real.mlir").is_file()
    assert run(tmp_path, "-o in.mlir -p cse").code == 0
    assert (tmp_path / "in.mlir").read_text().count("arith.addf") == 1


def big_constant(tmp_path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Write in.mlir with a constant of 6x5 elements, and its sidecar."""
    from qcomp.dialects.constant import DataAttr
    from qcomp.dialects.nn import ConstantOp
    from qcomp.dialects.text import save

    array = np.arange(30, dtype=np.float32).reshape(6, 5) / 7
    constant = ConstantOp(DataAttr.of(array))
    main = FuncOp("main", ((), (constant.result.type,)))
    main.body.block.add_ops([constant, ReturnOp(constant.result)])
    save(ModuleOp([main]), tmp_path / "in.mlir")
    return array


def test_sidecar_travels_with_the_text(tmp_path: Path) -> None:
    array = big_constant(tmp_path)
    assert shell.run("qcomp-opt in.mlir -o a.mlir && qcomp-opt a.mlir -p cse -o b.mlir", tmp_path).code == 0
    (tmp_path / "a.safetensors").unlink()
    from qcomp.dialects.sidecar import large_constants

    (data,) = large_constants(parse(tmp_path / "b.mlir")).values()
    assert data.array.dtype == array.dtype and np.array_equal(data.array, array)
    result = shell.run("qcomp-opt a.mlir", tmp_path)
    assert result.code == 1 and "unresolved constant" in result.err and "a.safetensors" in result.err


def test_explain_prints_refusals_as_remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qcomp.transforms.rewriting import refuse

    @dataclass(frozen=True)
    class Refuse(ModulePass):
        name: ClassVar[str] = "test-refuse"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            refuse("FoldIt", next(inner for inner in op.walk() if isinstance(inner, arith.MulfOp)), "not constant")

    mine = Universe(all_passes={"test-refuse": lambda: Refuse})
    monkeypatch.setattr(plugins, "third_party", lambda: (("tests", mine),))
    assert run(tmp_path, "-p test-refuse").err == ""
    result = run(tmp_path, "-p test-refuse --explain")
    assert (result.code, result.err) == (0, "in.mlir:4: remark: FoldIt refused 'arith.mulf': not constant\n")
    text = TWICE.replace("  %2", "  // expected-remark@+1 {{not constant}}\n  %2")
    assert run(tmp_path, "-p test-refuse --explain --verify-diagnostics", text).code == 0
    assert run(tmp_path, "-p test-refuse --verify-diagnostics", text).code == 1


def test_plugin_clash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "third_party", lambda: (("rival", Universe(all_passes={"cse": lambda: BreakModule})),))
    result = run(tmp_path, "")
    assert result.code == 1
    assert result.err.startswith("error: plug-in 'rival' defines the pass 'cse', which exists already")


def test_version_and_help(tmp_path: Path) -> None:
    assert shell.run("qcomp-opt --version", tmp_path).out.startswith("qcomp-opt of qcomp ")
    text = shell.run("qcomp-opt --help", tmp_path)
    assert text.code == 0 and "cse" in text.out and "--verify-diagnostics" in text.out


def test_closed_pipe_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text("\n".join(f"%{n} = arith.constant {n} : i32" for n in range(2500)))
    command = f"{sys.executable} -m qcomp.cli.opt in.mlir | head -c 10"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("builtin.mo", "")


def test_start_up_is_quick_and_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom qcomp.cli.opt import main\nmain(['--help'])\n"
        "assert 'torch' not in sys.modules\nprint(time.process_time(), file=sys.stderr)"
    )
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr)
        for _ in range(3)
    )
    assert seconds < 0.6


def test_in_process_calls_are_cheap(tmp_path: Path) -> None:
    run(tmp_path, "-p cse")
    start = time.process_time()
    for _ in range(5):
        run(tmp_path, "-p cse")
    assert (time.process_time() - start) / 5 < 0.1
    assert os.environ.get("OMP_NUM_THREADS") == "1"


def test_verify_rewrites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Swap(ModulePass):
        """Claims to be exact, as xDSL's passes do."""

        name: ClassVar[str] = "test-swap"
        letter: ClassVar[str] = "exact"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for inner in op.walk():
                if isinstance(inner, ReturnOp):
                    inner.operands = list(reversed(inner.operands))

    mine = Universe(all_passes={"test-swap": lambda: Swap})
    monkeypatch.setattr(plugins, "third_party", lambda: (("tests", mine),))
    monkeypatch.setenv("QCOMP_VERIFY_REWRITES", "0")
    text = (
        "func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {\n"
        "  func.return %x, %y : tensor<2x3xf32>, tensor<2x3xf32>\n}\n"
    )
    assert run(tmp_path, "-p test-swap", text).code == 0
    result = run(tmp_path, "-p test-swap --verify-rewrites", text)
    assert result.code == 1 and result.err.count("\n") == 1
    assert result.err.startswith("error: pass test-swap is declared exact but is not")
    assert "result 0 differs at [0, 0]" in result.err
    monkeypatch.setattr(Swap, "letter", None)
    assert "pass test-swap declares no letter, so it is held to exact, but is not: " in run(
        tmp_path, "-p test-swap --verify-rewrites", text
    ).err  # fmt: skip
    monkeypatch.setattr(Swap, "letter", "exakt")
    error = run(tmp_path, "-p test-swap --verify-rewrites", text).err
    assert "declares the letter 'exakt', expected one of exact, code, real, lossy" in error
    monkeypatch.setattr(Swap, "letter", "lossy")
    assert run(tmp_path, "-p test-swap --verify-rewrites", text).code == 0
    monkeypatch.setattr(Swap, "letter", "exact")
    monkeypatch.setenv("QCOMP_VERIFY_REWRITES", "1")
    assert run(tmp_path, "-p test-swap", text).code == 1
    assert run(tmp_path, "-p cse", text).code == 0
    assert run(tmp_path, "-p test-swap", text.replace("@main", "@other")).code == 1
    unrunnable = "func.func @main(%x: f32, %y: f32) -> (f32, f32) {\n  func.return %x, %y : f32, f32\n}\n"
    assert run(tmp_path, "-p test-swap", unrunnable).code == 0


def test_target_c(tmp_path: Path) -> None:
    text = (
        "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
        "  %0 = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf32>\n  func.return %0 : tensor<2x3xf32>\n}\n"
    )
    error = run(tmp_path, "-t c", text).err
    assert error.startswith("error: the module is not at loop level (hint: lower it first") and error.count("\n") == 1
    source = run(tmp_path, "-p lower-to-loop,plan-memory -t c", text)
    assert source.code == 0 and '#include "net.h"' in source.out and "net_run(" in source.out
    named = run(tmp_path, "-p lower-to-loop,plan-memory -t 'c{program=relu header=true}' -o relu.h", text)
    assert named.code == 0 and "relu_run(" in (tmp_path / "relu.h").read_text()
    assert "unknown target nosuch" in run(tmp_path, "-p lower-to-loop -t 'c{machine=nosuch}'", text).err
