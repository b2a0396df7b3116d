# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole networks: op counts, and results equal to eager, however they were exported."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import networks
import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret


def counts(module: ModuleOp) -> dict[str, int]:
    """How many ops of each kind, without constants, function and module."""
    found = Counter(op.name for op in module.walk())
    return {
        name: n
        for name, n in found.items()
        if name not in ("builtin.module", "func.func", "func.return", "nn.constant")
    }


def conv_net(convs: int, **others: int) -> dict[str, int]:
    """Counts of a network in which every convolution has a batch norm."""
    plain = {"nn.conv2d": convs, "nn.batch_norm": convs, "nn.adaptive_avg_pool2d": 1, "nn.reshape": 1, "nn.linear": 1}
    return {**plain, **{f"nn.{name}": count for name, count in others.items()}}


EXPECTED = {
    "golden": conv_net(4, relu=4, max_pool2d=2, add=1),
    "resnet8": conv_net(9, relu=7, add=3),
    "resnet18": conv_net(20, relu=17, max_pool2d=1, add=8),
    "resnet50": conv_net(53, relu=49, max_pool2d=1, add=16),
    "mobilenet_v2": conv_net(52, clamp=35, add=10),
    "ds_cnn": conv_net(9, relu=9),
    "mobilenet_v1": conv_net(27, relu=27),
    "autoencoder": {"nn.linear": 10, "nn.batch_norm": 9, "nn.relu": 9},
}
STRICT = ("golden", "resnet8", "autoencoder")


def close(module: ModuleOp, model: torch.nn.Module, inputs: networks.Inputs, relative: float = 1e-4) -> None:
    """The interpreter's result is eager's up to `relative` of its largest element."""
    with torch.no_grad():
        expected = model(*inputs).numpy()
    (found,) = interpret(module, *(value.numpy() for value in inputs))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= relative * np.abs(expected).max()


@pytest.mark.parametrize("name", EXPECTED)
def test_float(name: str, tmp_path: Path) -> None:
    model, inputs, program = networks.exported(name)
    torch.export.save(program, tmp_path / "model.pt2")
    module = from_torch(tmp_path / "model.pt2")
    assert counts(module) == EXPECTED[name]
    close(module, model, inputs)
    assert_decomposed(from_torch(program.run_decompositions()), name, model, inputs)


def assert_decomposed(module: ModuleOp, name: str, model: torch.nn.Module, inputs: networks.Inputs) -> None:
    expected = dict(EXPECTED[name])
    if expected.pop("nn.adaptive_avg_pool2d", 0):
        expected["nn.mean"] = 1
    assert counts(module) == expected
    close(module, model, inputs)


@pytest.mark.parametrize("name", STRICT)
def test_strict(name: str) -> None:
    model, inputs = networks.build(name), networks.example(name)
    program = torch.export.export(model, inputs, strict=True)
    assert counts(from_torch(program)) == EXPECTED[name]
    assert_decomposed(from_torch(program.run_decompositions()), name, model, inputs)


QUANTIZED = [(name, "xnnpack") for name in ("resnet8", "ds_cnn", "autoencoder", "mobilenet_v2", "resnet18")]
QUANTIZED += [(name, "x86") for name in ("resnet8", "ds_cnn", "autoencoder")]


@pytest.mark.parametrize(("name", "quantizer"), QUANTIZED)
def test_quantized(name: str, quantizer: str) -> None:
    model, inputs = networks.build(name), networks.example(name)
    prepared, converted = networks.quantize(model, inputs, quantizer)
    before, after = from_torch(prepared), from_torch(converted)
    close(before, prepared, inputs)
    expected = {kind: count for kind, count in EXPECTED[name].items() if kind != "nn.batch_norm"}
    if name == "autoencoder":
        expected = EXPECTED[name] if "nn.batch_norm" in counts(before) else expected
    assert {kind: count for kind, count in counts(before).items() if not kind.startswith("quant.")} == expected
    observers = sum(hasattr(module, "calculate_qparams") for module in prepared.children())
    assert counts(before)["quant.observe"] >= observers > 0
    targets = Counter(str(node.target) for node in converted.graph.nodes)
    quantized = sum(n for name_, n in targets.items() if "quantized_decomposed.quantize" in name_)
    dequantized = sum(n for name_, n in targets.items() if "quantized_decomposed.dequantize" in name_)
    assert counts(after)["quant.quantize"] == quantized and counts(after)["quant.dequantize"] == dequantized
    assert "quant.cast_storage" not in counts(after)


@pytest.mark.parametrize("strict", [True, False])
def test_golden(strict: bool) -> None:
    inputs = networks.example("golden")
    prepared, converted = networks.quantize(networks.build("golden"), inputs, strict=strict)
    assert counts(from_torch(prepared))["quant.observe"] == 16
    found = counts(from_torch(converted))
    assert (found["quant.quantize"], found["quant.dequantize"]) == (11, 12 + 5)
    constants = [op for op in from_torch(converted).walk() if op.name == "nn.constant"]
    assert sum(op.array.nbytes for op in constants if op.array.ndim > 1) == 9776  # pyright: ignore
    close(from_torch(prepared), prepared, inputs, 1e-6)


@pytest.mark.parametrize("quantizer", ["xnnpack", "x86"])
def test_golden_bit_for_bit(quantizer: str) -> None:
    """The converted module, and its export before and after decomposition, with torch's own kernels."""
    inputs = networks.example("golden")
    _, converted = networks.quantize(networks.build("golden"), inputs, quantizer)
    with torch.no_grad():
        expected = converted(*inputs).numpy()
    program = torch.export.export(converted, inputs)
    for form in (converted, program, program.run_decompositions()):
        (found,) = interpret(from_torch(form), inputs[0].numpy(), evaluator="torch")
        assert np.array_equal(found, expected)


def test_in_place_residuals() -> None:
    torch.manual_seed(0)
    inputs = networks.example("resnet8")
    model = networks.settle(networks.resnet8(in_place=True), inputs)
    module = from_torch(torch.export.export(model, inputs))
    assert counts(module) == EXPECTED["resnet8"]
    close(module, model, inputs)
    prepared, _ = networks.quantize(model, inputs)
    close(from_torch(prepared), prepared, inputs)


def test_module_and_example_inputs() -> None:
    model, inputs = networks.build("golden"), networks.example("golden")
    assert counts(from_torch(model, inputs)) == EXPECTED["golden"]
    with pytest.raises(QcompError, match="not an exported program"):
        from_torch(model)
    with pytest.raises(QcompError, match="cannot import a dict"):
        from_torch({})
    traced = torch.fx.symbolic_trace(model)
    assert counts(from_torch(traced, inputs)) == EXPECTED["golden"]
    with pytest.raises(QcompError, match=r"call of the module \w+.*torch\.export"):
        from_torch(traced)


def test_converted_module_at_another_batch() -> None:
    inputs = networks.example("golden")
    _, converted = networks.quantize(networks.build("golden"), inputs)
    other = (torch.randn(3, 3, 16, 16),)
    module = from_torch(converted, other)
    assert str(module.body.block.first_op.function_type.outputs.data[0]) == "tensor<3x4xf32>"  # pyright: ignore
