# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What torchao's convert_pt2e does, step by step: the same ops, the same parameters, the same bits."""

from __future__ import annotations

import copy
from collections import Counter

import deep
import networks
import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from qcomp.dialects import nn
from qcomp.dialects.quant import DequantizeOp, ObserveOp, QuantizeOp, encoding_of
from qcomp.frontend import from_torch
from qcomp.interpreter import interpret
from qcomp.transforms.pipeline import run_passes

STEPS = "insert-qdq,duplicate-dequantize,fold-constants"
INTEGERS = "O2,integer,unsigned-activations"


def counts(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())


def per_channel(module: ModuleOp, kind: type[Operation]) -> int:
    found = [op for op in module.walk() if isinstance(op, kind)]
    encodings = [encoding_of((op.results[0] if kind is QuantizeOp else op.operands[0]).type) for op in found]
    return sum(1 for item in encodings if item is not None and item.axis is not None)


@pytest.fixture(scope="module")
def golden() -> tuple[torch.fx.GraphModule, torch.fx.GraphModule, networks.Inputs]:
    inputs = networks.example("golden")
    return (*networks.quantize(networks.build("golden"), inputs), inputs)


@pytest.fixture
def prepared(golden) -> ModuleOp:
    return from_torch(copy.deepcopy(golden[0]), golden[2])


def same_as_official(module: ModuleOp, converted: torch.fx.GraphModule, inputs: networks.Inputs) -> bool:
    with torch.no_grad():
        expected = converted(*inputs).numpy()
    (found,) = interpret(module, *(value.numpy() for value in inputs), evaluator="torch")
    return expected.tobytes() == found.tobytes()


def test_observers_become_one_quantize_and_one_dequantize_each(prepared: ModuleOp, golden):
    assert counts(prepared)["quant.observe"] == 16
    run_passes(prepared, "insert-qdq")
    found = counts(prepared)
    assert (found["quant.observe"], found["quant.quantize"], found["quant.dequantize"]) == (0, 16, 16)
    assert per_channel(prepared, QuantizeOp) == per_channel(prepared, DequantizeOp) == 5
    assert same_as_official(prepared, golden[1], golden[2])


def test_one_dequantize_is_shared_and_then_none(prepared: ModuleOp, golden):
    run_passes(prepared, "insert-qdq")

    def shared() -> list[list[str]]:
        found = [op for op in prepared.walk() if isinstance(op, DequantizeOp)]
        users = [sorted({use.operation.name for use in op.result.uses}) for op in found]
        return [names for names in users if len(names) > 1]

    assert shared() == [["nn.add", "nn.conv2d"]]
    run_passes(prepared, "duplicate-dequantize")
    assert shared() == []
    assert counts(prepared)["quant.dequantize"] == 17
    assert same_as_official(prepared, golden[1], golden[2])


def test_folding_gives_the_official_counts_bytes_and_bits(prepared: ModuleOp, golden):
    run_passes(prepared, STEPS)
    found = counts(prepared)
    assert (found["quant.quantize"], found["quant.dequantize"]) == (11, 17)
    assert per_channel(prepared, QuantizeOp) == 0
    assert per_channel(prepared, DequantizeOp) == 5
    plain = ("nn.conv2d", "nn.relu", "nn.max_pool2d", "nn.add", "nn.adaptive_avg_pool2d", "nn.reshape", "nn.linear")
    assert [found[name] for name in plain] == [4, 4, 2, 1, 1, 1, 1]
    weights = [op.array for op in prepared.walk() if isinstance(op, nn.ConstantOp) and op.array.ndim >= 2]
    assert sum(array.nbytes for array in weights) == 9776
    assert all(array.dtype == np.int8 and -127 <= array.min() <= array.max() <= 127 for array in weights)
    assert same_as_official(prepared, golden[1], golden[2])


def test_nothing_computes_in_integers_yet_and_everything_does_after_fuse_qdq(prepared: ModuleOp):
    run_passes(prepared, STEPS)
    assert not _integer_ops(prepared)
    run_passes(prepared, INTEGERS, verify=True)
    assert len(_integer_ops(prepared)) == 4 + 2 + 1 + 1 + 1 + 1
    assert not [op for op in prepared.walk() if isinstance(op, nn.NNOp) and op not in _integer_ops(prepared)]


def _integer_ops(module: ModuleOp) -> list[Operation]:
    found = [op for op in module.walk() if isinstance(op, nn.NNOp)]
    return [op for op in found if encoding_of(op.operands[0].type) is not None]


def test_scale_literals_are_float32_and_same_scale_ops_share_their_parameters(prepared: ModuleOp):
    run_passes(prepared, STEPS)
    encodings = [op.encoding for op in prepared.walk() if isinstance(op, QuantizeOp)]
    assert all(float(np.float32(item.scale)) == item.scale for item in encodings)
    pools = [op for op in prepared.walk() if isinstance(op, nn.MaxPool2dOp | nn.AdaptiveAvgPool2dOp | nn.ReshapeOp)]
    for op in pools:
        source, target = op.operands[0].owner, next(iter(op.results[0].uses)).operation
        assert isinstance(source, DequantizeOp) and isinstance(target, QuantizeOp)
        assert source.encoding == target.encoding


def quantized(model: torch.nn.Module, inputs: networks.Inputs, quantizer: str = "xnnpack"):
    """(our module after the three steps, the official one)"""
    prepared, converted = networks.quantize(model.eval(), inputs, quantizer)
    module = from_torch(prepared, inputs)
    run_passes(module, STEPS, verify=True)
    return module, converted


def test_one_output_channel_stays_per_channel():
    torch.manual_seed(1)
    inputs = (torch.randn(2, 3, 5, 7),)
    module, converted = quantized(torch.nn.Conv2d(3, 1, 3), inputs)
    found = [op.encoding for op in module.walk() if isinstance(op, DequantizeOp)]
    assert [item.axis for item in found if item.scales.shape == (1,)] == [0]
    assert same_as_official(module, converted, inputs)


class Tied(torch.nn.Module):
    """One weight, two layers."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 6, bias=False)
        self.second = torch.nn.Linear(6, 6, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def test_a_tied_weight_is_one_integer_constant():
    torch.manual_seed(2)
    inputs = (torch.randn(5, 6),)
    module = from_torch(torch.export.export(Tied().eval(), inputs), inputs)
    weights = [op for op in module.walk() if isinstance(op, nn.LinearOp)]
    for op in weights:
        _observe_weight(op)
    run_passes(module, STEPS, verify=True)
    codes = [op for op in module.walk() if isinstance(op, nn.ConstantOp) and op.array.dtype == np.int8]
    assert len(codes) == 1
    assert len({op.weight for op in module.walk() if isinstance(op, nn.LinearOp)}) == 2


def test_a_tied_weight_with_two_encodings_is_two_constants():
    torch.manual_seed(2)
    inputs = (torch.randn(5, 6),)
    module = from_torch(torch.export.export(Tied().eval(), inputs), inputs)
    for index, op in enumerate(op for op in module.walk() if isinstance(op, nn.LinearOp)):
        _observe_weight(op, 0.01 * (index + 1))
    run_passes(module, STEPS, verify=True)
    codes = [op for op in module.walk() if isinstance(op, nn.ConstantOp) and op.array.dtype == np.int8]
    assert len(codes) == 2


def _observe_weight(op: nn.LinearOp, scale: float = 0.01) -> None:
    from qcomp.dialects.quant import Encoding

    observe = ObserveOp(op.weight, Encoding.make(scale, 0, qmin=-127))
    block = op.parent
    assert block is not None
    block.insert_op_before(observe, op)
    op.operands[1] = observe.result


@pytest.mark.parametrize(
    ("name", "quantizer"),
    deep.except_for([("golden", "x86"), ("autoencoder", "xnnpack")],
                    [("golden", "x86"), ("resnet8", "xnnpack"), ("ds_cnn", "x86"), ("autoencoder", "xnnpack")]),
)
def test_networks_go_into_integers_each_pass_held_to_its_letter(name: str, quantizer: str):
    inputs = networks.example(name)
    prepared, converted = networks.quantize(networks.build(name), inputs, quantizer)
    module = from_torch(prepared, inputs)
    run_passes(module, "O1,quantize")
    assert same_as_official(module, converted, inputs)
    run_passes(module, INTEGERS, verify=True)
    contractions = [op for op in module.walk() if isinstance(op, nn.WeightedOp)]
    assert contractions and all(encoding_of(op.input.type) is not None for op in contractions)
    others = {op.name for op in module.walk() if isinstance(op, nn.NNOp)} - {op.name for op in _integer_ops(module)}
    assert not others
