# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native quantization: what is observed, with which encodings, and what it does to the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from xdsl.ir import Operation

import qcomp
from qcomp.backend.calibration import Range, weight_encoding
from qcomp.cli.main import main
from qcomp.dialects.quant import ObserveOp
from qcomp.errors import QcompError


class Net(nn.Module):
    """Batch norms, a residual, a concatenation, an activation with a table, pools, softmax at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.left, self.right = nn.Conv2d(6, 6, 1), nn.Conv2d(6, 4, (3, 1), padding=(1, 0))
        self.mix, self.head = nn.Conv2d(10, 8, 3), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.stem(x)))
        y = functional.relu(self.left(x) + x)
        y = torch.cat([y, functional.max_pool2d(functional.silu(self.right(x)), 3, 1, 1)], 1)
        y = functional.adaptive_avg_pool2d(self.mix(y), 1).flatten(1)
        return torch.softmax(self.head(y), 1)


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    model = Net().eval()
    assert model.norm.running_mean is not None and model.norm.running_var is not None
    model.norm.running_mean.normal_()
    model.norm.running_var.uniform_(0.5, 2.0)
    return torch.export.export(model, (torch.randn(1, 3, 9, 8),))


def samples(count: int, seed: int = 1) -> list[torch.Tensor]:
    return list(torch.randn(count, 1, 3, 9, 8, generator=torch.Generator().manual_seed(seed)))


def test_results_and_what_works_on_codes(program: torch.export.ExportedProgram) -> None:
    module = qcomp.quantize(program, samples(12))
    artifact = qcomp.compile(module, verify=True)
    rows = artifact.report()["ops"]
    assert [row["compute"] for row in rows if row["macs"]] == ["i8"] * 5
    assert not any(row["op"] == "nn.add" for row in rows), "the residual is part of a convolution"
    run = program.module()
    for value in samples(3, seed=5):
        expected = run(value).detach().numpy()
        assert np.abs(artifact(value).numpy() - expected).max() < 0.02


def test_operands_of_a_concatenation_share_an_encoding(program: torch.export.ExportedProgram) -> None:
    module = qcomp.quantize(program, samples(3))
    cat = next(op for op in module.walk() if op.name == "nn.cat")
    pool = cat.operands[1].owner
    assert isinstance(pool, Operation)
    sources = [cat.operands[0].owner, pool.operands[0].owner]
    encodings = [op.encoding for op in sources if isinstance(op, ObserveOp)]
    assert len(encodings) == 2 and encodings[0] == encodings[1]


def test_arrays_tuples_and_evaluators_give_the_same(program: torch.export.ExportedProgram) -> None:
    texts = {
        str(qcomp.quantize(program, given))
        for given in (samples(2), [value.numpy() for value in samples(2)], [(value,) for value in samples(2)])
    }
    assert len(texts) == 1
    other = qcomp.quantize(program, samples(2), evaluator="torch")
    assert sum(isinstance(op, ObserveOp) for op in other.walk()) == texts.pop().count("quant.observe ")


@pytest.mark.parametrize("seed", range(3))
def test_ranges_without_outliers_are_torchs(seed: int) -> None:
    values = np.random.default_rng(seed).uniform(-1.5, 3.0, 4000).astype(np.float32)
    seen = Range()
    seen.extend(values)
    seen.count(values)
    encoding = seen.encoding()
    scale = np.float32(values.max() - values.min()) / np.float32(255)
    assert abs(encoding.scale / scale - 1) < 0.01 and abs(encoding.zero_point - round(1.5 / scale)) <= 1


def test_outliers_are_clipped_and_what_was_never_seen_has_an_encoding() -> None:
    values = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    values[0] = 60.0
    seen = Range()
    seen.extend(values)
    seen.count(values)
    assert seen.encoding().scale * 255 < 58
    for array in (np.zeros(3, np.float32), np.array([np.nan, np.inf], np.float32)):
        empty = Range()
        empty.extend(array)
        empty.count(array)
        assert (empty.encoding().scale, empty.encoding().zero_point) == (1.0, 0)
    negative = Range()
    for step in (negative.extend, negative.count):
        step(np.array([-3.0, -1.0], np.float32))
    assert negative.encoding().zero_point == 255


def test_weights() -> None:
    weight = np.array([[[1.0, -2.54]], [[0.0, 0.0]]], np.float32)
    encoding = weight_encoding(weight, 0)
    assert encoding.axis == 0 and np.allclose(encoding.scales, [0.02, 2.0**-23])
    assert weight_encoding(weight, 2).scales.shape == (2,)


@pytest.mark.parametrize(
    ("given", "scheme", "match"),
    [
        ([], "int8", "no calibration samples"),
        (samples(1), "int3", "'int3' does not exist.*int8"),
        ([*samples(1), (samples(1)[0], samples(1)[0])], "int8", "sample 1 has 2 inputs, the program takes 1 .*tuple"),
    ],
)
def test_refusals(program: torch.export.ExportedProgram, given: list[object], scheme: str, match: str) -> None:
    with pytest.raises(QcompError, match=match):
        qcomp.quantize(program, given, scheme)


def test_quantized_programs_are_refused(program: torch.export.ExportedProgram) -> None:
    with pytest.raises(QcompError, match="quantized already"):
        qcomp.quantize(qcomp.quantize(program, samples(1)), samples(1))


def test_command_line(
    program: torch.export.ExportedProgram, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    torch.export.save(program, tmp_path / "net.pt2")
    np.savez(tmp_path / "data.npz", x=np.stack([value.numpy() for value in samples(4)]))
    command = ["compile", str(tmp_path / "net.pt2"), "-o", str(tmp_path / "out"), "--target", "generic"]
    assert main([*command, "--calibrate", str(tmp_path / "data.npz")]) == 0
    assert "net for generic" in (text := capsys.readouterr().out) and "100.0% of the quantized ones" in text


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 3, 9, 8), "input x have shape [4, 3, 9, 8], expected [samples, 1, 3, 9, 8] (hint: the first"),
        ((0, 1, 3, 9, 8), "there are no calibration samples"),
        ((4, 1, 3, 9, 7), "expected shape [1, 3, 9, 8], got [1, 3, 9, 7]"),
    ],
)
def test_command_line_says_what_samples_are(
    program: torch.export.ExportedProgram, shape: tuple[int, ...], message: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    torch.export.save(program, tmp_path / "net.pt2")
    np.savez(tmp_path / "data.npz", x=np.zeros(shape, np.float32))
    command = ["compile", str(tmp_path / "net.pt2"), "-o", str(tmp_path / "out"), "--target", "generic"]
    assert main([*command, "--calibrate", str(tmp_path / "data.npz")]) == 1
    assert message in capsys.readouterr().err


class Smooth(nn.Module):
    """A linear of a running sum, which is state."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 4)
        self.register_buffer("total", torch.full((2, 5), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.get_buffer("total").mul_(0.5).add_(x)
        return self.linear(self.get_buffer("total"))


def test_programs_with_state() -> None:
    torch.manual_seed(3)
    values = [torch.randn(2, 5) for _ in range(7)]
    program = torch.export.export(Smooth().eval(), (values[0],))
    artifact, exact = qcomp.compile(qcomp.quantize(program, values), target="generic"), qcomp.compile(program)
    assert artifact.report()["macs_integer_share"] == 1.0
    for value in values[:2]:
        assert 0 < (artifact(value) - exact(value)).abs().max() < 0.05


def test_symbolic_sizes_stay_and_ranges_are_those_of_fixed_sizes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5)).eval()
    given = samples(4)
    batch = torch.export.Dim("batch", max=9)
    free = torch.export.export(model, (torch.cat(given),), dynamic_shapes=({0: batch},))
    fixed = torch.export.export(model, (given[0],))
    file = tmp_path / "free.pt2"
    torch.export.save(free, file)
    wanted = [op.encoding for op in qcomp.quantize(fixed, given).walk() if isinstance(op, ObserveOp)]
    for program in (free, file):
        module = qcomp.quantize(program, given)
        assert [op.encoding for op in module.walk() if isinstance(op, ObserveOp)] == wanted
        artifact = qcomp.compile(module, target="generic")
        for x in (given[0], torch.cat(given), torch.cat(given)[:3]):
            assert (artifact(x) - model(x)).abs().max() < 0.02
    qcomp.quantize(free, [given[0], torch.cat(given)])  # samples of several sizes


def test_samples_with_nan_are_counted_in_a_warning(program: torch.export.ExportedProgram) -> None:
    given = samples(3)
    given[1][0, 0, 0, 0] = torch.nan
    with pytest.warns(UserWarning, match="NaN in 1 of the calibration samples is left out of the ranges"):
        qcomp.quantize(program, given)


def test_the_sample_that_does_not_fit_is_named(program: torch.export.ExportedProgram) -> None:
    with pytest.raises(QcompError, match="sample 1: input 0 of main: expected dtype float32, got float64"):
        qcomp.quantize(program, [samples(1)[0], samples(1)[0].double()])
