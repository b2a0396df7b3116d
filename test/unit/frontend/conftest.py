# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures of the frontend tests: one exported program with everything a reader must handle, and its file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram


class Varied(nn.Module):
    """Strided, shared and tied tensors of several dtypes, nested inputs and outputs, literals, a symbolic batch."""

    hidden: torch.Tensor
    shared: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        table = torch.randn(4, 6, generator=torch.Generator().manual_seed(3))
        self.strided = nn.Parameter(table.t()[1:, 1:])
        self.register_buffer("shared", table.reshape(-1)[5:9])
        self.register_buffer("hidden", torch.arange(10), persistent=False)
        self.halves = torch.tensor([0.5, -1.25, 3.0], dtype=torch.bfloat16)
        self.first = nn.Linear(3, 5)
        self.second = nn.Linear(3, 5, bias=False)
        self.second.weight = self.first.weight

    def forward(self, d: dict[str, Any], y: torch.Tensor, *, k: torch.Tensor) -> Any:
        x, z = d["a"], d["b"][0]
        low, _, high = torch.split(x, [1, 3, 1], 1)
        inner = self.second(self.first(torch.relu(x @ self.strided))[:, :3])
        rest = [z + self.hidden[:1], y, 3, None, k]
        return {"main": inner, "rest": rest}, (low, high), self.shared[:3] + self.halves


def varied_inputs(batch: int = 4) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and keyword arguments of `Varied`."""
    g = torch.Generator().manual_seed(5)
    d = {"a": torch.randn(batch, 5, generator=g), "b": [torch.randn(1, generator=g)]}
    return (d, torch.randn(2, generator=g)), {"k": torch.randn(2, 2, generator=g).double()}


@pytest.fixture(scope="session")
def varied() -> ExportedProgram:
    """`Varied`, exported with a symbolic batch."""
    torch.manual_seed(0)
    args, kwargs = varied_inputs()
    dynamic = {"d": {"a": {0: torch.export.Dim("b", min=2, max=64)}, "b": [None]}, "y": None, "k": None}
    return torch.export.export(Varied().eval(), args, kwargs, dynamic_shapes=dynamic)


@pytest.fixture(scope="session")
def varied_file(varied: ExportedProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of `varied`."""
    path = tmp_path_factory.mktemp("varied") / "varied.pt2"
    torch.export.save(varied, path)
    return path


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """The file of a linear layer with 3 inputs and 2 outputs."""
    torch.manual_seed(0)
    path = tmp_path / "small.pt2"
    torch.export.save(torch.export.export(nn.Linear(3, 2).eval(), (torch.randn(4, 3),)), path)
    return path


Members = dict[str, bytes]


@pytest.fixture
def rewrite(small_file: Path, tmp_path: Path) -> Callable[[Callable[[Members], object]], Path]:
    """Copies `small_file` member by member through an edit; the member names lack the root folder."""

    def apply(edit: Callable[[Members], object], compression: int = zipfile.ZIP_STORED) -> Path:
        with zipfile.ZipFile(small_file) as source:
            members = {name.partition("/")[2]: source.read(name) for name in source.namelist()}
        edit(members)
        path = tmp_path / "edited.pt2"
        with zipfile.ZipFile(path, "w", compression) as target:
            for name, data in members.items():
                target.writestr(f"small/{name}", data)
        return path

    return apply


@pytest.fixture
def rewrite_json(rewrite: Callable[..., Path]) -> Callable[..., Path]:
    """Copies `small_file` with an edit of one JSON member (models/model.json unless named)."""

    def apply(edit: Callable[[Any], object], name: str = "models/model.json") -> Path:
        def change(members: Members) -> None:
            content = json.loads(members[name])
            edit(content)
            members[name] = json.dumps(content).encode()

        return rewrite(change)

    return apply
