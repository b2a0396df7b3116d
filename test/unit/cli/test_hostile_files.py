# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that are no files, that claim more than they hold, or that stand for more than memory holds."""

from __future__ import annotations

import io
import os
import signal
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import shell

import qcomp
from qcomp import reading
from qcomp.backend.folder import JOURNAL
from qcomp.backend.interface import Port
from qcomp.cli.arrays import NpzSamples, read_inputs
from qcomp.errors import QcompError

NET = """func.func @main(%x: tensor<2x3xf32> {nn.name = "x"}) -> tensor<2x3xf32> {
  %y = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
"""
DIGEST = "0123456789abcdef0123456789abcdef"
X = Port("x", "float32", (2, 3))


@pytest.fixture(autouse=True)
def never_hangs() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError("hangs")

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


MAKERS = {"a fifo": fifo, "a device": device, "Is a directory": folder}


@pytest.mark.parametrize("kind", MAKERS)
def test_no_door_waits_or_fills_memory(kind: str, tmp_path: Path) -> None:
    make: Callable[[Path], None] = MAKERS[kind]
    for name in ("net.mlir", "net.pt2", "in.npz", "beside.safetensors"):
        make(tmp_path / name)
    (tmp_path / "good.mlir").write_text(NET)
    (tmp_path / "beside.mlir").write_text(NET.replace("%y", f'%w = nn.constant "{DIGEST}" : tensor<99xi8>\n%y', 1))
    (tmp_path / "artifact").mkdir()
    make(tmp_path / "artifact" / "manifest.json")
    (tmp_path / "killed").mkdir()
    make(tmp_path / "killed" / JOURNAL)
    for output in ("killed", "artifact"):
        found = shell.run(f"qcomp compile good.mlir -o {output} --target generic", tmp_path)
        assert found.code == 1 and "holds other files" in found.err
    commands = [
        "qcomp-opt net.mlir", "qcomp-opt net.pt2", "qcomp-opt beside.mlir", "qcomp-opt --run-reproducer net.mlir",
        "qcomp run good.mlir --inputs in.npz", "qcomp compile good.mlir --calibrate in.npz -o o",
        "qcomp check beside.mlir",
    ]  # fmt: skip
    if kind != "Is a directory":  # A folder may be an artifact.
        commands += ["qcomp run net.mlir --random 1", "qcomp check net.pt2", "qcomp run artifact --random 1"]
    for command in commands:
        found = shell.run(command, tmp_path)
        assert found.code == 1 and kind in found.err and found.err.count("\n") == 1, (command, found.err)


def test_input_without_end_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qcomp.cli.opt._LIMIT", ("MAX_TEXT_BYTES", 1 << 20))
    monkeypatch.setattr("qcomp.dialects.text._LIMIT", ("MAX_TEXT_BYTES", 1 << 20))
    (tmp_path / "net.mlir").write_bytes(b" " * ((1 << 20) + 1))
    for command in ("qcomp-opt < net.mlir", "qcomp-opt net.mlir", "qcomp check net.mlir"):
        found = shell.run(command, tmp_path)
        assert found.code == 1 and "(limit MAX_TEXT_BYTES)" in found.err, found.err


def npy(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], header: str | None = None) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    if header is None:
        return file.getvalue()
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + array.tobytes()


SIX = np.arange(6, dtype=np.float32).reshape(2, 3)
CLAIMS = {
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 3)}": "claims 3298534883328 elements",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 3)}": "claims 48000000000 bytes of elements, there",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}": "claims 16 bytes of elements, there are 24",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 3)}": "has no header of one",
    "{'descr': '<U6', 'fortran_order': False, 'shape': (1,)}": "holds elements of type <U6",
    "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}": "holds elements of type object",
    "{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}": "holds elements of type complex64",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 40 + ")}": "claims 4 bytes of elements",
    "[" * 60: "has no header of one",
}


@pytest.mark.parametrize("header", CLAIMS)
def test_headers_are_held_against_what_is_there(header: str, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", npy(SIX, header))
    for read in (lambda: read_inputs(str(path), [X]), lambda: NpzSamples(str(path), [X])):
        with pytest.raises(QcompError) as caught:
            read()
        assert CLAIMS[header] in str(caught.value)


def test_arrays_as_numpy_saves_them(tmp_path: Path) -> None:
    """Stored and deflated, by rows and by columns, with and without elements; several streams of one file in turns."""
    rng = np.random.default_rng(0)
    for save in (np.savez, np.savez_compressed):
        a = rng.standard_normal((5, 2, 3)).astype(np.float32)
        b = np.asfortranarray(rng.integers(-9, 9, (5, 4)))
        flags, empty = rng.random((5, 1, 7)) < 0.5, np.zeros((5, 0, 2), np.int8)
        save(tmp_path / "in.npz", b=b, flags=flags, a=a, empty=empty)
        ports = [Port("a", "float32", (2, 3)), Port("b", "int64", (4,)), Port("flags", "bool", (1, 7)),
                 Port("empty", "int8", (0, 2))]  # fmt: skip
        for _ in range(2):
            found = list(NpzSamples(str(tmp_path / "in.npz"), ports))
            assert len(found) == 5
            for index, sample in enumerate(found):
                for ours, whole in zip(sample, (a, b, flags, empty), strict=True):
                    assert ours.dtype == whole.dtype and np.array_equal(ours, whole[index])
        assert np.array_equal(read_inputs(str(tmp_path / "in.npz"), [Port("b", "int64", (5, 4))] * 4)[0], b)


def test_damaged_arrays_are_named(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    for save in (np.savez, np.savez_compressed):
        save(path, x=np.random.default_rng(1).standard_normal((4, 2, 3)).astype(np.float32))
        data = bytearray(path.read_bytes())
        data[len(data) // 2 - 10] ^= 0xFF
        path.write_bytes(data)
        with pytest.raises(QcompError, match=r"in\.npz is (damaged|no \.npz file)"):
            list(NpzSamples(str(path), [X]))


def test_samples_are_in_memory_one_at_a_time(tmp_path: Path) -> None:
    """64 MB in 65 kB, and never more than one of 32 samples."""
    np.savez_compressed(tmp_path / "in.npz", x=np.zeros((32, 1 << 19), np.float32))
    assert (tmp_path / "in.npz").stat().st_size < 70_000
    samples = NpzSamples(str(tmp_path / "in.npz"), [Port("x", "float32", (1 << 19,))])
    tracemalloc.start()
    assert sum(1 for _ in samples) == len(samples) == 32
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * (1 << 21) + (4 << 20)


def test_calibration_reads_samples_as_they_come(tmp_path: Path) -> None:
    """The same encodings as from a list."""
    text = """func.func @main(%x: tensor<1x2x3x4xf32> {nn.name = "x"}) -> tensor<1x3x3x4xf32> {
      %w = nn.constant dense<[[[[0.25]], [[-0.1]]], [[[0.2]], [[0.3]]], [[[-0.05]], [[0.4]]]]> : tensor<3x2x1x1xf32>
      %y = nn.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, \
groups = 1 : i64} : (tensor<1x2x3x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x3x4xf32>
      func.return %y : tensor<1x3x3x4xf32>
    }
    """
    data = np.random.default_rng(2).standard_normal((6, 1, 2, 3, 4)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=data)
    streamed = NpzSamples(str(tmp_path / "in.npz"), [Port("x", "float32", (1, 2, 3, 4))])
    ours = qcomp.quantize(qcomp.parse(text), streamed)
    assert ours.is_structurally_equivalent(qcomp.quantize(qcomp.parse(text), [(one,) for one in data]))


def test_what_does_not_fit_is_refused_before_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "available_memory", lambda: 1 << 20)
    np.savez_compressed(tmp_path / "in.npz", x=np.zeros((1 << 10, 1 << 15), np.float32))
    (tmp_path / "net.mlir").write_text(NET.replace("2x3", "65536x65536"))
    for port in (Port("x", "float32", (1 << 10, 1 << 15)), X):
        with pytest.raises(QcompError, match=r"needs 128\.0 MiB of memory, 1\.0 MiB are available|expected shape"):
            read_inputs(str(tmp_path / "in.npz"), [port])
    found = shell.run("qcomp run net.mlir --random 1", tmp_path)
    assert found.code == 1 and "random inputs needs 64.0 GiB of memory, 1.0 MiB are available" in found.err
