# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Saving and loading: the same bits in a process without torch, damage is noticed, nothing is half-written."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled import COMPILERS, STRICT, network, run_c
from tensor_programs import constant, floats, program, quantized
from xdsl.dialects.builtin import ModuleOp

import qcomp
from qcomp import QcompError
from qcomp.backend import artifact as artifact_module
from qcomp.backend import compile as compile_module
from qcomp.backend.abi import canonical_digest
from qcomp.backend.artifact import Artifact
from qcomp.backend.emit_c.names import c_identifier
from qcomp.backend.manifest import FORMAT_VERSION, digest
from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.quant import Encoding


@pytest.fixture
def folder(artifact: Artifact, tmp_path: Path) -> Path:
    artifact.save(tmp_path / "saved")
    return tmp_path / "saved"


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    edit(data)
    del data["digest"]
    path.write_text(json.dumps({**data, "digest": canonical_digest(data)}))


def without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")


def test_files(folder: Path, artifact: Artifact) -> None:
    names = {"manifest.json", "net.c", "net.h", "net.so", "net_selftest.c", "net_weights.c"}
    assert {path.name for path in folder.iterdir()} == names
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["files"] == {name: digest(folder / name) for name in sorted(names - {"manifest.json"})}
    assert manifest["format_version"] == FORMAT_VERSION and manifest["numerics"] == "float"
    assert manifest["interface"]["inputs"][0]["shape"] == [2, 3, 7, 5]
    report = artifact.report()
    assert manifest["report"] == {key: report[key] for key in report if key not in ("macs", "macs_integer")}
    umask = os.umask(0o022)
    os.umask(umask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~umask


def test_round_trip(folder: Path, artifact: Artifact, sample: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiler is needed, and the loaded artifact saves again to the same bytes."""
    without_a_compiler(monkeypatch)
    loaded = qcomp.load(folder)
    assert (loaded(sample) == artifact(sample)).all()
    assert loaded.report() == artifact.report() and loaded.interface == artifact.interface
    loaded.save(folder.parent / "again")
    for path in folder.iterdir():
        assert path.read_bytes() == (folder.parent / "again" / path.name).read_bytes(), path.name


def test_loads_without_torch_and_xdsl(folder: Path, artifact: Artifact, sample: Array, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=sample, y=artifact(sample))
    code = (
        "import sys\nfor name in ('torch', 'xdsl'): sys.modules[name] = None\n"
        "import numpy, qcomp\nfile = numpy.load('x.npz')\nartifact = qcomp.load('saved')\n"
        "assert (artifact(file['x']) == file['y']).all()\nartifact.save('copy')\nprint(artifact.report()['target'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == artifact.manifest.target


def test_text_is_the_same_every_time(folder: Path, tmp_path: Path) -> None:
    """Compiled anew in a process with another hash seed and folder."""
    qcomp.save(network(), tmp_path / "net.mlir")
    code = "import qcomp; qcomp.compile('net.mlir', opt_level=2).save('elsewhere/again')"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment)
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "elsewhere" / "again" / path.name).read_bytes(), path.name
        assert str(tmp_path).encode() not in path.read_bytes()


@pytest.mark.parametrize("damage", ["missing", "changed", "other machine"])
def test_library_is_built_again(
    folder: Path, artifact: Artifact, sample: Array, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if damage == "missing":
        (folder / "net.so").unlink()
    elif damage == "changed":
        (folder / "net.so").write_bytes(b"no library")
    else:
        edit_manifest(folder, lambda data: data.update(machine="somewhere pdp11 middle"))
    loaded = qcomp.load(folder)
    assert (loaded(sample) == artifact(sample)).all()
    loaded.save(folder)
    without_a_compiler(monkeypatch)
    assert (qcomp.load(folder)(sample) == artifact(sample)).all()


def test_changed_sources_are_not_built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "net.c").open("a") as file:
        file.write("/* changed */\n")
    qcomp.load(folder)
    (folder / "net.so").unlink()
    with pytest.raises(QcompError, match=r"net\.c is missing or was changed"):
        qcomp.load(folder)


def test_no_compiler_and_no_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "net.so").unlink()
    without_a_compiler(monkeypatch)
    with pytest.raises(QcompError, match="CC is no-such-compiler, which is not there"):
        qcomp.load(folder)


@pytest.mark.parametrize("name", ["../net.c", "/etc/passwd", "", ".", "unlisted.so"])
def test_manifest_names_no_other_files(folder: Path, name: str) -> None:
    def edit(data: dict[str, Any]) -> None:
        data["library"] = name or None
        data["files"].update({} if name == "unlisted.so" else {name: "0"})

    edit_manifest(folder, edit)
    with pytest.raises(QcompError, match=r"manifest\.json is damaged: it names the file"):
        qcomp.load(folder)


def test_damaged_manifests(folder: Path) -> None:
    whole = (folder / "manifest.json").read_text()
    for text in (
        "",
        "[]",
        "{}",
        '{"format_version": "1"}',
        whole[:-9],
        whole.replace('"name": "net"', '"name": "a b"'),
    ):
        (folder / "manifest.json").write_text(text)
        with pytest.raises(QcompError, match="is damaged"):
            qcomp.load(folder)


def test_newer_format(folder: Path) -> None:
    edit_manifest(folder, lambda data: data.update(format_version=FORMAT_VERSION + 1, something="new"))
    with pytest.raises(QcompError, match=rf"has format version {FORMAT_VERSION + 1}, .* reads up to {FORMAT_VERSION}"):
        qcomp.load(folder)


def test_not_an_artifact(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(QcompError, match=r"is no saved artifact: it has no manifest\.json"):
            qcomp.load(place)


def test_other_folders_are_not_touched(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "net.c").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(QcompError, match="mine holds other files"):
        artifact.save(tmp_path / "mine")
    with pytest.raises(QcompError, match="file is a file"):
        artifact.save(tmp_path / "file")
    assert (tmp_path / "mine" / "net.c").read_text() == "mine" == (tmp_path / "file").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "file"}


def test_replacing_an_artifact(folder: Path, sample: Array) -> None:
    """Its own files go, others stay; the new library is the one that is loaded."""
    (folder / "main.c").write_text("mine")
    old = qcomp.load(folder)(sample)

    def build(add: Any, x: Any) -> Any:
        return add(nn.AddOp(x, add(constant(np.full((5,), 3, np.float32)))))

    qcomp.compile(program(build, floats(2, 5)), name="other", opt_level=1).save(folder)
    names = {"main.c", "manifest.json", "other.c", "other.h", "other.so", "other_selftest.c", "other_weights.c"}
    assert {path.name for path in folder.iterdir()} == names
    assert (qcomp.load(folder)(old) == old + 3).all()


def test_loading_after_replacing_with_the_same_name(tmp_path: Path) -> None:
    """The loader of the system must not hand out the library that was there before."""
    x = np.arange(3, dtype=np.float32)
    kept: list[Artifact] = []
    for value in (2.0, 5.0):
        number = np.array([value], np.float32)

        def build(add: Any, x: Any, number: Array = number) -> Any:
            return add(nn.MulOp(x, add(constant(number))))

        qcomp.compile(program(build, floats(3)), opt_level=1).save(tmp_path / "a")
        kept.append(qcomp.load(tmp_path / "a"))
    assert [float(one(x)[2]) for one in kept] == [4.0, 10.0]


@pytest.mark.parametrize("step", ["write", "move"])
def test_nothing_is_half_written(folder: Path, artifact: Artifact, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure while writing leaves what was there; one between two files leaves nothing that loads."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(*((artifact_module.Manifest, "text") if step == "write" else (os, "replace")), fail)
    with pytest.raises(OSError, match="no space left"):
        artifact.save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["saved"]
    if step == "write":
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    else:
        with pytest.raises(QcompError, match="is no saved artifact"):
            qcomp.load(folder)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_sources_are_strict_c99_and_test_themselves(folder: Path, compiler: str) -> None:
    done = run_c(compiler, folder, STRICT)
    assert (done.returncode, done.stdout) == (0, "net: 0 of 10 outputs are not as expected\n")


def test_self_test_finds_mistakes(folder: Path) -> None:
    """A sign in the model, one expected output, NaN."""
    text = (folder / "net_weights.c").read_text()
    (folder / "net_weights.c").write_text(text.replace("0x1.", "-0x1.").replace("--", ""))
    assert run_c("gcc", folder, ("-std=c99",)).returncode > 0
    (folder / "net_weights.c").write_text(text)
    test = (folder / "net_selftest.c").read_text()
    head, tail = test.split("expected0[10] = {\n  ")
    for wrong in ("9.0f", "(0.0f / 0.0f)"):
        rest = tail.split(",", 1)[1]
        (folder / "net_selftest.c").write_text(f"{head}expected0[10] = {{\n  {wrong},{rest}")
        done = run_c("gcc", folder, ("-std=c99",))
        assert (done.returncode, done.stdout) == (1, "net: 1 of 10 outputs are not as expected\n")


def test_header_is_for_c_plus_plus_too(folder: Path) -> None:
    code = '#include "net.h"\n#include "net.h"\nint main() { return NET_ARENA_SIZE < 1 || !net_run; }\n'
    (folder / "use.cc").write_text(code)
    compilers = [name for name in ("g++", "clang++", "clang++-19") if shutil.which(name)]
    for compiler in compilers:
        command = [compiler, "-std=c++11", "-Wall", "-Wextra", "-Wno-address", "-fsyntax-only", "use.cc"]
        subprocess.run(command, cwd=folder, check=True)
    text = (folder / "net.h").read_text()
    assert 'extern "C" {' in text and "void net_run(const float *" in text


HOSTILE = [
    "*/ int x = 1; /*", "../../escape", "a\nb", "int", "NULL", "linux", "int8_t", "arena", "memcpy", "9lives", "",
    "\u00e9t\u00e9", "x" * 300, "net_run", "INT8_MAX", "_Bool", "UNROLL", "*\\ int y;", "%s\\",
    "\x00", "add_0", "net_w0", "string", "x_t", "??/",
]  # fmt: skip


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 5))
def test_hostile_names(start: int, tmp_path: Path) -> None:
    """Names of the program, of inputs, outputs and places never reach C or the file system as they are."""
    from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
    from xdsl.dialects.func import FuncOp

    from qcomp.dialects.location import location

    names = HOSTILE[start : start + 5]

    def build(add: Any, *values: Any) -> Any:
        total = values[0]
        for value in values[1:]:
            op = nn.AddOp(total, value)
            op.location = location(names[0], names[1] or "file", 3)
            total = add(op)
        return [total, *values]

    module = program(build, *[floats(2, 3)] * 5)
    main = module.body.block.first_op
    assert isinstance(main, FuncOp)
    entries = ArrayAttr([DictionaryAttr({"nn.name": StringAttr(name)}) for name in names])
    main.arg_attrs = entries
    main.res_attrs = ArrayAttr([DictionaryAttr({"nn.name": StringAttr(names[0])}), *entries.data])
    artifact = qcomp.compile(module, name=names[0], target="generic", opt_level=1)
    artifact.save(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    prefix = artifact.manifest.name
    assert prefix == c_identifier(names[0], "net") and len(prefix) <= 63
    assert {path.name.removeprefix(prefix) for path in (tmp_path / "out").iterdir()} == {
        ".c", ".h", ".so", "_selftest.c", "manifest.json",
    }  # fmt: skip
    arrays = [np.full((2, 3), 2.0**index, np.float32) for index in range(5)]
    assert (qcomp.load(tmp_path / "out")(*arrays)[0] == 31).all()
    assert run_c("gcc", tmp_path / "out", STRICT).returncode == 0
    assert run_c("gcc", tmp_path / "out", ("-O0",)).returncode == 0


def test_a_target_that_does_not_run_here(
    tmp_path: Path, artifact: Artifact, sample: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources only, whose self-test expects what the interpreter gives."""
    monkeypatch.setattr(compile_module, "runs_here", lambda _: False)
    crossed = qcomp.compile(network(), target="generic", opt_level=1, name="cross")
    crossed.save(tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.so"))
    done = run_c("gcc", tmp_path / "out", STRICT)
    assert (done.returncode, done.stdout) == (0, "cross: 0 of 10 outputs are not as expected\n")
    with monkeypatch.context() as patch:
        patch.setattr(artifact_module, "runs_here", lambda _: False)
        loaded = qcomp.load(tmp_path / "out")
        with pytest.raises(QcompError, match="code for generic does not run on this machine"):
            loaded(sample)
    assert (qcomp.load(tmp_path / "out")(sample) == artifact(sample)).all()


def test_cross_float_models_are_compared_with_tolerance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter sums in another order; a wrong weight is still found."""
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((4, 300)).astype(np.float32)

    def build(add: Any, x: Any) -> Any:
        return add(nn.LinearOp(x, add(constant(weight))))

    monkeypatch.setattr(compile_module, "runs_here", lambda _: False)
    qcomp.compile(program(build, floats(3, 300)), target="generic").save(tmp_path / "out")
    done = run_c("gcc", tmp_path / "out", STRICT)
    assert (done.returncode, done.stdout) == (0, "net: 0 of 12 outputs are not as expected\n")
    path = tmp_path / "out" / "net_weights.c"
    source = path.read_text()
    first = next(line for line in source.splitlines() if line.startswith("  "))
    path.write_text(source.replace(first, f"  {weight[0, 0] + 1}f,{first.split(',', 1)[1]}", 1))
    assert run_c("gcc", tmp_path / "out", STRICT).returncode == 3


def test_large_outputs_are_checked_in_part(tmp_path: Path) -> None:
    def build(add: Any, x: Any) -> Any:
        return [add(nn.NegOp(x)), add(nn.AddOp(x, x))]

    qcomp.compile(program(build, floats(700, 300)), target="generic", opt_level=1).save(tmp_path / "out")
    text = (tmp_path / "out" / "net_selftest.c").read_text()
    assert "Only the first 262144 of 420000 outputs are checked." in text
    done = run_c("gcc", tmp_path / "out", STRICT)
    assert (done.returncode, done.stdout) == (0, "net: 0 of 262144 outputs are not as expected\n")


def tails() -> ModuleOp:
    """A convolution on a reshaped argument of 7 codes, and a linear on 6 codes that are a result as well."""
    rng = np.random.default_rng(3)
    held = Encoding.make(0.02, 0, qmin=-127)
    source, middle, last = (Encoding.make(scale, 5, signed=False) for scale in (0.05, 0.11, 0.2))

    def build(add: Any, x: Any) -> Any:
        weights = [rng.integers(-127, 128, shape).astype(np.int8) for shape in ((6, 7, 1, 1), (3, 6))]
        image = add(nn.ReshapeOp(x, (1, 7, 1, 1)))
        y = add(nn.Conv2dOp(image, add(constant(weights[0], held)), result_type=quantized(middle, 1, 6, 1, 1)))
        flat = add(nn.ReshapeOp(y, (1, 6)))
        return [flat, y, add(nn.LinearOp(flat, add(constant(weights[1], held)), result_type=quantized(last, 1, 3)))]

    return program(build, quantized(source, 1, 7))


@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize("module", [network, tails])
def test_no_byte_beyond_a_buffer(module: Callable[[], ModuleOp], target: str, tmp_path: Path) -> None:
    """What the caller gives is read to its end and not further; nothing undefined happens."""
    qcomp.compile(module(), target=target, opt_level=1).save(tmp_path / "out")
    done = run_c("gcc", tmp_path / "out", ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: "[" * 100_000,
        lambda text: "\udcff" + text,
        lambda text: text.replace('"dtype": "float32"', '"dtype": "object"'),
        lambda text: text.replace('"dtype": "float32"', '"dtype": "nosuch"'),
        lambda text: text.replace('"dtype": "float32"', '"dtype": 7'),
    ],
)
def test_manifests_that_mean_harm(folder: Path, tmp_path: Path, edit: Callable[[str], str]) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(folder, copied)
    text = (copied / "manifest.json").read_text(encoding="utf-8")
    (copied / "manifest.json").write_bytes(edit(text).encode("utf-8", "surrogateescape"))
    with pytest.raises(QcompError, match=r"manifest\.json is damaged"):
        qcomp.load(copied)
