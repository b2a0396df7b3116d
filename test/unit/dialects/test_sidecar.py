# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Saved modules: what happens when the sidecar file is missing, damaged or of another version."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.quant import Encoding, UniformQuantizedType
from qcomp.dialects.sidecar import read
from qcomp.dialects.text import FORMAT_VERSION, parse, save
from qcomp.errors import QcompError

WEIGHTS = np.arange(40, dtype=np.float32).reshape(5, 8)


def program() -> ModuleOp:
    kind = UniformQuantizedType(Encoding.make(np.linspace(0.1, 1, 20), 3, axis=0))
    return ModuleOp([ConstantOp(WEIGHTS), ConstantOp(np.arange(30, dtype=np.int8))], {"kind": kind})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save(program(), tmp_path / "net.mlir")
    return tmp_path / "net.mlir"


def test_a_missing_sidecar_is_named(saved: Path):
    saved.with_suffix(".safetensors").unlink()
    with pytest.raises(QcompError, match=r'unresolved constant ".*": not found in .*net\.safetensors'):
        parse(saved)


def test_a_sidecar_of_another_module_is_named(saved: Path, tmp_path: Path):
    save(ModuleOp([ConstantOp(WEIGHTS + 1)]), tmp_path / "other.mlir")
    os.replace(tmp_path / "other.safetensors", saved.with_suffix(".safetensors"))
    with pytest.raises(QcompError, match=r"unresolved constant .*net\.safetensors"):
        parse(saved)


def test_text_alone_says_that_it_came_without(saved: Path):
    with pytest.raises(QcompError, match="came without a sidecar file"):
        parse(saved.read_text())


def test_a_truncated_sidecar_is_an_error_whatever_its_length(saved: Path):
    beside = saved.with_suffix(".safetensors")
    whole = beside.read_bytes()
    for length in (*range(0, 200, 7), len(whole) - 161, len(whole) - 1):
        beside.write_bytes(whole[:length])
        with pytest.raises(QcompError, match="sidecar"):
            parse(saved)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_sidecar_is_an_error(saved: Path, changes: list[tuple[int, int]]):
    beside = saved.with_suffix(".safetensors")
    whole = beside.read_bytes()
    raw = bytearray(whole)
    for at, byte in changes:
        raw[at % len(raw)] = byte
    beside.write_bytes(raw)
    try:
        constants = [op.array for op in parse(saved).walk() if isinstance(op, ConstantOp)]
        assert constants[0].tobytes() == WEIGHTS.tobytes(), "no change that matters"
    except QcompError as problem:
        assert "net.safetensors" in str(problem)
    finally:
        beside.write_bytes(whole)


def test_damaged_numbers_are_found(saved: Path):
    beside = saved.with_suffix(".safetensors")
    raw = bytearray(beside.read_bytes())
    raw[raw.index(WEIGHTS.tobytes()) + 5] ^= 1
    beside.write_bytes(raw)
    with pytest.raises(QcompError, match=r'unresolved constant ".*": its content in .*net\.safetensors is damaged'):
        parse(saved)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2**63, 2], "data_offsets": [0, 8]},
        {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2]},
        {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0.0, 8.0]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 8]},
        {"dtype": "F32", "shape": {"2": 2}, "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [0, 10**30], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]},
        [],
        None,
    ],
)
def test_entries_that_lie(tmp_path: Path, entry: object):
    header = json.dumps({"abc": entry}).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 8)
    with pytest.raises(QcompError, match=r"m\.safetensors is not a sidecar file"):
        read(tmp_path / "m.safetensors")


@pytest.mark.parametrize("header", [b"", b"{", b"[1]", b"3", b'{"a": {}}', b"[" * 100_000, b"\xff\xfe"])
def test_headers_that_are_none(tmp_path: Path, header: bytes):
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(QcompError, match=r"m\.safetensors is not a sidecar file"):
        read(tmp_path / "m.safetensors")


def test_a_newer_format_is_refused_and_an_older_one_read(saved: Path):
    text = saved.read_text()
    assert f"qcomp.format = {FORMAT_VERSION} : i64" in text
    saved.write_text(text.replace(f"qcomp.format = {FORMAT_VERSION}", f"qcomp.format = {FORMAT_VERSION + 1}"))
    with pytest.raises(QcompError, match=rf"has format version {FORMAT_VERSION + 1}.*use a newer qcomp") as caught:
        parse(saved)
    assert caught.value.code == "format-version"
    saved.write_text(text.replace(f"qcomp.format = {FORMAT_VERSION} : i64", "qcomp.format = 0 : i64"))
    parse(saved)


def test_saving_leaves_no_old_constants_and_no_partial_files(saved: Path):
    save(ModuleOp([ConstantOp(np.zeros(3, np.float32))]), saved)
    assert [path.name for path in saved.parent.iterdir()] == ["net.mlir"]


def test_a_module_can_be_saved_over_the_file_it_came_from(saved: Path):
    """Its arrays are maps of the sidecar file."""
    module = parse(saved)
    save(module, saved)
    first = next(op for op in parse(saved).walk() if isinstance(op, ConstantOp))
    assert first.array.tolist() == WEIGHTS.tolist()
    again = next(op for op in module.walk() if isinstance(op, ConstantOp))
    assert again.array.tolist() == WEIGHTS.tolist()


def test_a_file_that_is_not_there():
    with pytest.raises(QcompError, match=r"cannot read nosuch\.mlir") as caught:
        parse("nosuch.mlir")
    assert caught.value.code == "file"


def test_a_file_that_is_no_text(tmp_path: Path):
    (tmp_path / "m.mlir").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(QcompError, match="cannot read"):
        parse(tmp_path / "m.mlir")
