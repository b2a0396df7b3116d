# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants as C text and through the assembler: the same bits under the same symbols."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled import COMPILERS, STRICT

from qcomp.backend.build import build_library
from qcomp.backend.weights import NUMBERS_LIMIT, ROW, c_weights, number_lines, write_weights
from qcomp.dialects.constant import Array


def constants() -> dict[str, Array]:
    """Every element type, the ends of every range, sizes around the limits; too much for numbers alone."""
    rng = np.random.default_rng(3)
    random_bits = rng.integers(0, 2**32, 5000, dtype=np.uint32).view(np.float32)
    floats = np.array(
        [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1.1754942e-38, 1.17549435e-38, 3.4028235e38, 1 / 3], np.float32
    )
    return {
        "w_all": np.arange(-128, 128).astype(np.int8).repeat(3).reshape(3, 256),
        "w_floats": floats,
        "w_more_floats": random_bits,
        "w_i32": np.array([-(2**31), 2**31 - 1, 0, -1], np.int32),
        "w_i64": np.array([-(2**63), 2**63 - 1, 2**31, -(2**31), 7], np.int64),
        "w_i16": np.array([-(2**15), 2**15 - 1], np.int16),
        "w_one": np.array(-77, np.int8),
        "w_empty": np.zeros((0, 4), np.float32),
        "w_large": rng.integers(-128, 128, NUMBERS_LIMIT + 1).astype(np.int8),
        "w_large_floats": rng.standard_normal(NUMBERS_LIMIT // 4 * 3).astype(np.float32),
        "w_row": rng.integers(-128, 128, 5 * ROW).astype(np.int8),
    }


def read(library: Path, symbol: str, array: Array) -> Array:
    memory = (ctypes.c_char * array.nbytes).in_dll(ctypes.CDLL(str(library)), symbol)
    assert ctypes.addressof(memory) % 64 == 0
    return np.frombuffer(bytes(memory), array.dtype).reshape(array.shape)


def same(left: Array, right: Array) -> bool:
    """Equal bits; any NaN is any NaN."""
    nan = np.isnan(left) & np.isnan(right) if left.dtype.kind == "f" else np.zeros(left.shape, bool)
    unsigned = f"u{left.itemsize}"
    return bool(((left.reshape(-1).view(unsigned) == right.reshape(-1).view(unsigned)) | nan.reshape(-1)).all())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    assert write_weights(folder, "net", constants(), "text") == ["net_weights.c"]
    assert write_weights(folder, "net", constants(), "binary") == ["net_weights.S"]
    return folder


@pytest.mark.parametrize("source", ["net_weights.c", "net_weights.S"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_bits(folder: Path, source: str, compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{compiler} {' '.join(STRICT)}" if source.endswith(".c") else compiler)
    library = build_library(folder, [source], f"{compiler}{source}.so", 0)
    for symbol, array in constants().items():
        assert same(read(library, symbol, array), array), symbol


def test_text(folder: Path) -> None:
    """Narrow lines; small constants are legible; nothing that could be a trigraph."""
    text = (folder / "net_weights.c").read_text()
    assert max(map(len, text.splitlines())) <= 100
    assert "??" not in text
    assert re.search(r"w_i32\[4\] = \{\n  -2147483647-1,2147483647,0,-1,\n\};", text)
    assert "w_floats[10] = {\n  NAN,INFINITY,-INFINITY,-0.0f,0.0f," in text
    assert f"w_row[5][{ROW}]" not in text and f"w_large[129][{ROW}]" in text


def test_small_constants_need_no_byte_order() -> None:
    text = b"".join(c_weights("net", {"a": np.arange(5, dtype=np.int32), "b": np.ones(3000, np.int8)})).decode()
    assert "#error" not in text and '"' not in text


def test_strings_of_numbers_refuse_other_byte_orders(tmp_path: Path) -> None:
    text = b"".join(c_weights("net", {"a": np.arange(NUMBERS_LIMIT + 1, dtype=np.int32)})).decode()
    assert "#error" in text
    (tmp_path / "w.c").write_text("#undef __BYTE_ORDER__\n#define __BYTE_ORDER__ __ORDER_BIG_ENDIAN__\n" + text)
    with pytest.raises(Exception, match="these weights hold numbers as little-endian bytes"):
        build_library(tmp_path, ["w.c"], "w.so")


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.float32])
def test_numbers_by_python(dtype: Any) -> None:
    """The text read by Python gives the array."""
    limits = np.array([0, 1, -1, 100, -100], np.float64)
    array = np.concatenate([limits, np.random.default_rng(3).standard_normal(3000) * 90]).astype(dtype)
    words = b"".join(number_lines(array)).decode().replace("\n", "").replace(" ", "").rstrip(",").split(",")
    values = [float.fromhex(w[:-1]) if w.endswith("f") and "x" in w else float(w.rstrip("f")) for w in words]
    assert same(np.array(values, np.float64).astype(dtype), array)


def test_doubles_keep_their_bits() -> None:
    values = np.array([0.1, -1e-310, np.pi, np.inf, -np.inf, np.nan])
    text = b"".join(number_lines(values)).decode().replace("\n", "").replace(" ", "")
    found = [float.fromhex(word.replace("INFINITY", "inf")) for word in text.split(",") if word]
    assert np.array(found).tobytes()[:40] == values.tobytes()[:40] and np.isnan(found[5])
