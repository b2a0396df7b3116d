# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose tensors are larger than memory: compiled in little, refused where a call would need them."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest

import qcomp
from qcomp import reading
from qcomp.errors import QcompError

LARGE = """func.func @main(%x: tensor<65536x65536xf32>) -> tensor<65536x65536xi1> {
  %a = nn.constant dense<0.5> : tensor<f32>
  %y = nn.add %x, %a : (tensor<65536x65536xf32>, tensor<f32>) -> tensor<65536x65536xf32>
  %z = nn.permute %y {dims = array<i64: 1, 0>} : tensor<65536x65536xf32> -> tensor<65536x65536xf32>
  %r = nn.compare "lt", %z, %a : (tensor<65536x65536xf32>, tensor<f32>) -> tensor<65536x65536xi1>
  func.return %r : tensor<65536x65536xi1>
}
"""


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def test_large_tensors_are_compiled_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "available_memory", lambda: 20 << 30)
    monkeypatch.setattr("qcomp.backend.footprint.available_memory", lambda: 20 << 30)
    before = peak()
    with pytest.warns(UserWarning) as caught:
        artifact = qcomp.compile(qcomp.parse(LARGE), target="generic", opt_level=1)
    artifact.save(tmp_path / "out")
    assert peak() - before < 256 << 20
    texts = [str(warning.message) for warning in caught]
    assert any("more than 128.0 MiB (limit MAX_SELFTEST_BYTES), so there is no self-test" in text for text in texts)
    assert any("of which this machine has 20.0 GiB: it cannot be made here" in text for text in texts)
    assert not list((tmp_path / "out").glob("*selftest*")) and (tmp_path / "out" / "net.c").exists()
    for made in (artifact, qcomp.load(tmp_path / "out")):
        with pytest.raises(QcompError, match=r"a call, its arena of \d+ bytes and outputs of 4294967296") as error:
            made.run([np.zeros((1, 1), np.float32)])  # Refused before anything is read.
        assert error.value.code == "memory"


def test_interpretation_is_refused_by_its_largest_op(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "available_memory", lambda: 20 << 30)
    text = """func.func @main(%x: tensor<1x1xf32>) -> tensor<1x1xf32> {
      %y = nn.expand %x : tensor<1x1xf32> -> tensor<65536x65536xf32>
      %z = nn.neg %y : tensor<65536x65536xf32> -> tensor<65536x65536xf32>
      %r = nn.amax %z {dim = array<i64: 0, 1>, keepdim = true} : tensor<65536x65536xf32> -> tensor<1x1xf32>
      func.return %r : tensor<1x1xf32>
    }
    """
    with pytest.raises(QcompError, match=r"the largest op of the program needs 32\.0 GiB of memory, 20\.0 GiB are"):
        qcomp.interpret(qcomp.parse(text), np.ones((1, 1), np.float32))


def test_what_is_available_is_bounded_by_the_process_itself():
    old = resource.getrlimit(resource.RLIMIT_AS)
    before = reading.available_memory()
    if before is None:
        pytest.skip("unknown on this system")
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    try:
        resource.setrlimit(resource.RLIMIT_AS, (pages + (300 << 20), old[1]))
        found = reading.available_memory()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)
    assert found is not None and found <= 300 << 20


def test_a_pass_that_cannot_be_verified_does_not_pass(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "available_memory", lambda: 20 << 30)
    with pytest.raises(QcompError, match=r"running the program on made-up inputs needs 96\.0 GiB of memory"):
        qcomp.run_passes(qcomp.parse(LARGE), "dce", verify=True)
