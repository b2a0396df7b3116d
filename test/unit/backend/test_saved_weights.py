# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights beside the sources: as a file of bytes that the assembler includes, or as C text; on disk, not in memory."""

from __future__ import annotations

import json
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled import COMPILERS, STRICT
from tensor_programs import constant, floats, program

import qcomp
from qcomp import QcompError
from qcomp.backend import weights as weights_module
from qcomp.backend.artifact import Artifact
from qcomp.backend.compile import emit_module
from qcomp.cli.main import main
from qcomp.dialects import nn
from qcomp.dialects.constant import Array

BINARY = {"manifest.json", "net.c", "net.h", "net.so", "net_selftest.c", "net_weights.S", "net_weights.bin"}


@pytest.fixture
def folder(artifact: Artifact, tmp_path: Path) -> Path:
    artifact.save(tmp_path / "saved", weights="binary")
    return tmp_path / "saved"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_small_models_are_text(
    artifact: Artifact, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is in bytes of weights; the file of bytes has nothing but those."""
    size = artifact.report()["weight_bytes"]
    assert names(folder) == BINARY and (folder / "net_weights.bin").stat().st_size == size
    for limit, text in ((size, True), (size - 1, False)):
        monkeypatch.setattr(weights_module, "TEXT_LIMIT", limit)
        artifact.save(tmp_path / "auto")
        as_text = BINARY - {"net_weights.S", "net_weights.bin"} | {"net_weights.c"}
        assert names(tmp_path / "auto") == (as_text if text else BINARY)
    artifact.save(tmp_path / "auto", weights="text")
    assert "net_weights.c" in names(tmp_path / "auto") and "net_weights.S" not in names(tmp_path / "auto")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_self_test_from_another_folder(folder: Path, compiler: str) -> None:
    sources = [f"saved/net{end}" for end in (".c", "_weights.S", "_selftest.c")]
    built = subprocess.run(
        [compiler, *STRICT, "-Isaved", *sources, "-o", "test"], cwd=folder.parent, capture_output=True
    )
    assert built.returncode == 0, built.stderr
    done = subprocess.run(["./test"], cwd=folder.parent, capture_output=True, text=True)
    assert done.returncode == 0 and ": 0 of " in done.stdout


def test_the_library_is_built_again(folder: Path, artifact: Artifact, sample: Array, tmp_path: Path) -> None:
    (folder / "net.so").unlink()
    loaded = qcomp.load(folder)
    assert (loaded(sample) == artifact(sample)).all()
    loaded.save(tmp_path / "again")
    assert names(tmp_path / "again") == BINARY
    with pytest.raises(QcompError, match="the weights of a loaded artifact stay binary"):
        loaded.save(tmp_path / "text", weights="text")
    (folder / "net_weights.bin").write_bytes(b"1" + (folder / "net_weights.bin").read_bytes()[1:])
    with pytest.raises(QcompError, match=r"net_weights\.bin is missing or was changed"):
        qcomp.load(folder)


def test_artifacts_of_version_1_load(artifact: Artifact, sample: Array, tmp_path: Path) -> None:
    artifact.save(tmp_path / "old", weights="text")
    data: dict[str, Any] = json.loads((tmp_path / "old" / "manifest.json").read_text())
    del data["digest"]
    (tmp_path / "old" / "manifest.json").write_text(json.dumps({**data, "format_version": 1}))
    (tmp_path / "old" / "net.so").unlink()
    assert (qcomp.load(tmp_path / "old")(sample) == artifact(sample)).all()


def test_forms(artifact: Artifact, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(QcompError, match="weights 'c' does not exist") as caught:
        artifact.save(tmp_path / "out", weights="c")  # pyright: ignore[reportArgumentType]
    assert caught.value.hint == "auto, text, binary" and not (tmp_path / "out").exists()
    assert artifact.module is not None
    qcomp.save(artifact.module, tmp_path / "net.mlir")
    options = ["--weights", "binary", "--target", "generic", "--opt-level", "1", "-o", str(tmp_path / "out")]
    assert main(["compile", str(tmp_path / "net.mlir"), *options]) == 0, capsys.readouterr().err
    assert names(tmp_path / "out") == BINARY


def test_packed_weights_are_not_in_memory(tmp_path: Path) -> None:
    """Beside the program's own, one layer's at a time."""
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((528, 512 if index % 2 == 0 else 528)).astype(np.float32) for index in range(8)]
    arrays = [array if index % 2 == 0 else array[:512].copy() for index, array in enumerate(arrays)]

    def build(add: Any, x: Any) -> Any:
        for array in arrays:
            x = add(nn.LinearOp(x, add(constant(array))))
        return x

    module = program(build, floats(3, 512))
    total = sum(array.nbytes for array in arrays)
    tracemalloc.start()
    emitted = emit_module(module, "native", 1, "net")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * total and kept < 0.2 * total
    large = [array for array in emitted.program.constants.values() if array.nbytes > 2**20]
    assert len(large) == 8
    weights_module.write_weights(tmp_path, "net", emitted.program.constants, "binary")
    content = (tmp_path / "net_weights.bin").read_bytes()
    assert content == b"".join(array.tobytes() for array in emitted.program.constants.values())
