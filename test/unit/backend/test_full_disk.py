# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that the system refuses to write: an error that says which and why, nothing left behind."""

from __future__ import annotations

import pickle
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program

import qcomp
from qcomp.dialects import nn
from qcomp.dialects.spool import LEAST_BYTES
from qcomp.errors import QcompError

WIDTH = 520


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may have more bytes than the smallest array that is spooled, as on a full disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LEAST_BYTES // 2, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def large() -> Any:
    """Two linears of more than a MiB of weights each."""

    def build(add: Any, x: Any) -> Any:
        for seed in (1, 2):
            values = np.random.default_rng(seed).standard_normal((WIDTH, WIDTH)).astype(np.float32)
            x = add(nn.LinearOp(x, add(constant(values))))
        return x

    return program(build, floats(3, WIDTH))


@pytest.fixture(scope="module")
def artifact() -> qcomp.Artifact:
    return qcomp.compile(large(), target="generic", opt_level=0)


@pytest.fixture(scope="module")
def pickled(artifact: qcomp.Artifact) -> bytes:
    return pickle.dumps(artifact)


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("step", ["compile", "save", "pickle", "unpickle", "text", "inline"])
def test_a_file_that_cannot_be_written(
    step: str, artifact: qcomp.Artifact, pickled: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One error, about the file and no op, which is an OSError, too; the folders are as they were."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    acts: dict[str, Callable[[], object]] = {
        "compile": lambda: qcomp.compile(large(), target="generic", opt_level=0),
        "save": lambda: artifact.save(tmp_path / "saved"),
        "pickle": lambda: pickle.dumps(artifact),
        "unpickle": lambda: pickle.loads(pickled),
        "text": lambda: qcomp.save(large(), tmp_path / "net.mlir"),
        "inline": lambda: qcomp.save(large(), tmp_path / "net.mlir", inline_constants=True),
    }
    with pytest.raises(QcompError) as caught:
        acts[step]()
    assert caught.value.code == "output" and caught.value.op is None and isinstance(caught.value, OSError)
    assert caught.value.message.startswith(f"cannot write {tmp_path}/") and "File too large" in str(caught.value)
    assert ("TMPDIR" in str(caught.value.hint)) == (step in ("compile", "pickle", "unpickle"))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert not list(tmp_path.iterdir())
    assert isinstance(artifact(np.ones((3, WIDTH), np.float32)), np.ndarray)


def test_no_place_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nosuch"))
    with pytest.raises(QcompError, match=r"cannot make a folder for temporary files.*TMPDIR"):
        qcomp.compile(large(), target="generic", opt_level=0)
