# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exit codes, and the reproducers of faults of qcomp: they run again, and hold no weights unless asked."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import shell

import qcomp
from qcomp.cli.main import COMMANDS
from qcomp.dialects.nn import ConstantOp

SECRET = np.arange(1, 41, dtype=np.float32) * np.float32(0.8125)
NET = f"""func.func @main(%x: tensor<40xf32>) -> tensor<40xf32> {{
  %w = nn.constant dense<{SECRET.tolist()}> : tensor<40xf32>
  %y = nn.mul %x, %w : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  func.return %y : tensor<40xf32>
}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with a sidecar; reproducers go to the folder tmp."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    qcomp.save(qcomp.parse(NET), tmp_path / "net.mlir")
    return tmp_path


def lose(*_: object, **__: object) -> NoReturn:
    raise KeyError("lost")


def reproducer(folder: Path, line: str) -> Path:
    """The reproducer that `line` writes when it fails by a fault of qcomp."""
    result = shell.run(line, folder)
    assert result.code == 3 and result.out == "", result
    error, note = result.err.splitlines()
    assert "internal error: KeyError: 'lost'" in error
    assert note.startswith("note: this is a fault of qcomp; a reproducer for a report is in ")
    path = Path(note.split(" is in ")[1])
    assert path.parent == folder / "tmp"
    return path


def test_a_fault_of_every_command_has_a_reproducer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qcomp.transforms.pipeline.check_order", lose)
    monkeypatch.setattr("qcomp.interpreter.run.interpret", lose)
    lines = {
        "compile": "qcomp compile net.mlir -o out", "check": "qcomp check net.mlir", "bench": "qcomp bench net.mlir",
        "compare": "qcomp compare net.mlir",
    }  # fmt: skip
    for name, line in lines.items():
        assert name in COMMANDS
        path = reproducer(folder, line)
        text = path.read_text()
        assert text.startswith(f"// qcomp reproducer of: {line}\n") and "KeyError: 'lost'" in text
        assert path.suffix == ".mlir" and "dense<0.8125> : tensor<40xf32>" in text and "1.625" not in text


def test_reproducers_of_opt_run_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qcomp.transforms.fold_constants.FoldConstantsPass.apply", lose, raising=True)
    path = reproducer(folder, "qcomp-opt net.mlir -p remove-identities,fold-constants,dce")
    assert path.read_text().startswith("// qcomp-opt reproducer: remove-identities,fold-constants,dce\n// qcomp ")
    reproducer(folder, f"qcomp-opt {path} --run-reproducer")
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))
    assert shell.run(f"qcomp-opt {path} --run-reproducer", folder).code == 0


def test_weights_are_kept_when_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qcomp.transforms.fold_constants.FoldConstantsPass.apply", lose)
    for line in ("qcomp-opt net.mlir -p fold-constants", "qcomp compile net.mlir -o out"):
        module = qcomp.parse(reproducer(folder, f"{line} --reproducer-weights"))
        found = next(op for op in module.walk() if isinstance(op, ConstantOp))
        assert np.array_equal(found.array, SECRET)


def test_what_cannot_be_read_is_kept_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text as text; an archive without the bytes of its tensors."""
    monkeypatch.setattr("qcomp.dialects.text.parse_text", lose)
    text = (folder / "net.mlir").read_text()
    assert reproducer(folder, "qcomp check net.mlir").read_text().endswith(text)
    monkeypatch.setattr("qcomp.frontend.pt2.read_pt2", lose)
    with zipfile.ZipFile(folder / "net.pt2", "w") as file:
        for name, content in {
            "archive_format": "pt2", "data/weights/weight_0": "secret",
            "data/weights/model_weights_config.json": "{}", "models/model.json": "[]",
        }.items():  # fmt: skip
            file.writestr(f"net/{name}", content)
    for option, weight in (("", b"\0" * 6), (" --reproducer-weights", b"secret")):
        with zipfile.ZipFile(reproducer(folder, f"qcomp compile net.pt2 -o out{option}")) as file:
            assert file.read("net/data/weights/weight_0") == weight
            assert file.read("net/data/weights/model_weights_config.json") == b"{}"
            assert b"KeyError: 'lost'" in file.read("net/reproducer.txt")


def test_too_little_memory_is_no_fault(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise MemoryError("Unable to allocate 8 EiB")

    monkeypatch.setattr("qcomp.transforms.pipeline.check_order", refuse)
    for line in ("qcomp compile net.mlir -o out", "qcomp-opt net.mlir -p dce"):
        result = shell.run(line, folder)
        assert result.code == 1
        assert result.err == "error: needs more memory than there is: Unable to allocate 8 EiB\n"
