# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program gives the same module as an object and as a file, whatever its tensors and structures look like."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

import qcomp
from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.text import print_text
from qcomp.errors import QcompError
from qcomp.frontend import check, from_torch
from qcomp.interpreter.run import interpret


def exported(model: nn.Module, *inputs: Any, **options: Any) -> ExportedProgram:
    return torch.export.export(model.eval(), inputs, **options)


def saved(program: ExportedProgram, folder: Path) -> Path:
    path = folder / "net.pt2"
    torch.export.save(program, path)
    return path


def same_module(program: ExportedProgram, folder: Path) -> Any:
    """The module of both doors, whose texts are equal; constants compare by digest."""
    module = from_torch(saved(program, folder))
    assert print_text(module) == print_text(from_torch(program))
    return module


class Plus(nn.Module):
    """Adds a tensor, in the tensor's type."""

    tensor: torch.Tensor

    def __init__(self, tensor: torch.Tensor):
        super().__init__()
        self.register_buffer("tensor", tensor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.tensor.dtype) + self.tensor


VALUES = torch.tensor([[0, 1, -2], [120, 5, -7]])
PLAIN = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32,
    torch.int64, torch.bool,
]  # fmt: skip


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_element_types(dtype: torch.dtype, tmp_path: Path) -> None:
    tensor = VALUES.to(dtype).repeat(1, 9)
    module = same_module(exported(nn.Sequential(Take(tensor)), torch.tensor([1])), tmp_path)
    expected = tensor[torch.tensor([1])]
    (found,) = interpret(module, np.array([1]))
    shown = expected.view(torch.uint16) if dtype == torch.bfloat16 else expected
    assert np.array_equal(found.view(shown.numpy().dtype), shown.numpy())


class Take(nn.Module):
    """Rows of a table."""

    def __init__(self, table: torch.Tensor):
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(rows, self.table)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("dtype", "name"), [(torch.complex64, "complex numbers"), (torch.float8_e4m3fn, "float8_e4m3fn")], ids=str
)
def test_element_types_that_are_refused_by_name(dtype: torch.dtype, name: str, tmp_path: Path) -> None:
    tensor = VALUES.float().to(dtype)
    program = exported(Take(tensor), torch.tensor([1]))
    for door in (program, saved(program, tmp_path)):
        with pytest.raises(QcompError, match=name):
            from_torch(door)


TABLE = torch.arange(60, dtype=torch.float32).reshape(5, 12) + 0.25
VIEWS: dict[str, torch.Tensor] = {
    "offset": TABLE.reshape(-1)[7:25].reshape(3, 6),
    "transposed": TABLE.t()[:3, :],
    "every other": TABLE[:, 1::2],
    "row": TABLE[3],
    "expanded": TABLE[:1, :1].expand(3, 6),
    "expanded over one axis": TABLE[:, :1].expand(5, 6),
    "channels last": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "empty": torch.empty(0, 6),
    "empty in the middle": torch.empty(4, 0, 2),
    "number": torch.tensor(2.5),
    "one element of many": TABLE[2, 5],
    "overlapping": torch.as_strided(TABLE, (4, 5), (3, 1), 2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_strides_and_offsets(name: str, tmp_path: Path) -> None:
    tensor = VIEWS[name]
    module = same_module(exported(Plus(tensor), torch.zeros(tensor.shape)), tmp_path)
    (found,) = interpret(module, np.zeros(tensor.shape, np.float32))
    assert np.array_equal(found, tensor.numpy())


class Shared(nn.Module):
    """Two views of one storage, a tied weight, a lifted number, a buffer that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        base = torch.randn(40, generator=torch.Generator().manual_seed(2))
        self.left, self.right = nn.Parameter(base[:20].view(4, 5)), nn.Parameter(base[10:30].view(5, 4))
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("kept", torch.arange(4.0), persistent=False)
        self.plain = torch.tensor([0.5, -1.5, 2.5, 3.5])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(self.first(x @ self.left @ self.right))
        return y + self.kept + self.plain + torch.tensor([1.0, 2.0, 3.0, 4.0])  # pyright: ignore[reportOperatorIssue]


def test_shared_storages(tmp_path: Path) -> None:
    model, x = Shared(), torch.randn(3, 4)
    module = same_module(exported(model, x), tmp_path)
    (found,) = interpret(module, x.numpy())
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-5)
    shapes = [op.array.shape for op in module.walk() if isinstance(op, ConstantOp)]
    assert shapes.count((4, 4)) == 1, "the tied weight is one constant"


class Point(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


@dataclass
class Frame:
    pixels: torch.Tensor
    corners: list[torch.Tensor]


pytree._register_namedtuple(Point, serialized_type_name="doors.Point")  # pyright: ignore[reportPrivateUsage]
torch.export.register_dataclass(Frame, serialized_type_name="doors.Frame")


class Nested(nn.Module):
    """Structures of all kinds, in and out."""

    def forward(self, point: Point, frame: Frame, *more: torch.Tensor, **named: Any) -> Any:
        total = point.x + point.y + frame.pixels + more[0] + named["k"]["deep"][0]
        return {"point": Point(total, point.x), 3: [frame.corners[0], (total * 2,)], "frame": Frame(total, [point.y])}


def test_structures(tmp_path: Path) -> None:
    parts = [torch.randn(2, 3) for _ in range(6)]
    args: tuple[Any, ...] = (Point(*parts[:2]), Frame(parts[2], [parts[3]]), parts[4])
    named = {"k": {"deep": (parts[5],)}}
    program = torch.export.export(Nested(), args, named)
    module = same_module(program, tmp_path)
    found = qcomp.compile(module, target="generic")(*args, **named)
    expected = Nested()(*args, **named)
    assert torch.equal(found["point"]["x"], expected["point"].x) and list(found) == ["point", 3, "frame"]
    assert torch.equal(found["frame"]["corners"][0], expected["frame"].corners[0])
    assert torch.equal(found[3][1][0], expected[3][1][0])


class Literals(nn.Module):
    """Arguments that are no tensors are fixed by the export."""

    def forward(self, x: torch.Tensor, times: int, offset: float, mode: str, flag: bool, nothing: None) -> Any:
        return x * times + offset, mode, flag, nothing, times


def test_literals(tmp_path: Path) -> None:
    x = torch.randn(2, 3)
    module = same_module(exported(Literals(), x, 3, 0.5, "same", True, None), tmp_path)
    artifact = qcomp.compile(module, target="generic")
    found = artifact(x, 3, 0.5, "same", True, None)
    assert torch.equal(found[0], x * 3 + 0.5) and found[1:] == ("same", True, None, 3)
    with pytest.raises(QcompError, match="was exported as 3, got 4"):
        artifact(x, 4, 0.5, "same", True, None)


def zipped_again(path: Path, method: int, root: str, **details: Any) -> Path:
    """The same members in another zip file."""
    with zipfile.ZipFile(path) as source:
        members = {name.partition("/")[2]: source.read(name) for name in source.namelist()}
    target = path.with_name("again.pt2")
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.comment = details.get("comment", b"")
        for name, data in members.items():
            info = zipfile.ZipInfo(root + name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=details.get("zip64", False)) as member:
                member.write(data)
        if details.get("folders"):
            archive.mkdir(f"{root}data")
    target.write_bytes(details.get("front", b"") + target.read_bytes())
    return target


@pytest.mark.parametrize(
    ("method", "root", "details"),
    [
        (zipfile.ZIP_DEFLATED, "net/", {}),
        (zipfile.ZIP_STORED, "", {}),
        (zipfile.ZIP_STORED, "a/b c/\u00e4/", {}),
        (zipfile.ZIP_STORED, "net/", {"zip64": True}),
        (zipfile.ZIP_DEFLATED, "net/", {"zip64": True, "comment": b"PK\5\6 of a stranger" * 40}),
        (zipfile.ZIP_STORED, "net/", {"comment": b"x" * 65535}),
        (zipfile.ZIP_STORED, "net/", {"front": b"#!/bin/sh\nexit 1\n"}),
        (zipfile.ZIP_STORED, "net/", {"folders": True}),
    ],
)
def test_zipped_again(method: int, root: str, details: dict[str, Any], tmp_path: Path) -> None:
    program = exported(nn.Linear(7, 5), torch.randn(2, 7))
    again = zipped_again(saved(program, tmp_path), method, root, **details)
    assert print_text(from_torch(again)) == print_text(from_torch(program))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packed_in_other_ways(method: int, tmp_path: Path) -> None:
    again = zipped_again(saved(exported(nn.Linear(7, 5), torch.randn(2, 7)), tmp_path), method, "net/")
    with pytest.raises(QcompError, match="packed in a way that qcomp does not read"):
        from_torch(again)


def test_several_models(tmp_path: Path) -> None:
    from torch.export.pt2_archive._package import package_pt2

    programs = {name: exported(nn.Linear(3, size), torch.ones(1, 3)) for name, size in (("left", 2), ("right", 4))}
    path = tmp_path / "two.pt2"
    package_pt2(str(path), exported_programs=programs)
    with pytest.raises(QcompError, match="holds several models: left, right"):
        from_torch(path)
    package_pt2(str(path), exported_programs={"left": programs["left"]})
    assert print_text(from_torch(path)) == print_text(from_torch(programs["left"]))


@pytest.mark.parametrize("harm", ["truncate", "overwrite", "delete"])
def test_the_file_may_go_after_import(harm: str, tmp_path: Path) -> None:
    """A mapped file that shrinks would kill the process, one that is written to would change the weights."""
    model, x = nn.Linear(64, 48), torch.randn(2, 64)
    path = saved(exported(model, x), tmp_path)
    module = from_torch(path)
    actions: dict[str, Callable[[], object]] = {
        "truncate": lambda: os.truncate(path, 0),
        "overwrite": lambda: path.write_bytes(b"\xff" * path.stat().st_size),
        "delete": path.unlink,
    }
    actions[harm]()
    (found,) = interpret(module, x.numpy())
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_example_inputs_are_a_sequence() -> None:
    with pytest.raises(QcompError, match=r"example_inputs is a Tensor, expected a tuple .*example_inputs=\(x,\)"):
        from_torch(nn.ReLU(), torch.ones(3, 2))  # pyright: ignore[reportArgumentType]


def test_weights_that_nobody_reads_are_not_read(tmp_path: Path) -> None:
    """Neither the unused ones, nor any when the program is only looked at."""
    path = saved(exported(Shared(), torch.randn(3, 4)), tmp_path)
    content = bytearray(path.read_bytes())
    kept = torch.arange(4.0).numpy().tobytes()
    content[content.index(kept)] ^= 1
    path.write_bytes(content)
    with pytest.raises(QcompError, match="does not match its checksum"):
        check(path)


def test_onnx_models_are_told_the_way_from_torch(tmp_path: Path) -> None:
    """A path, and the object that onnx.load gives; files that may be anything are judged by what is in them."""
    model = type("ModelProto", (), {"__module__": "onnx.onnx_ml_pb2"})()
    for suffix in ("onnx", "ONNX", "tflite", "pt"):
        (tmp_path / f"net.{suffix}").write_bytes(b"\x08")
    for program, message in (
        (tmp_path / "net.onnx", "net.onnx is an ONNX model, not a .pt2 or .mlir program"),
        (tmp_path / "net.ONNX", "net.ONNX is an ONNX model"),
        (tmp_path / "net.tflite", "net.tflite is a TensorFlow Lite model"),
        (model, "cannot import the ONNX model ModelProto"),
    ):
        for door in (from_torch, qcomp.compile):
            with pytest.raises(QcompError, match=message) as caught:
                door(program)
            assert "torch.export.save(torch.export.export(model.eval(), (x,)), " in (caught.value.hint or "")
    with pytest.raises(QcompError, match=r"net.pt is not a .pt2 archive"):
        from_torch(tmp_path / "net.pt")
