# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Observers and fake-quantize modules in prepared graphs become encodings, or errors that name them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import networks
import numpy as np
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e import quantize_pt2e
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import qcomp
from qcomp.dialects.quant import DequantizeOp, Encoding, ObserveDynamicOp, ObserveOp, QuantizeOp
from qcomp.errors import QcompError
from qcomp.frontend import from_torch, read_graph
from qcomp.frontend.graph import OBSERVE


@pytest.fixture(scope="module")
def golden() -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    return networks.quantize(networks.build("golden"), networks.example("golden"))


def observed(module: ModuleOp) -> list[Encoding]:
    return [op.encoding.data for op in module.walk() if isinstance(op, ObserveOp)]  # pyright: ignore


def test_counts_and_sharing(golden: tuple[torch.fx.GraphModule, torch.fx.GraphModule]) -> None:
    prepared, _ = golden
    graph = read_graph(prepared)
    observers = graph.observers
    assert len(observers) == 16 and len({observer.group for observer in observers.values()}) == 12
    assert sum(observer.axis is not None for observer in observers.values()) == 5
    names = {node.name: node for node in graph.nodes}
    groups = {
        names[node.uses()[0]].target: observers[str(node.argument("observer"))].group
        for node in graph.nodes
        if node.target == OBSERVE and node.uses()[0] in names
    }
    pooled = ("aten.max_pool2d.default", "aten.adaptive_avg_pool2d.default", "aten.flatten.using_ints")
    assert len({groups[target] for target in pooled}) == 1
    encodings = observed(from_torch(prepared))
    shared = [encoding for encoding in encodings if encodings.count(encoding) > 1]
    assert len(shared) == 6 and len({id(encoding) for encoding in shared}) == 2


def test_parameters_equal_the_converted_ones(golden: tuple[torch.fx.GraphModule, torch.fx.GraphModule]) -> None:
    prepared, converted = (from_torch(module) for module in golden)
    expected = {op.encoding for op in converted.walk() if isinstance(op, QuantizeOp | DequantizeOp)}
    assert set(observed(prepared)) == expected
    per_tensor = [encoding for encoding in expected if encoding.per_tensor]
    assert all(float(np.float32(encoding.scale)) == encoding.scale for encoding in per_tensor)
    weights = [encoding for encoding in expected if not encoding.per_tensor]
    assert {(encoding.qmin, encoding.qmax, encoding.axis) for encoding in weights} == {(-127, 127, 0)}


def prepare(model: nn.Module, inputs: tuple[torch.Tensor, ...], quantizer: Any, calibrate: bool = True) -> Any:
    prepared = quantize_pt2e.prepare_pt2e(torch.export.export(model.eval(), inputs, strict=True).module(), quantizer)
    if calibrate:
        with torch.no_grad():
            prepared(*inputs)
    return prepared


def test_one_output_channel_stays_per_channel() -> None:
    model, inputs = nn.Conv2d(3, 1, 3), (torch.randn(2, 3, 6, 5),)
    encodings = observed(from_torch(prepare(model, inputs, networks.make_quantizer("xnnpack"))))
    assert sorted(encoding.axis is None for encoding in encodings) == [False, True, True]
    weight = next(encoding for encoding in encodings if encoding.axis is not None)
    assert weight.axis == 0 and weight.scales.shape == (1,)


def test_uncalibrated_is_named() -> None:
    prepared = prepare(nn.Linear(3, 2), (torch.randn(4, 3),), networks.make_quantizer("xnnpack"), calibrate=False)
    with pytest.raises(
        QcompError, match=r"activation_post_process_\d \(PerChannelMinMaxObserver\) saw no data"
    ) as caught:
        from_torch(prepared)
    assert caught.value.code == "uncalibrated" and "calibration" in str(caught.value)


def test_dynamic_becomes_dynamic() -> None:
    quantizer = networks.make_quantizer("xnnpack", is_dynamic=True)
    prepared = prepare(nn.Linear(3, 2), (torch.randn(4, 3),), quantizer)
    module = from_torch(prepared)
    (observer,) = (op for op in module.walk() if isinstance(op, ObserveDynamicOp))
    assert (observer.qmin.value.data, observer.qmax.value.data, observer.floor.value.data) == (-128, 127, 2.0**-12)
    qcomp.run_passes(module, "insert-qdq,fold-constants")
    converted = from_torch(quantize_pt2e.convert_pt2e(prepared))
    names = [sorted(op.name for op in form.walk()) for form in (module, converted)]
    assert names[0] == names[1]


def test_fake_quantize_takes_the_same_path() -> None:
    torch.manual_seed(0)
    model, inputs = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), (torch.randn(2, 3, 6, 5),)
    exported = torch.export.export(model, inputs, strict=True).module()
    prepared = quantize_pt2e.prepare_qat_pt2e(exported, networks.make_quantizer("xnnpack", is_qat=True))
    with pytest.raises(QcompError, match=r"FusedMovingAvgObsFakeQuantize.*saw no data"):
        from_torch(prepared)
    with torch.no_grad():
        prepared(*inputs)
    encodings = observed(from_torch(prepared))
    converted = from_torch(quantize_pt2e.convert_pt2e(copy.deepcopy(prepared)))
    assert set(encodings) == {op.encoding for op in converted.walk() if isinstance(op, QuantizeOp | DequantizeOp)}
    assert len(encodings) == 3


def test_locations(golden: tuple[torch.fx.GraphModule, torch.fx.GraphModule]) -> None:
    from qcomp.dialects.location import describe

    prepared, converted = (from_torch(module) for module in golden)
    for op in (*prepared.walk(), *converted.walk()):
        if isinstance(op, ObserveOp | QuantizeOp | DequantizeOp):
            assert "networks.py:" in (describe(op.location) or ""), op
    producers = [op for op in converted.walk() if isinstance(op, QuantizeOp)]
    for op in producers[1:]:
        assert isinstance(op.input.owner, Operation)
        assert describe(op.location) == describe(op.input.owner.location)
    for op in converted.walk():
        if isinstance(op, DequantizeOp) and (use := op.result.first_use) and use.operation.name != "func.return":
            assert describe(op.location) == describe(use.operation.location)
    assert "stem.0 (networks.py:" in (describe(producers[0].location) or "")


class Fixed(nn.Module):
    """The least an observer can be."""

    dtype, quant_min, quant_max, qscheme = torch.quint8, 0, 255, torch.per_tensor_affine

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor([0.125]), torch.tensor([7])


def with_observer(observer: nn.Module) -> torch.fx.GraphModule:
    """relu, observed."""
    module = torch.export.export(nn.ReLU(), (torch.randn(3, 4),)).module()
    module.register_module("watch", observer)
    relu = next(node for node in module.graph.nodes if node.op == "call_function")
    output = next(node for node in module.graph.nodes if node.op == "output")
    with module.graph.inserting_before(output):
        watched = module.graph.call_module("watch", (relu,))
    output.replace_input_with(relu, watched)
    module.recompile()
    return module


def test_any_class_with_the_interface() -> None:
    (encoding,) = observed(from_torch(with_observer(Fixed())))
    assert (encoding.signed, encoding.width, encoding.scale, encoding.zero_point) == (False, 8, 0.125, 7)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda o: setattr(o, "dtype", torch.float8_e4m3fn), "quantizes to float8"),
        (lambda o: o.__dict__.update(dtype=torch.int16, is_dynamic=True), "to int16 dynamically"),
        (lambda o: o.__dict__.update(is_dynamic=True, qscheme=torch.per_channel_affine), "by torch.per_channel"),
        (lambda o: setattr(o, "convert", print), "rewrites itself"),
        (lambda o: setattr(o, "calculate_qparams", lambda: (torch.tensor(0.1), torch.tensor(0.5))), "not integers"),
        (lambda o: setattr(o, "calculate_qparams", lambda: (torch.tensor(0.0), torch.tensor(0))), "scale must be"),
        (lambda o: setattr(o, "calculate_qparams", lambda: (torch.tensor(0.1), torch.tensor(999))), "zero point 999"),
    ],
)
def test_refused_observers(change: Callable[[Fixed], object], match: str) -> None:
    observer = Fixed()
    change(observer)
    with pytest.raises(QcompError, match=match):
        from_torch(with_observer(observer))


def test_other_modules_are_refused() -> None:
    with pytest.raises(QcompError, match=r"watch \(Tanh\) is not supported.*torch.export"):
        from_torch(with_observer(nn.Tanh()))
