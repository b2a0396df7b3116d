# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derived, fixed and shared parameters: a bias as int32, sigmoid at 1/256, a concatenation of one scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torchao.quantization.pt2e import observer, quantize_pt2e
from torchao.quantization.pt2e import quantizer as q

import qcomp
from qcomp.dialects.quant import ObserveOp, UniformQuantizedType
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

ACTIVATION = q.QuantizationSpec(
    torch.uint8, observer.HistogramObserver, quant_min=0, quant_max=255, qscheme=torch.per_tensor_affine
)
WEIGHT = q.QuantizationSpec(
    torch.int8, observer.MinMaxObserver, quant_min=-127, quant_max=127, qscheme=torch.per_tensor_symmetric
)
FIXED = q.FixedQParamsQuantizationSpec(torch.uint8, 1.0 / 256.0, 0, 0, 255, torch.per_tensor_affine)


class Gate(nn.Module):
    """A convolution beside its sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, (2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return torch.cat([torch.sigmoid(y), y], 1)


def product(observers: list[torch.nn.Module]) -> tuple[torch.Tensor, torch.Tensor]:
    """The scale of a bias: that of the input times that of the weight."""
    (left, _), (right, _) = (item.calculate_qparams() for item in observers)  # pyright: ignore
    return torch.tensor([left[0] * right[0]]).to(torch.float32), torch.tensor([0]).to(torch.int32)


class Quantizer(q.Quantizer):
    """Annotates by hand what torchao's own quantizers do not."""

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        for node in model.graph.nodes:
            if node.target is torch.ops.aten.conv2d.default:
                x, weight, bias = node.args[:3]
                derived = q.DerivedQuantizationSpec(
                    [(x, node), (weight, node)], product, torch.int32, -(2**31), 2**31 - 1, torch.per_tensor_symmetric
                )
                specs: dict[Any, Any] = {x: ACTIVATION, weight: WEIGHT, bias: derived}
                node.meta["quantization_annotation"] = q.QuantizationAnnotation(specs, ACTIVATION, _annotated=True)
            if node.target is torch.ops.aten.sigmoid.default:
                specs = {node.args[0]: ACTIVATION}
                node.meta["quantization_annotation"] = q.QuantizationAnnotation(specs, FIXED, _annotated=True)
            if node.target is torch.ops.aten.cat.default:
                first, second = node.args[0]
                shared = q.SharedQuantizationSpec((first, node))
                specs = {first: ACTIVATION, second: shared}
                node.meta["quantization_annotation"] = q.QuantizationAnnotation(specs, shared, _annotated=True)
        return model

    def validate(self, model: torch.fx.GraphModule) -> None:
        """Nothing to check."""


def test_derived_fixed_and_shared_parameters() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 7)
    prepared = quantize_pt2e.prepare_pt2e(torch.export.export(Gate().eval(), (x,)).module(), Quantizer())
    with torch.no_grad():
        prepared(x)
        module = from_torch(prepared)
        converted = quantize_pt2e.convert_pt2e(prepared)
        expected = converted(x).numpy()
    observed = [op.encoding for op in module.walk() if isinstance(op, ObserveOp)]
    encodings = [kind.data for kind in observed if isinstance(kind, UniformQuantizedType)]
    assert any(encoding.width == 32 and encoding.zero_point == 0 for encoding in encodings)
    assert any(encoding.scale == 1 / 256 and encoding.zero_point == 0 for encoding in encodings)
    qcomp.run_passes(module, "insert-qdq")
    for form in (module, from_torch(converted)):
        (found,) = interpret(form, x.numpy(), evaluator="torch")
        assert found.tobytes() == expected.tobytes()
    artifact = qcomp.compile(converted)
    assert [row["compute"] for row in artifact.report()["ops"] if row["macs"]] == ["i8"]
    codes = np.abs(artifact(x.numpy()) - expected) / max(encoding.scale for encoding in encodings)
    assert codes.max() <= 2.01 and (codes > 0.01).mean() < 0.02
