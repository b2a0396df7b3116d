# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damage of manifest.json: found by its digest, by what the library exports, or by the header of older artifacts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import damaged_manifests
import numpy as np
import pytest

import qcomp
from qcomp import QcompError
from qcomp.backend.abi import canonical_digest
from qcomp.backend.build import build_library
from qcomp.backend.emit_c.function import size_text
from qcomp.backend.header import parse_sizes
from qcomp.backend.manifest import digest
from qcomp.dialects.dim import larger, smaller, substitute, symbol

TIED = ("arena_bytes", "state_bytes", "interface")
"""What the library itself is compared with."""

STATIC = """func.func @main(%x: tensor<3x5xf32>, %k: tensor<2x7xi8>) -> (tensor<3x5xf32>, tensor<2x7xi8>) {
  %0 = nn.softmax %x {dim = 1 : i64} : tensor<3x5xf32> -> tensor<3x5xf32>
  %w = nn.constant dense<[0.5, 2.0, 3.0, -1.0, 0.25]> : tensor<5xf32>
  %1 = nn.mul %0, %w : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  %2 = nn.softmax %1 {dim = 0 : i64} : tensor<3x5xf32> -> tensor<3x5xf32>
  func.return %2, %k : tensor<3x5xf32>, tensor<2x7xi8>
}
"""
SYMBOLIC = """func.func @main(%x: tensor<?x3xf32, #nn.dims<[b, 3]>>, %k: tensor<2xf32>, %a: tensor<3x3xf32> \
{nn.name = "a", nn.state = #nn.data<dense<1.5> : tensor<3x3xf32>>}) \
-> (tensor<?x3xf32, #nn.dims<[2 * b, 3]>>, tensor<2xf32>, tensor<3x3xf32> {nn.state = "a"}) \
attributes {nn.symbols = [#nn.symbol<b, 1, 90>]} {
  %0 = nn.softmax %x {dim = 1 : i64} : tensor<?x3xf32, #nn.dims<[b, 3]>> -> tensor<?x3xf32, #nn.dims<[b, 3]>>
  %1 = nn.linear %0, %a : (tensor<?x3xf32, #nn.dims<[b, 3]>>, tensor<3x3xf32>) -> tensor<?x3xf32, #nn.dims<[b, 3]>>
  %2 = nn.cat %1, %0 {dim = 0 : i64} : (tensor<?x3xf32, #nn.dims<[b, 3]>>, tensor<?x3xf32, #nn.dims<[b, 3]>>) \
-> tensor<?x3xf32, #nn.dims<[2 * b, 3]>>
  %3 = nn.add %a, %a : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %4 = nn.neg %k : tensor<2xf32> -> tensor<2xf32>
  func.return %2, %4, %3 : tensor<?x3xf32, #nn.dims<[2 * b, 3]>>, tensor<2xf32>, tensor<3x3xf32>
}
"""


def made_old(folder: Path) -> None:
    """Make the artifact in `folder` one of format version 1: no digest, no text that the library exports."""
    (header,) = folder.glob("*.h")
    text = re.sub(r"/\* Of the arena.*\n#define \w+_ABI(.*\\\n)+.*\n\n", "", header.read_text())
    assert text != header.read_text()
    header.write_text(text)
    data = json.loads((folder / "manifest.json").read_text())
    names = [name for name in data["files"] if re.fullmatch(rf"{data['name']}(_weights)?\.c", name)]
    library = build_library(folder, names, data["library"], 0)
    data["files"].update({path.name: digest(path) for path in (header, library)})
    del data["digest"]
    (folder / "manifest.json").write_text(json.dumps({**data, "format_version": 1}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two artifacts, and both as the first version of the format had them."""
    folder = tmp_path_factory.mktemp("manifests")
    rng = np.random.default_rng(5)
    x = rng.standard_normal((3, 5)).astype(np.float32)
    inputs = {
        "fixed": [x, rng.integers(-9, 9, (2, 7)).astype(np.int8)],
        "open": [x.reshape(5, 3), np.array([2, 3], np.float32)],
    }
    for name, text in (("fixed", STATIC), ("open", SYMBOLIC)):
        (folder / f"{name}.mlir").write_text(text)
        artifact = qcomp.compile(folder / f"{name}.mlir", target="generic", opt_level=0)
        for title in (name, f"{name}_old"):
            artifact.save(folder / title)
            np.savez(folder / title, *inputs[name])
        made_old(folder / f"{name}_old")
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> list[Any]:
    """What each damage led to."""
    names = ["fixed", "open", "fixed_old", "open_old"]
    command = [sys.executable, "-X", "faulthandler", damaged_manifests.__file__, *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stderr, lines[-1:])
    return lines


def test_every_damaged_field_is_noticed(found: list[Any]) -> None:
    plain = [line for line in found if line[0] == "plain"]
    assert len(plain) > 400 and len({tuple(steps) for _, steps, _, _ in plain}) > 100
    assert [line for line in plain if "is damaged" not in line[3]] == []


def test_the_library_is_compared_whatever_the_digest(found: list[Any]) -> None:
    tied = [line for line in found if line[0] == "resealed" and line[1][0] in TIED]
    assert len(tied) > 200
    assert [line for line in tied if "is damaged" not in line[3]] == []


def test_no_damage_is_an_internal_error_or_a_wrong_result(found: list[Any]) -> None:
    """Whatever is changed, the outcome is the right result or a message; for older artifacts, too."""
    for kind in ("resealed", "old"):
        good = re.compile(r"right$|.*(is damaged|is missing or was changed|CC is|does not run|reads up to 2)")
        bad = [line for line in found if line[0] == kind and not good.match(line[3])]
        assert bad == [], bad[:3]


def test_the_header_of_an_older_artifact_is_compared(found: list[Any]) -> None:
    """Numbers and expressions; the arena of a program with symbols is compared at a call."""
    keys = [("arena_bytes",), ("state_bytes",)]
    keys += [("interface", role, 1, what) for role in ("inputs", "outputs") for what in ("dtype", "shape")]
    for key in keys:
        lines = [line for line in found if line[0] == "old" and tuple(line[1][: len(key)]) == key]
        lines = [line for line in lines if line[1:] != [["state_bytes"], "deleted", "right"]]  # It was 0.
        assert len(lines) > 6
        assert [line for line in lines if "is damaged" not in line[3]] == [], key


def test_older_artifacts_still_load(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are saved as artifacts of this version, and built again where that is needed."""
    with np.load(folder / "fixed_old.npz") as file:
        inputs = [file[name] for name in file.files]
    old = qcomp.load(folder / "fixed_old")
    wanted = old(*inputs)
    old.save(tmp_path / "new")
    (tmp_path / "new" / "fixed.so").unlink()
    loaded = qcomp.load(tmp_path / "new")
    assert "digest" in json.loads((tmp_path / "new" / "manifest.json").read_text())
    assert all(map(np.array_equal, loaded(*inputs), wanted))


def test_a_library_of_another_program(folder: Path, tmp_path: Path) -> None:
    """Same name, another arena: the manifest's digests are right, and the message says what differs."""
    (tmp_path / "fixed.mlir").write_text(STATIC.replace("3x5", "6x5"))
    qcomp.compile(tmp_path / "fixed.mlir", target="generic", opt_level=0).save(tmp_path / "other")
    data = json.loads((tmp_path / "other" / "manifest.json").read_text())
    own = json.loads((folder / "fixed" / "manifest.json").read_text())
    for key, message in (
        ("arena_bytes", r"arena_bytes is \d+, fixed\.so needs \d+"),
        ("interface", "interface is not"),
    ):
        mixed = {**data, key: own[key]}
        del mixed["digest"]
        (tmp_path / "other" / "manifest.json").write_text(json.dumps({**mixed, "digest": canonical_digest(mixed)}))
        with pytest.raises(QcompError, match=rf"manifest\.json is damaged: {message}"):
            qcomp.load(tmp_path / "other")


def test_programs_for_devices_do_not_grow(folder: Path) -> None:
    """The text is a macro of the header; C that is saved does not use it."""
    assert "fixed_abi" in (folder / "fixed" / "fixed.so").read_bytes().decode("latin1")
    sources = [path for path in (folder / "fixed").iterdir() if path.suffix in (".c", ".h")]
    texts = {path.name: path.read_text() for path in sources}
    assert [name for name, text in texts.items() if "ABI" in text] == ["fixed.h"]
    assert "_abi" not in "".join(texts.values()) and max(map(len, texts["fixed.h"].splitlines())) <= 100


def test_sizes_are_read_from_headers() -> None:
    """What the emitter prints, and calls that lack their last parenthesis, as it once printed."""
    names = {"a": "first", "b": "second"}
    a, b = symbol("a"), symbol("b")
    sizes = [
        7,
        a,
        2 * a - 3 * b + 5,
        -a + 9,
        (a + 1) // 2,
        (a * b + 7) // (b + 2) * 3,
        larger(a, 2 * b) - 1,
        smaller(a, 9),
    ]
    wanted = [substitute(size, {key: symbol(name) for key, name in names.items()}) for size in sizes]
    assert parse_sizes(", ".join(size_text(size, names) for size in sizes)) == wanted
    assert parse_sizes("floor_divide(first + 1, 2, 3") == [(symbol("first") + 1) // 2, 3]
    assert parse_sizes("") == [] and parse_sizes("first + 1) * (second, 2") is None
