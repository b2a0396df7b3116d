# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The test infrastructure fails when it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import doc_blocks
import pytest
import run_lines
import shell

SHOW = "```console\n$ qcomp-opt m.mlir | grep func\nfunc...\n```\n"
MODULE = "func.func @main(%a: f32) -> f32 {\n  func.return %a : f32\n}\n"


def test_pipes_connectors_and_redirections(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    assert shell.run("qcomp-opt m.mlir | grep func.func | wc -l", tmp_path).out.strip() == "1"
    assert shell.run("qcomp-opt m.mlir > a && cat a a > b ; cat < b >> a", tmp_path) == shell.Result(0, "", "")
    assert (tmp_path / "a").read_text().count("func.return") == 3
    result = shell.run("qcomp-opt nosuch 2>&1", tmp_path)
    assert (result.code, result.err) == (1, "") and result.out.startswith("error: nosuch")
    assert shell.run("qcomp-opt nosuch 2> e", tmp_path) == shell.Result(1, "", "")
    assert (tmp_path / "e").read_text().startswith("error: nosuch")


def test_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    assert shell.run("false && echo no", tmp_path) == shell.Result(1, "", "")
    assert shell.run("false ; echo yes", tmp_path).out == "yes\n"
    assert shell.run("qcomp-opt nosuch | cat", tmp_path).code == 1
    assert shell.run("not qcomp-opt nosuch", tmp_path).code == 0
    assert shell.run("not qcomp-opt m.mlir", tmp_path).code == 1
    assert shell.run("not not %qcomp-opt m.mlir", tmp_path).code == 0


@pytest.mark.parametrize("line", ["a & b", "a || b", "| a", "not", "a |"])
def test_what_the_shell_does_not_know(tmp_path: Path, line: str) -> None:
    with pytest.raises((shell.Unreadable, FileNotFoundError)):
        shell.run(line, tmp_path)


def test_filecheck_sees_the_output(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE + "// CHECK: func.return\n// OTHER: nothing like it\n")
    assert shell.run("qcomp-opt m.mlir | filecheck m.mlir", tmp_path).code == 0
    assert shell.run("qcomp-opt m.mlir | filecheck m.mlir --check-prefix=OTHER", tmp_path).code == 1
    assert shell.run("qcomp-opt m.mlir | filecheck m.mlir --check-prefix=NONE", tmp_path).code != 0


def test_a_crash_is_a_failure_with_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(args: list[str]) -> int:
        raise ZeroDivisionError(args[0])

    monkeypatch.setitem(shell.IN_PROCESS, "crash", crash)
    result = shell.run("crash here", tmp_path)
    assert result.code == 70 and "ZeroDivisionError: here" in result.err
    assert sys.stdin is not None and shell.run("not crash here", tmp_path).code == 0


def test_run_lines() -> None:
    text = "// RUN: one \\\n// RUN:   two\n# RUN: three\nplain RUN: no\n// REQUIRES: gcc, nosuch\n"
    assert [line.split() for line in run_lines.run_lines(text)] == [["one", "two"], ["three"]]
    assert run_lines.missing_features(text)[-1] == "nosuch"
    filled = run_lines.substitute("%s %S %t.mlir %t %T %sx", Path("/d/f.mlir"), Path("/s"))
    assert filled == "/d/f.mlir /d /s/f.tmp.mlir /s/f.tmp /s %sx"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nassert 1 == 1\n```\n", None),
        ("```python\nx = 1\n```\n```python\nassert x == 2\n```\n", "doc.md:5: AssertionError"),
        ("```python\n>>> 1 + 1\n2\n```\n", None),
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```mlir\n" + MODULE + "```\n", None),
        ("```mlir\nfunc.func @f() {\n```\n", "doc.md:2"),
        ("- item\n  ```mlir name=m.mlir\n  func.func private @f() -> ()\n  ```\n" + SHOW, None),
        ("```mlir name=m.mlir\n" + MODULE + "```\n" + SHOW, None),
        ("```console\n$ echo a\nb\n```\n", "output of: echo a"),
        ("```console\n$ qcomp-opt nosuch.mlir\n```\n", "exit code 1"),
        ("```console\n$ qcomp-opt nosuch.mlir\nerror: nosuch.mlir: No such file or directory\n```\n", None),
        ("```sh\nfalse\n```\n", None),
    ],
)  # fmt: skip
def test_documents(tmp_path: Path, text: str, message: str | None) -> None:
    document = tmp_path / "doc.md"
    document.write_text(text)
    if message is None:
        doc_blocks.run_document(document, tmp_path)
    else:
        with pytest.raises(doc_blocks.BlockFailure, match=message):
            doc_blocks.run_document(document, tmp_path)


def test_lit_files_under_pytest(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    folder = tmp_path / "test" / "filecheck"
    (folder / "Output").mkdir(parents=True)
    (folder / "empty.mlir").write_text("// nothing\n")
    (folder / "wrong.mlir").write_text("// RUN: qcomp-opt %s | filecheck %s\n// CHECK: absent\n" + MODULE)
    (folder / "good.mlir").write_text("// RUN: qcomp-opt %s | filecheck %s\n// CHECK: func.return\n" + MODULE)
    (folder / "skipped.mlir").write_text("// REQUIRES: nosuch\n// RUN: false\n")
    (folder / "Output" / "scratch.mlir").write_text("left by lit\n")
    (folder.parent / "conftest.py").write_text((root / "test" / "conftest.py").read_text())
    support = root / "test" / "support"
    (tmp_path / "pyproject.toml").write_text(f'[tool.pytest.ini_options]\npythonpath = ["{support}"]\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "2 failed, 1 passed, 1 skipped" in done.stdout, done.stdout
    assert "no RUN line" in done.stdout and "Output" not in done.stdout
