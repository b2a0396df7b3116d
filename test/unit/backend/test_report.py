# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the report of a compiled model says, and how it and the artifact print."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from xdsl.dialects.builtin import ModuleOp

import qcomp
from qcomp.backend.artifact import Artifact
from qcomp.backend.compile import emit
from qcomp.backend.macs import macs
from qcomp.backend.manifest import Manifest
from qcomp.backend.report import Report, float_ops


class Block(nn.Module):
    """Attention, layer norms, a recurrent layer: much of it has no integer form, or nobody quantizes it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 40), nn.GELU(), nn.Linear(40, 16))
        self.lstm, self.head = nn.LSTM(16, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).view(2, 7, 3, 2, 8).permute(2, 0, 3, 1, 4)
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 7, 16))
        y, _ = self.lstm(x + self.mlp(x))
        return torch.softmax(self.head(y[:, -1]), -1)


class Product(nn.Module):
    """A matmul of plain integers, and one of floats."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.ops.aten._int_mm(a, b), c @ c.T


def described(program: object, **options: Any) -> Report:
    """The report of `program` without building its C."""
    return Artifact(emit(program, "generic", 2, **options).manifest, None, None).report()


@pytest.fixture(scope="module")
def quantized() -> ModuleOp:
    torch.manual_seed(0)
    samples = [torch.randn(2, 7, 16) for _ in range(3)]
    return qcomp.quantize(torch.export.export(Block().eval(), (samples[0],)), samples)


@pytest.fixture(scope="module")
def artifact(quantized: ModuleOp) -> Artifact:
    return qcomp.compile(quantized, target="generic", opt_level=1, name="block")


def test_every_float_op_of_a_quantized_model_has_one_short_reason(artifact: Artifact) -> None:
    report = artifact.report()
    for row in report["ops"]:
        reason = row["reason"]
        assert (reason is not None) == row["compute"].startswith("f"), row
        assert reason is None or (0 < len(reason) <= 70 and ";" not in reason), row
    reasons = {row["op"]: row["reason"] for row in report["ops"]}
    assert reasons["nn.lstm"] == "nn.lstm has no integer form"
    assert reasons["nn.matmul"] == "left side is not dequantized"
    assert reasons["nn.softmax"] == "has no integer form"
    assert reasons["quant.dequantize"] == "turns codes into floats"
    groups = float_ops(report["ops"])
    assert [group.macs for group in groups[:2]] == [2 * 2 * 2 * 7 * 7 * 8, 2 * 7 * 20 * 5]
    assert [dict(group.ops) for group in groups[:2]] == [{"nn.matmul": 2}, {"nn.lstm": 1}]
    assert not any(name.startswith("quant.") for group in groups for name in group.ops)


def test_shares_are_over_all_contractions(artifact: Artifact) -> None:
    report = artifact.report()
    linears = 2 * 7 * (16 * 48 + 16 * 16 + 2 * 16 * 40 + 16 * 20) + 2 * 5 * 3
    assert report["macs_integer"] == linears
    assert report["macs"] == linears + 2 * 2 * 2 * 7 * 7 * 8 + 2 * 7 * 20 * 5
    assert report["macs_integer_share"] == 1.0 and report["quantization"] == "static"
    integers = torch.randint(-9, 9, (18, 24), dtype=torch.int8), torch.randint(-9, 9, (24, 32), dtype=torch.int8)
    product = described(Product(), example_inputs=(*integers, torch.randn(5, 6)))
    assert (product["macs_integer_share"], product["macs_integer"]) == (1.0, 18 * 24 * 32)
    assert product["macs"] == 18 * 24 * 32 + 5 * 6 * 5 and product["quantization"] == "none"


def test_what_stays_in_float_on_request_counts_as_quantized(quantized: ModuleOp) -> None:
    """At opt_level 0 nothing is done in integers; the share is over the same multiply-adds."""
    manifest = emit(quantized, "generic", 0).manifest
    assert manifest.report["macs_integer_share"] == 0.0 and manifest.report["quantization"] == "static"
    reasons = {row["reason"] for row in manifest.report["ops"] if row["op"] == "nn.linear"}
    assert reasons == {"opt_level 0 computes in floats between codes"}


def test_lstm_with_a_projection_counts_both_products() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 6, proj_size=4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[0]

    module = qcomp.from_torch(torch.export.export(Net().eval(), (torch.randn(5, 2, 3),)))
    (count,) = [macs(op) for op in module.walk() if op.name == "nn.lstm"]
    assert count == 5 * 2 * (4 * 6 * 4 + 6 * 4)


def test_the_summary_is_one_screen(artifact: Artifact, tmp_path: Any) -> None:
    text = str(artifact)
    lines = text.splitlines()
    assert lines[0].startswith("block for generic: ") and len(lines) <= 24 and max(map(len, lines)) <= 200
    for part in (
        "fixed by calibration", "nn.matmul x2 (3,136 MACs): left side is not dequantized", "MACs", "library", "arena",
        "C99 for any machine",
    ):  # fmt: skip
        assert part in text, part
    assert text.index("nn.matmul x2") < text.index("nn.lstm") < text.index("nn.gelu")
    assert repr(artifact).startswith("<qcomp.Artifact block for generic: ") and "\n" not in repr(artifact)
    artifact.save(tmp_path / "out")
    assert "block.c, block.h" in str(qcomp.load(tmp_path / "out"))


def test_a_float_model_says_how_it_becomes_int8() -> None:
    report = described(nn.Linear(3, 2).eval(), example_inputs=(torch.randn(1, 3),))
    assert report["quantization"] == "none"
    text = str(report)
    assert "nothing is quantized, computes in f32" in text and "--calibrate FILE.npz, in Python qcomp.quantize" in text
    assert "in float" not in text.split("\n\n")[0]


def test_reports_are_dicts_that_print_as_tables(artifact: Artifact) -> None:
    report = artifact.report()
    assert isinstance(report, dict) and isinstance(report, qcomp.Report)
    assert json.loads(json.dumps(report)) == report
    assert repr(report).startswith("<qcomp.Report: for generic: ") and "\n" not in repr(report)
    table = str(report).split("\n\n")[1].splitlines()
    assert len(table) == 1 + len(report["ops"]) and table[0].split()[:3] == ["op", "name", "MACs"]


def test_notebooks_show_tables_of_escaped_text(quantized: ModuleOp, artifact: Artifact) -> None:
    x = np.random.default_rng(1).standard_normal((2, 7, 16)).astype(np.float32)
    comparison = qcomp.compare(quantized, artifact, x)
    assert isinstance(comparison, qcomp.Comparison) and isinstance(artifact, qcomp.Artifact)
    assert repr(comparison).startswith("<qcomp.Comparison of ") and "\n" not in repr(comparison)
    for shown in (artifact, artifact.report(), comparison):
        text = shown._repr_html_()
        assert text.startswith("<table>") and text.count("<table>") == text.count("</table>")
        assert text.count("<tr>") == text.count("</tr>") > 3
    bad: dict[str, Any] = {**artifact.manifest.report, "warnings": ["<b> & <script>"]}
    manifest = Manifest(**{**vars(artifact.manifest), "report": bad})
    text = Artifact(manifest, None, None)._repr_html_()
    assert "<script>" not in text and "&lt;b&gt; &amp; &lt;script&gt;" in text
