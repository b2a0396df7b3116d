# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the C compiler, and what is said when it fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qcomp import QcompError
from qcomp.backend.build import build_library, find_compiler


def test_cc_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = str(shutil.which("gcc"))
    monkeypatch.setenv("CC", f"{gcc} -m64")
    assert find_compiler() == [gcc, "-m64"]
    monkeypatch.delenv("CC")
    assert find_compiler() == ["gcc"]


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;\n")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(QcompError, match=r"CC is no-such-compiler, which is not there \(hint: install gcc") as found:
        build_library(tmp_path, ["a.c"], "a.so")
    assert found.value.code == "no-compiler"
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(QcompError, match="there is no C compiler here"):
        build_library(tmp_path, ["a.c"], "a.so")


def test_a_compiler_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(QcompError, match="broken does not start: Exec format error"):
        build_library(tmp_path, [], "a.so")


def test_its_errors_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc -Wall")
    (tmp_path / "a.c").write_text("static int unused;\nint a = b;\n")
    with pytest.raises(QcompError, match=r"gcc -Wall failed: a\.c:2:9: error: .b. undeclared") as found:
        build_library(tmp_path, ["a.c"], "a.so")
    assert found.value.code == "build" and "unused" not in found.value.message


def test_the_library_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    libraries: list[bytes] = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.c").write_text("int f(void) { return 3; }\n")
        libraries.append(build_library(tmp_path / name, ["a.c"], "a.so").read_bytes())
    assert libraries[0] == libraries[1]
