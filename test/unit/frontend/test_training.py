# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in training mode are imported with a warning, which travels with the module into the report."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import qcomp
from qcomp.backend.check import check_program
from qcomp.backend.compile import emit
from qcomp.dialects.notes import notes_of


class Net(nn.Module):
    """Two batch norms, one of them behind a branch of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.rest = nn.Sequential(nn.Conv2d(4, 5, 1), nn.BatchNorm2d(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest(self.first(self.stem(x)))


X = torch.randn(2, 3, 6, 7, generator=torch.Generator().manual_seed(1))
TRAINED = r"^2 batch norms are in training mode \(first: first \(.*\.py:\d+\)\): .*call model.eval\(\) before exporting"


def quiet(make: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return make()


def test_batch_norms_in_training_mode_are_counted_and_placed(tmp_path: Path) -> None:
    program = torch.export.export(Net().train(), (X,))
    with pytest.warns(UserWarning, match=TRAINED) as caught:
        module = qcomp.from_torch(program)
    assert caught[0].filename == __file__
    assert len(notes_of(module)) == 1
    assert emit(module, "generic", 0).manifest.report["warnings"] == notes_of(module)
    qcomp.save(module, tmp_path / "net.mlir")
    assert notes_of(qcomp.parse(tmp_path / "net.mlir")) == notes_of(module)
    torch.export.save(program, tmp_path / "net.pt2")
    with pytest.warns(UserWarning, match=TRAINED):
        read = qcomp.from_torch(tmp_path / "net.pt2")
    with pytest.warns(UserWarning, match=TRAINED):
        assert notes_of(qcomp.quantize(program, [X])) == notes_of(read)
    assert emit(program, "generic", 0).manifest.report["warnings"] == notes_of(module)
    with pytest.warns(UserWarning, match=TRAINED):
        assert check_program(program, "generic").supported


def test_modules_in_training_mode() -> None:
    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if self.training else x

    with pytest.warns(UserWarning, match=r"^Own is in training mode: call .eval\(\)"):
        artifact = qcomp.compile(Own(), example_inputs=(X,), target="generic", opt_level=0)
    assert len(artifact.report()["warnings"]) == 1 and "in training mode" in str(artifact)
    assert notes_of(quiet(lambda: qcomp.from_torch(Own().eval(), (X,)))) == []


def test_a_refused_program_warns_at_the_line_that_compiles_it() -> None:
    class Refused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm2d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(self.norm(x)[0, :, :3, :3])

    refused = pytest.raises(qcomp.QcompError, match="linalg_eig")
    with pytest.warns(UserWarning, match="training mode") as caught, refused:
        qcomp.compile(torch.export.export(Refused().train(), (X,)), target="generic")
    assert {warning.filename for warning in caught} == {__file__}


def test_a_batch_norm_of_torch_itself_is_named_by_its_module() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)).train()
    with pytest.warns(UserWarning, match=r"^1 batch norm is in training mode \(module 1\): "):
        qcomp.from_torch(net, (X,))


def test_no_warning_where_nothing_is_in_training_mode() -> None:
    """Batch statistics without running ones are meant, and so are evaluated batch norms and exported graphs."""
    meant = nn.Sequential(nn.InstanceNorm2d(3), nn.BatchNorm2d(3, track_running_stats=False)).eval()
    for model in (Net().eval(), meant):
        program = torch.export.export(model, (X,))
        assert notes_of(quiet(lambda program=program: qcomp.from_torch(program))) == []
        assert notes_of(quiet(lambda program=program: qcomp.from_torch(program.module(), (X,)))) == []


def test_graphs_in_training_mode() -> None:
    graph = torch.export.export(Net().train(), (X,)).module()
    with pytest.warns(UserWarning, match=TRAINED):
        qcomp.from_torch(graph, (X,))
