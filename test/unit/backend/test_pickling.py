# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts in pickles and copies: the same bits elsewhere, the state goes along, nothing is shared but code."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from compiled import network

import qcomp
from qcomp import QcompError
from qcomp.backend import artifact as artifact_module
from qcomp.backend import compile as compile_module
from qcomp.backend import pickling
from qcomp.backend.artifact import Artifact
from qcomp.dialects.constant import Array
from qcomp.refusals import Refusal, RefusalError
from qcomp.writing import WriteError

COUNTER = """func.func @main(%x: tensor<3xf32>, %a: tensor<3xf32> {nn.name = "a", nn.state = #nn.data<dense<1.5> : tensor<3xf32>>}) \
-> (tensor<3xf32>, tensor<3xf32> {nn.state = "a"}) {
  %0 = nn.add %a, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %0, %0 : tensor<3xf32>, tensor<3xf32>
}
"""  # noqa: E501
ONE = np.ones(3, np.float32)


def pickled(artifact: Artifact) -> Artifact:
    """Through a pickle, as another process would see it."""
    pickling._unpacked.clear()  # pyright: ignore[reportPrivateUsage]
    return pickle.loads(pickle.dumps(artifact))


WAYS: list[Callable[[Artifact], Artifact]] = [pickled, copy.copy, copy.deepcopy]


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    path = tmp_path_factory.mktemp("counter") / "counter.mlir"
    path.write_text(COUNTER)
    return qcomp.compile(path, target="generic", opt_level=0)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_artifact(
    artifact: Artifact, sample: Array, way: Callable[[Artifact], Artifact], tmp_path: Path
) -> None:
    again = way(artifact)
    assert (again(sample) == artifact(sample)).all()
    assert again.report() == artifact.report() and again.interface == artifact.interface
    if way is not copy.copy:
        assert (again.module is None) == (way is pickled) and (again.module is not artifact.module)
    for name, each in (("a", artifact), ("b", again)):
        each.save(tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("way", WAYS)
def test_state_goes_along_and_is_not_shared(counter: Artifact, way: Callable[[Artifact], Artifact]) -> None:
    counter.reset()
    counter(ONE)
    again = way(counter)
    assert [again(ONE)[0], again(ONE)[0], counter(ONE)[0], counter(ONE)[0]] == [3.5, 4.5, 3.5, 4.5]
    again.reset()
    assert (again(ONE)[0], counter(ONE)[0]) == (2.5, 5.5)


@pytest.mark.parametrize("way", WAYS)
def test_closed_stays_closed(counter: Artifact, way: Callable[[Artifact], Artifact]) -> None:
    closed = copy.copy(counter)
    closed.close()
    again = way(closed)
    assert again.closed and again.report() == counter.report()
    with pytest.raises(QcompError, match="counter was closed"):
        again(ONE)


def test_closing_one_leaves_the_others(counter: Artifact) -> None:
    counter.reset()
    others = [way(counter) for way in WAYS]
    for other in others:
        copied = copy.deepcopy(other)
        other.close()
        assert copied(ONE)[0] == 2.5
    assert counter(ONE)[0] == 2.5


def test_other_machines_build_it_once(counter: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process that unpickles it often, as a worker does for its tasks."""
    counter.reset()
    with monkeypatch.context() as patch:
        patch.setattr(artifact_module, "this_machine", lambda: "somewhere pdp11 middle")
        data = pickle.dumps(counter)
    pickling._unpacked.clear()  # pyright: ignore[reportPrivateUsage]
    first = pickle.loads(data)
    first(ONE)
    monkeypatch.setenv("CC", "no-such-compiler")
    second = pickle.loads(data)
    assert (first(ONE)[0], second(ONE)[0]) == (3.5, 2.5)
    second.close()
    assert pickle.loads(pickle.dumps(first))(ONE)[0] == 4.5


def test_state_of_another_byte_order_is_refused(counter: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(counter)
    monkeypatch.setattr(sys, "byteorder", "middle")
    with pytest.raises(QcompError, match="the state of a little-endian machine cannot go on here"):
        pickle.loads(data)


def test_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources travel; where their target runs and a compiler is, they can be called."""
    monkeypatch.setattr(compile_module, "runs_here", lambda _: False)
    crossed = qcomp.compile(network(), target="generic", opt_level=0)
    data = pickle.dumps(crossed)
    with monkeypatch.context() as patch:
        patch.setenv("CC", "no-such-compiler")
        with pytest.raises(QcompError, match="was not built: there was no C compiler"):
            pickled(crossed).run([])
    with monkeypatch.context() as patch:
        patch.setattr(artifact_module, "runs_here", lambda _: False)
        pickling._unpacked.clear()  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(QcompError, match="code for generic does not run on this machine"):
            pickle.loads(data).run([])


WORKERS = """
import concurrent.futures, multiprocessing, sys
import numpy
import qcomp

kept = []

def work(artifact, x):
    kept.append(artifact)  # never freed, and not closed: the process just ends
    assert not {"torch", "xdsl"} & set(sys.modules), "heavy"
    return artifact(x)

if __name__ == "__main__":
    artifact = qcomp.load("saved")
    artifact(numpy.ones(3, numpy.float32))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        xs = [numpy.full(3, value, numpy.float32) for value in (1, 2, 3)]
        print([float(y[0]) for y in pool.map(work, [artifact] * 3, xs)])
    with context.Pool(1) as pool:  # ends its workers by SIGTERM
        print(float(pool.apply(work, (artifact, xs[0]))[0]))
"""


def test_in_processes_that_are_spawned(counter: Artifact, tmp_path: Path) -> None:
    """Each task goes on from the state that was sent. Workers import neither torch nor xDSL; nothing is left behind."""
    counter.save(tmp_path / "saved")
    (tmp_path / "workers.py").write_text(WORKERS)
    (tmp_path / "tmp").mkdir()
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run([sys.executable, "workers.py"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "[3.5, 4.5, 5.5]\n3.5\n"), done.stderr
    assert not [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("qcomp-")]


def test_errors_come_back_from_workers() -> None:
    """All kinds of them, with all they say."""
    refusals = [Refusal("nn.x", "not lowered", "block.0 (model.py:3)", "leave it out")]
    errors = [
        QcompError("text", code="input", op="nn.x", location="a.py:3", hint="none"),
        RefusalError(refusals, "x", "y"),
        WriteError("text", code="output", hint="none"),
    ]
    assert {type(error) for error in errors[1:]} >= set(QcompError.__subclasses__())
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and (str(again), vars(again)) == (str(error), vars(error))
