# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries go with their artifacts: unloaded, their files removed, calls in flight to their end."""

from __future__ import annotations

import copy
import gc
import os
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program

import qcomp
from qcomp import QcompError
from qcomp.backend.artifact import Artifact
from qcomp.backend.folder import TemporaryFolder
from qcomp.dialects import nn, spool
from qcomp.dialects.constant import Array

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
WEIGHT = np.random.default_rng(2).integers(-3, 4, (300, 700)).astype(np.float32)
SLOW_INPUT = np.random.default_rng(3).integers(-3, 4, (900, 700)).astype(np.float32)


def small(name: str) -> Artifact:
    return qcomp.compile(program(lambda add, x: add(nn.NegOp(x)), floats(2, 3)), "generic", 0, name=name)


@pytest.fixture(scope="module")
def slow() -> Artifact:
    """Half a second of one call, whose result is exact."""

    def build(add: Any, x: Any) -> Any:
        return add(nn.LinearOp(x, add(constant(WEIGHT))))

    return qcomp.compile(program(build, floats(*SLOW_INPUT.shape)), "generic", 0, name="slow_one")


def mapped(name: str) -> bool:
    """Whether a library of this name is loaded."""
    return f"/{name}.so" in Path("/proc/self/maps").read_text()


def temporary_folders() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("qcomp-")}


@linux
@pytest.mark.parametrize("end", ["forgotten", "closed", "with", "loaded", "loaded and built"])
def test_nothing_stays(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    artifact = small("gone")
    artifact.save(tmp_path / "saved")
    if end.startswith("loaded"):
        if end == "loaded and built":
            (tmp_path / "saved" / "gone.so").unlink()
        artifact = qcomp.load(tmp_path / "saved")
    library = weakref.ref(artifact.library)
    assert (artifact(np.ones((2, 3), np.float32)) == -1).all() and mapped("gone")
    assert not temporary_folders()  # Whatever ends the process, nothing is left.
    artifact.save(tmp_path / "again")
    if end != "loaded and built":
        for path in (tmp_path / "saved").iterdir():
            assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name
    if end == "with":
        with artifact as same:
            assert same is artifact and not artifact.closed
    elif end == "closed":
        artifact.close()
        artifact.close()
    else:
        del artifact
        gc.collect()
        assert library() is None
    assert not mapped("gone") and not temporary_folders()


def test_after_closing(tmp_path: Path) -> None:
    """Refused by name; what the artifact is can still be asked."""
    artifact = small("shut")
    report, text = artifact.report(), str(artifact)
    artifact.close()
    uses: list[Callable[[], object]] = [
        lambda: artifact(np.ones((2, 3), np.float32)),
        lambda: artifact.run([np.ones((2, 3), np.float32)]),
        artifact.reset,
        lambda: artifact.save(tmp_path / "out"),
        lambda: copy.copy(artifact)(np.ones((2, 3), np.float32)),
    ]
    for use in uses:
        with pytest.raises(QcompError, match=r"^shut was closed \(hint: load or compile it again\)$") as found:
            use()
        assert found.value.code == "closed"
    assert artifact.closed and artifact.report() == report and str(artifact) == text
    assert artifact.interface.inputs[0].shape == (2, 3)
    assert not list(tmp_path.iterdir())


@linux
def test_a_call_in_flight_ends_first(slow: Artifact, tmp_path: Path) -> None:
    """The library is unloaded by the last call in it, not under its feet."""
    artifact = copy.copy(slow)
    assert artifact.library is not None
    copied = tmp_path / "in_flight.so"
    artifact.library.write_to(copied)
    artifact.library = type(artifact.library)(copied, artifact.manifest)
    started, results = threading.Event(), list[Array]()

    def call() -> None:
        started.set()
        results.append(artifact(SLOW_INPUT))

    thread = threading.Thread(target=call)
    thread.start()
    started.wait()
    time.sleep(0.02)
    artifact.close()
    assert mapped("in_flight") and thread.is_alive()
    with pytest.raises(QcompError, match="slow_one was closed"):
        artifact(SLOW_INPUT)
    thread.join()
    assert not mapped("in_flight")
    assert (results[0] == SLOW_INPUT @ WEIGHT.T).all()


def test_closing_while_threads_call() -> None:
    """Each call is right, or refused."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    first = small("busy")
    wrong: list[object] = []
    refused = 0

    def call(artifact: Artifact, go: threading.Barrier) -> None:
        nonlocal refused
        go.wait()
        try:
            while True:
                if not (artifact(x) == -x).all():
                    wrong.append("result")
        except QcompError as error:
            refused += 1
            if error.code != "closed":
                wrong.append(error)

    for _ in range(10):
        artifact, go = copy.copy(first), threading.Barrier(4)
        threads = [threading.Thread(target=call, args=(artifact, go)) for _ in range(3)]
        for thread in threads:
            thread.start()
        go.wait()
        time.sleep(0.005)
        artifact.close()
        for thread in threads:
            thread.join()
    assert not wrong and refused == 30
    assert (first(x) == -x).all()


def test_large_weights_stay_on_disk_until_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The artifact reads them from their files when it is saved."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spool, "LEAST_BYTES", 1)

    def build(add: Any, x: Any) -> Any:
        return add(nn.LinearOp(x, add(constant(WEIGHT[:5, :3]))))

    artifact = qcomp.compile(program(build, floats(2, 3)), "generic", 0)
    assert len(temporary_folders()) == 1
    artifact.save(tmp_path / "out")
    artifact.close()
    del artifact
    assert not temporary_folders()
    assert qcomp.load(tmp_path / "out")(np.ones((2, 3), np.float32)).shape == (2, 5)


def test_held_files(tmp_path: Path) -> None:
    folder = TemporaryFolder()
    data = np.random.default_rng(1).bytes(3_000_001)
    (folder.path / "a").write_bytes(data)
    folder.hold(["a", "nosuch"])
    assert folder.path.is_dir()
    folder.hold(["a"])
    assert not folder.path.exists()
    folder.copy("a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == data


def test_a_forked_process_leaves_the_folder_alone() -> None:
    folder = TemporaryFolder()
    pid = os.fork()
    if pid == 0:
        folder.remove()
        os._exit(0)
    os.waitpid(pid, 0)
    assert folder.path.is_dir()
    folder.remove()
    assert not folder.path.exists()
