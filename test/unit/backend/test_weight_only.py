# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose weights alone are quantized, by torchao and PT2E: right against eager, and as small as their codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    MappingType,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.pt2e import observer, quantize_pt2e
from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, QuantizationSpec, Quantizer
from torchao.quantization.pt2e.quantizer import embedding_quantizer as embedding

import qcomp

INT4: Any = getattr(torch, "int4")  # noqa: B009
TARGETS = ("native", "generic")
WORDS, WIDTH, HIDDEN, LAST = 50, 96, 160, 64
VECTORS = 4 * (HIDDEN + LAST)
"""Of a float32 for every output channel: the biases, or zeros where there are none."""


class Words(nn.Module):
    """A table and two linears, one without a bias."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.table = nn.Embedding(WORDS, WIDTH)
        self.first, self.second = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, LAST, bias=False)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(self.table(indices))))


def layers(module: nn.Module, name: str) -> bool:
    return isinstance(module, nn.Embedding | nn.Linear)


TABLES, LINEARS = [(WORDS, WIDTH)], [(HIDDEN, WIDTH), (LAST, HIDDEN)]


def held(sizes: list[tuple[int, int]], bits: int, size: int | None = None, zero: int = 0) -> int:
    """Bytes of codes, and of a scale (and a zero point) for every row, or every `size` codes of one."""
    return sum(n * k * bits // 8 + n * (k // (size or k)) * (4 + zero) for n, k in sizes)


def intx(bits: int, granularity: Any, mapping: MappingType = MappingType.SYMMETRIC) -> Any:
    kind = getattr(torch, f"int{bits}")
    return IntxWeightOnlyConfig(weight_dtype=kind, granularity=granularity, mapping_type=mapping)


TABLE = 64
"""Of the reals of four bits, where registers hold it."""
BOTH = TABLES + LINEARS
CONFIGURATIONS: dict[str, tuple[Any, Any, int]] = {
    # Scales are factors of a multiplication behind the matmul, and the bias is added after it.
    "int8": (Int8WeightOnlyConfig(), None, held(TABLES, 32) - 4 * WORDS + held(LINEARS, 8) + 4 * HIDDEN),
    "intx8": (intx(8, PerAxis(0)), layers, held(BOTH, 8)),
    "intx8 groups": (intx(8, PerGroup(32)), layers, held(BOTH, 8, 32)),
    "intx4": (intx(4, PerAxis(0)), layers, held(BOTH, 4)),
    "intx4 groups": (intx(4, PerGroup(32)), layers, held(BOTH, 4, 32)),
    "intx4 asymmetric": (intx(4, PerGroup(16), MappingType.ASYMMETRIC), layers, held(BOTH, 4, 16, 1)),
    "intx2 groups": (intx(2, PerGroup(16)), layers, held(BOTH, 4, 16)),
    "dynamic, int4": (
        Int8DynamicActivationIntxWeightConfig(weight_dtype=INT4, weight_granularity=PerGroup(32)), None,
        held(TABLES, 32) - 4 * WORDS + held(LINEARS, 4, 32),
    ),
}  # fmt: skip


def check(program: Any, *inputs: torch.Tensor, reference: torch.Tensor, relative: float = 3e-6) -> list[int]:
    """The bytes of weights for each target, after a comparison with what torch computes."""
    sizes: list[int] = []
    for target in TARGETS:
        artifact = qcomp.compile(program, target)
        found = artifact(*inputs)
        limit = relative * float(reference.abs().max())
        assert float((found - reference).abs().max()) <= limit, target
        sizes.append(artifact.report()["weight_bytes"])
    return sizes


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_torchao(name: str) -> None:
    config, wanted, expected = CONFIGURATIONS[name]
    model = Words().eval()
    quantize_(model, config, wanted) if wanted is not None else quantize_(model, config)
    indices = torch.randint(0, WORDS, (2, 5))
    program = torch.export.export(model, (indices,)).run_decompositions({})
    with torch.no_grad():
        reference = model(indices)
    # Quantizing the input at run time takes constants of its own.
    spare = {"dynamic, int4": 2 * TABLE}.get(name, TABLE)
    for size in check(program, indices, reference=reference):
        assert expected + VECTORS <= size <= expected + VECTORS + spare


class WeightsOnly(Quantizer):
    """Annotates the weights of linears and convolutions, and nothing else."""

    def __init__(self, scheme: torch.qscheme, low: int):
        kind = observer.PerChannelMinMaxObserver if scheme == torch.per_channel_symmetric else observer.MinMaxObserver
        self.spec = QuantizationSpec(
            dtype=torch.int8, quant_min=low, quant_max=-low - 1, qscheme=scheme, ch_axis=0,
            observer_or_fake_quant_ctr=kind.with_args(eps=2**-12),
        )  # fmt: skip

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        for node in model.graph.nodes:
            if node.target in (torch.ops.aten.linear.default, torch.ops.aten.conv2d.default):
                node.meta["quantization_annotation"] = QuantizationAnnotation(
                    input_qspec_map={node.args[1]: self.spec}, _annotated=True
                )
        return model

    def validate(self, model: torch.fx.GraphModule) -> None:
        pass


class Net(nn.Module):
    """Convolutions, one of them depthwise, and a linear."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.first, self.second = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, groups=32)
        self.head = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return self.head(x.mean((2, 3)))


@pytest.mark.parametrize("low", [-128, -8])
@pytest.mark.parametrize("scheme", [torch.per_channel_symmetric, torch.per_tensor_affine], ids=str)
def test_pt2e(scheme: torch.qscheme, low: int) -> None:
    x = torch.randn(2, 3, 9, 10)
    prepared = quantize_pt2e.prepare_pt2e(torch.export.export(Net().eval(), (x,)).module(), WeightsOnly(scheme, low))
    prepared(x)
    converted = quantize_pt2e.convert_pt2e(prepared)
    program = torch.export.export(converted, (x,))
    with torch.no_grad():
        reference = converted(x)
    # A row of the first kernel has 9 taps: 5 bytes of nibbles. The depthwise one has bytes whatever their range is.
    codes = 32 * 27 + 16 * 32 if low == -128 else 32 * 3 * 5 + 16 * 32 // 2
    expected = codes + 32 * 9 + 2 * 4 * (32 + 32 + 16)
    for size in check(program, x, reference=reference):
        assert expected <= size <= expected + 2 * TABLE


def test_tables_with_fractions_for_zero_points() -> None:
    """PT2E's embeddings: bytes, and a scale and a zero point in float32 for each row."""
    model, indices = Words().eval(), torch.randint(0, WORDS, (2, 5))
    prepared = quantize_pt2e.prepare_pt2e(
        torch.export.export(model, (indices,)).module(), embedding.EmbeddingQuantizer()
    )
    prepared(indices)
    converted = quantize_pt2e.convert_pt2e(prepared)
    program = torch.export.export(converted, (indices,))
    with torch.no_grad():
        reference = converted(indices)
    for size in check(program, indices, reference=reference):
        assert size == WORDS * (WIDTH + 8) + 4 * (HIDDEN * WIDTH + LAST * HIDDEN) + VECTORS


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_depend_on_symbols(target: str) -> None:
    model = Words().eval()
    quantize_(model, intx(4, PerGroup(32)), layers)
    indices = torch.randint(0, WORDS, (2, 5))
    sizes = {"indices": {0: torch.export.Dim("b"), 1: torch.export.Dim("s")}}
    program = torch.export.export(model, (indices,), dynamic_shapes=sizes).run_decompositions({})
    artifact = qcomp.compile(program, target)
    for shape in ((2, 5), (1, 1), (3, 11)):
        indices = torch.randint(0, WORDS, shape)
        with torch.no_grad():
            torch.testing.assert_close(artifact(indices), model(indices), rtol=1e-5, atol=1e-5)
    # Channels are padded to whole tiles, by an eighth at most.
    assert artifact.report()["weight_bytes"] <= 1.125 * (held(BOTH, 4, 32) + VECTORS) + TABLE


@pytest.mark.parametrize("level", [0, 1, 2])
def test_optimization_levels_and_saved_sources(level: int, tmp_path: Path) -> None:
    """Codes stay codes at each level; a folder holds them as C text, and gives the same bits."""
    model = Words().eval()
    quantize_(model, intx(4, PerGroup(32)), layers)
    indices = torch.randint(0, WORDS, (2, 5))
    program = torch.export.export(model, (indices,)).run_decompositions({})
    artifact = qcomp.compile(program, "generic", level)
    assert artifact.report()["weight_bytes"] == held(BOTH, 4, 32) + VECTORS
    rows = [(row["op"], row["compute"]) for row in artifact.report()["ops"]]
    assert ("nn.embedding", "i64") in rows or ("nn.embedding", "f32") in rows
    assert not any(op.startswith("quant.") for op, _ in rows)
    artifact.save(tmp_path / "words")
    assert torch.equal(qcomp.load(tmp_path / "words")(indices), artifact(indices))


@pytest.mark.parametrize("bits", [4, 8])
def test_models_in_bfloat16(bits: int) -> None:
    """Weights are rounded to bfloat16, as torch rounds them, and are stored in that."""
    model = Words().eval().bfloat16()
    quantize_(model, intx(bits, PerGroup(32)), layers)
    indices = torch.randint(0, WORDS, (2, 5))
    program = torch.export.export(model, (indices,)).run_decompositions({})
    with torch.no_grad():
        reference = model(indices)
    for size in check(program, indices, reference=reference, relative=2**-7):
        assert size == held(BOTH, 16) - 4 * (WORDS + HIDDEN + LAST) + VECTORS


def test_int8_weights_of_models_in_bfloat16() -> None:
    """Their codes are cast to bfloat16 in the graph: they are stored as bytes all the same."""
    model = Words().eval().bfloat16()
    quantize_(model, Int8WeightOnlyConfig())
    indices = torch.randint(0, WORDS, (2, 5))
    program = torch.export.export(model, (indices,)).run_decompositions({})
    with torch.no_grad():
        reference = model(indices)
    # The table, scales and bias are in bfloat16.
    expected = 2 * (WORDS * WIDTH + 2 * HIDDEN + LAST) + WIDTH * HIDDEN + HIDDEN * LAST + VECTORS
    assert check(program, indices, reference=reference, relative=2**-7) == [expected] * 2


@pytest.mark.parametrize("decomposed", [False, True])
def test_products_of_torchaos_codes(decomposed: bool) -> None:
    """Bytes times bytes in int32, scaled per row and column; subclasses are taken apart where the user did not."""
    model = Words().eval()
    quantize_(model, Int8DynamicActivationInt8WeightConfig())
    indices = torch.randint(0, WORDS, (2, 5))
    program = torch.export.export(model, (indices,))
    with torch.no_grad():
        reference = model(indices)
    for target in ("native", "generic"):
        found = qcomp.compile(program.run_decompositions({}) if decomposed else program, target=target)(indices)
        assert (found - reference).abs().max() < 1e-4 * reference.abs().max()
