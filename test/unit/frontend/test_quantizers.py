# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What torchao's quantizers make of one network, through every door, against the converted graph as torch runs it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import deep
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torchao.quantization.pt2e import move_exported_model_to_eval, quantize_pt2e
from torchao.quantization.pt2e.quantizer import ComposableQuantizer
from torchao.quantization.pt2e.quantizer import arm_inductor_quantizer as arm
from torchao.quantization.pt2e.quantizer import embedding_quantizer as embedding
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

import qcomp
from qcomp.dialects.nn import BatchNormOp
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret


class Net(nn.Module):
    """Convolutions with and without bias, batch norms, a residual, pools, dropout, linears."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 5, 3, padding=1, bias=False), nn.BatchNorm2d(5)
        self.second, self.other = nn.Conv2d(5, 5, (3, 1), padding=(1, 0)), nn.BatchNorm2d(5)
        self.drop, self.hidden, self.head = nn.Dropout(0.3), nn.Linear(5, 7), nn.Linear(7, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.first(x)))
        x = functional.relu(x + self.other(self.second(x)))
        x = functional.adaptive_avg_pool2d(functional.max_pool2d(x, 2), 1).flatten(1)
        return self.head(self.drop(functional.relu(self.hidden(x))))


class Words(nn.Module):
    """An embedding and linears."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.first, self.second = nn.Embedding(11, 6), nn.Linear(6, 9), nn.Linear(9, 4)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.second(functional.relu(self.first(self.table(indices))))


def xnnpack(**options: bool) -> Any:
    import networks

    return networks.make_quantizer("xnnpack", **options)


def inductor(module: Any, name: str, **options: bool) -> Any:
    quantizer = getattr(module, f"{name}InductorQuantizer")()
    return quantizer.set_global(
        getattr(module, f"get_default_{name.lower()}_inductor_quantization_config")(**options)
    )


def half() -> Any:
    return x86.X86InductorQuantizer().set_global(x86.get_x86_inductor_linear_dynamic_fp16_config())


QUANTIZERS: dict[str, tuple[Any, type[nn.Module]]] = {
    "xnnpack": (lambda: xnnpack(is_per_channel=False), Net),
    "xnnpack_dynamic": (lambda: xnnpack(is_dynamic=True), Words),
    "xnnpack_qat": (lambda: xnnpack(is_qat=True), Net),
    "x86": (lambda: inductor(x86, "X86"), Net),
    "x86_reduced": (lambda: inductor(x86, "X86", reduce_range=True), Net),
    "x86_dynamic": (lambda: inductor(x86, "X86", is_dynamic=True), Net),
    "x86_half": (half, Words),
    "arm": (lambda: inductor(arm, "Arm"), Net),
    "embedding": (embedding.EmbeddingQuantizer, Words),
    "composed": (lambda: ComposableQuantizer([embedding.EmbeddingQuantizer(), xnnpack()]), Words),
}
PREPARED_HAS_FRACTIONS = ("embedding", "composed")


def example(model: nn.Module) -> tuple[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    if isinstance(model, Net):
        return (torch.randn(2, 3, 9, 7, generator=generator),)
    return (torch.randint(0, 11, (2, 5), generator=generator),)


def prepare(name: str, model: nn.Module) -> torch.fx.GraphModule:
    """The model prepared by quantizer `name`, calibrated or trained, in evaluation mode."""
    inputs, quantizer = example(model), QUANTIZERS[name][0]()
    if "qat" not in name:
        prepared = quantize_pt2e.prepare_pt2e(
            torch.export.export(model.eval(), inputs, strict=True).module(), quantizer
        )  # fmt: skip
        prepared(*inputs)
        return prepared
    program = torch.export.export(model.train(), inputs, strict=True)
    prepared = quantize_pt2e.prepare_qat_pt2e(program.module(), quantizer)
    for scale in (1.0, 2.0, 0.5):
        prepared(inputs[0] * scale + 0.3)
    return move_exported_model_to_eval(prepared)


EVERY_RUN = ("xnnpack", "x86_dynamic", "x86_half", "embedding", "composed")


@pytest.mark.parametrize("name", deep.except_for(EVERY_RUN, QUANTIZERS))
def test_all_doors_give_the_converted_graphs_bits(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = QUANTIZERS[name][1]()
    inputs = example(model)
    with torch.no_grad():
        prepared = prepare(name, model)
        forms: list[Any] = []
        if name not in PREPARED_HAS_FRACTIONS:
            module = from_torch(prepared, inputs)
            qcomp.run_passes(module, "fold-batch-norm-qat,insert-qdq")
            assert not any(isinstance(op, BatchNormOp) for op in module.walk())
            if name == "xnnpack_qat":
                report = qcomp.compile(prepared, example_inputs=inputs).report()
                assert [row["compute"] for row in report["ops"] if row["macs"]] == ["i8"] * 4
            forms.append(module)
        converted = quantize_pt2e.convert_pt2e(prepared)
        expected = converted(*inputs).numpy()
        again = torch.export.export(converted, inputs)
    torch.export.save(again, tmp_path / "converted.pt2")
    forms += [from_torch(form) for form in (converted, again.run_decompositions(), tmp_path / "converted.pt2")]
    for module in forms:
        (found,) = interpret(module, inputs[0].numpy(), evaluator="torch")
        assert found.tobytes() == expected.tobytes()
    artifact = qcomp.compile(converted)
    assert np.abs(artifact(inputs[0].numpy()) - expected).max() <= 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("options", [{"fold_quantize": False}, {"use_reference_representation": True}])
def test_other_conversions(options: dict[str, bool]) -> None:
    """Weights quantized in the graph; integer arithmetic spelled out: imported or refused by name."""
    torch.manual_seed(1)
    model = Net()
    inputs, prepared = example(model), prepare("xnnpack", model)
    converted = quantize_pt2e.convert_pt2e(copy.deepcopy(prepared), **options)
    with torch.no_grad():
        expected = converted(*inputs).numpy()
    try:
        module = from_torch(converted, inputs)
    except qcomp.QcompError as problem:
        assert "use_reference_representation" in options and "is not supported" in str(problem)
        return
    (found,) = interpret(module, inputs[0].numpy(), evaluator="torch")
    assert found.tobytes() == expected.tobytes()


def test_modules_with_example_inputs() -> None:
    torch.manual_seed(1)
    model = Net().eval()
    (found,) = interpret(from_torch(model, example(model)), example(model)[0].numpy(), evaluator="torch")
    with torch.no_grad():
        assert found.tobytes() == model(*example(model)).numpy().tobytes()
