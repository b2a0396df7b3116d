# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the code of a Markdown file, block after block in one folder, so that documentation cannot go stale.

``python``: run, all blocks of a file in one namespace; with ``>>>`` the output is compared. ``mlir``: parsed,
verified and printed again; ``mlir name=f.mlir`` also writes the file, ``c name=f.c`` does nothing else. ``console``:
lines ``$ command`` are run, what follows is compared. ``...`` stands for any text. Blocks of other kinds are for
reading only.
"""

from __future__ import annotations

import contextlib
import doctest
import re
from dataclasses import dataclass
from pathlib import Path

import shell

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: language, options of its info string, body, line of its first line of code."""

    language: str
    options: dict[str, str]
    body: str
    line: int


class BlockFailure(Exception):
    """A block that does not do what the document says."""


def blocks(text: str) -> list[Block]:
    """The blocks of a Markdown text that are to be run."""
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        language, *words = match["info"].split() or [""]
        if language in _RUNNERS:
            options = dict(word.split("=", 1) for word in words if "=" in word)
            body = re.sub(f"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
            found.append(Block(language, options, body, text.count("\n", 0, match.start("body")) + 1))
    return found


def run_document(path: Path, folder: Path) -> None:
    """Run the blocks of the document `path` in `folder`. Raises BlockFailure for the first that fails."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        try:
            with contextlib.chdir(folder):
                _RUNNERS[block.language](block, path, namespace)
        except BlockFailure as failure:
            raise BlockFailure(f"{path}:{block.line}: {failure}") from None
        except Exception as problem:
            raise BlockFailure(f"{path}:{block.line}: {type(problem).__name__}: {problem}") from problem


def _run_python(block: Block, path: Path, namespace: dict[str, object]) -> None:
    if ">>>" not in block.body:
        padded = "\n" * (block.line - 1) + block.body
        exec(compile(padded, str(path), "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(block.body, namespace, path.name, str(path), block.line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=_FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    if runner.failures:
        raise BlockFailure("".join(report))


def _run_mlir(block: Block, path: Path, namespace: dict[str, object]) -> None:
    from qcomp.dialects.context import context
    from qcomp.dialects.text import parse_text, print_text

    for chunk in re.split(r"^// -----\s*$", block.body, flags=re.MULTILINE):
        again = print_text(parse_text(chunk, context(), path.name), locations=False, constants="bytes")
        parse_text(again, context(), path.name)
    if "name" in block.options:
        Path(block.options["name"]).write_text(block.body, encoding="utf-8")


def _run_console(block: Block, path: Path, namespace: dict[str, object]) -> None:
    for step in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, expected = step.replace("\\\n", " ").partition("\n")
        result = shell.run(command, Path.cwd())
        got = result.out + result.err
        if result.code != 0 and "error:" not in expected:
            raise BlockFailure(f"exit code {result.code} of: {command}\n{got}")
        if not doctest.OutputChecker().check_output(expected, got, _FLAGS):
            raise BlockFailure(f"output of: {command}\nexpected:\n{expected}\ngot:\n{got}")


def _write_c(block: Block, path: Path, namespace: dict[str, object]) -> None:
    if "name" in block.options:
        Path(block.options["name"]).write_text(block.body, encoding="utf-8")


_RUNNERS = {"python": _run_python, "mlir": _run_mlir, "console": _run_console, "c": _write_c}
