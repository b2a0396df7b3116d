# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One `pytest` runs everything: unit tests, the lit tests in this process, the code in README and docs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import quick_compiler
import run_lines
import shell

ROOT = Path(__file__).resolve().parent.parent

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("QCOMP_VERIFY_REWRITES", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Let the workers of pytest-xdist, which inherit the environment, share the compiler and its folder."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="qcomp-test-compiler-")
        config.add_cleanup(folder.cleanup)
        quick_compiler.install(Path(folder.name))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect ``test/filecheck/**/*.mlir``; lit leaves its scratch files in folders named Output."""
    lit_tests = ROOT / "test" / "filecheck"
    if file_path.suffix == ".mlir" and lit_tests in file_path.parents and file_path.parent.name != "Output":
        return LitFile.from_parent(parent, path=file_path)
    return None


class LitFailure(Exception):
    """A RUN line that failed."""


class LitFile(pytest.File):
    """A lit test file: one item that runs its RUN lines in order."""

    def collect(self) -> Iterator[pytest.Item]:
        yield LitItem.from_parent(self, name="RUN")


class LitItem(pytest.Item):
    """The RUN lines of a file."""

    def runtest(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        if missing := run_lines.missing_features(text):
            pytest.skip(f"needs {', '.join(missing)}")
        commands = run_lines.run_lines(text)
        if not commands:
            raise LitFailure("no RUN line: the file tests nothing")
        with tempfile.TemporaryDirectory() as folder:
            for command in commands:
                filled = run_lines.substitute(command, self.path, Path(folder))
                result = shell.run(filled, Path(folder))
                if result.code != 0:
                    raise LitFailure(f"exit code {result.code}: {filled}\n{result.err}{result.out[-4000:]}")

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str | pytest.TerminalRepr:  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(excinfo.value, LitFailure | shell.Unreadable):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, str(self.path.relative_to(ROOT))
