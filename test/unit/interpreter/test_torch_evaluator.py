# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The torch evaluator gives torch's own bits; the reference stays close to it, integers by the code rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program, quantized, random_codes, same_bits
from xdsl.dialects.builtin import ModuleOp, f16

from qcomp.dialects import nn
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp, encoding_of
from qcomp.interpreter import interpret
from qcomp.interpreter.dispatch import meaning_of, real_value, store
from qcomp.interpreter.ops.contraction import plan_of

torch: Any = pytest.importorskip("torch")
pytest.importorskip("torchao")
functional = torch.nn.functional


def draw(seed: int, *shape: int) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_convolutions_have_the_bits_of_torch():
    x, w, b = draw(1, 2, 6, 13, 11), draw(2, 8, 3, 3, 2), draw(3, 8)
    module = program(
        lambda add, v: add(
            nn.Conv2dOp(v, add(constant(w)), add(constant(b)), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2)
        ),
        floats(*x.shape),
    )
    tensors = [torch.from_numpy(array) for array in (x, w, b)]
    expected = functional.conv2d(*tensors, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2)
    assert same_bits(interpret(module, x, evaluator="torch")[0], expected.numpy())


@pytest.mark.parametrize("kernel", [(2, 4), (4, 3), (3, 3)])
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_same_padding_has_the_bits_of_torch(kernel: tuple[int, int]):
    x, w = draw(1, 2, 5, 13, 11), draw(2, 8, 5, *kernel)
    total = [size - 1 for size in kernel]
    padding = (*(size // 2 for size in total), *(size - size // 2 for size in total))
    module = program(lambda add, v: add(nn.Conv2dOp(v, add(constant(w)), padding=padding)), floats(*x.shape))
    expected = functional.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding="same")
    assert same_bits(interpret(module, x, evaluator="torch")[0], expected.numpy())
    np.testing.assert_allclose(interpret(module, x)[0], expected.numpy(), rtol=1e-5, atol=1e-5)


def test_linear_matmul_and_views_have_the_bits_of_torch():
    x, w, b, y = draw(1, 3, 4, 17), draw(2, 9, 17), draw(3, 9), draw(4, 3, 17, 4)

    def build(add: Any, v: Any, other: Any) -> Any:
        weight, bias = add(constant(w)), add(constant(b))
        flipped = add(nn.PermuteOp(other, [0, 2, 1]))
        return [
            add(nn.LinearOp(v, weight, bias, activation=nn.ClampAttr.of(-0.5, 0.75))),
            add(nn.LinearOp(flipped, weight)),
            add(nn.MatmulOp(v, other)),
            add(nn.MatmulOp(flipped, add(nn.PermuteOp(v, [0, 2, 1])))),
        ]

    tx, tw, tb, ty = (torch.from_numpy(array) for array in (x, w, b, y))
    expected = [
        functional.linear(tx, tw, tb).clamp(-0.5, 0.75), functional.linear(ty.transpose(1, 2), tw),
        tx @ ty, ty.transpose(1, 2) @ tx.transpose(1, 2),
    ]  # fmt: skip
    module = program(build, floats(*x.shape), floats(*y.shape))
    for ours, torchs in zip(interpret(module, x, y, evaluator="torch"), expected, strict=True):
        assert same_bits(ours, torchs.numpy())


def test_every_form_of_quantize():
    """Per tensor, per channel, blocks, other recipes, 16 bits unsigned, float16: the numpy reference's bits."""
    from xdsl.dialects.builtin import f32, f64

    rng = np.random.default_rng(5)
    x = draw(6, 4, 6)
    rows = {"scales": rng.uniform(0.01, 0.1, 4), "zero_points": rng.integers(-9, 9, 4), "axis": 0}
    kinds: list[tuple[Encoding, Any]] = [
        (Encoding.make(0.1, 7), None), (Encoding.make(0.1, 7), f32), (Encoding.make(**rows), None),
        (Encoding.make(**rows), f64), (Encoding.make(0.001, 900, signed=False, width=16), None),
        (Encoding.make(rng.uniform(0.0001, 0.001, 4), rng.integers(0, 900, 4), signed=False, width=16, axis=0), None),
        (Encoding.make(rng.uniform(0.01, 0.1, (4, 2)), rng.integers(-9, 9, (4, 2)), blocks=((0, 1), (1, 3))), None),
    ]  # fmt: skip

    def build(add: Any, value: Any) -> Any:
        codes = [add(QuantizeOp(value, kind, recipe)) for kind, recipe in kinds]
        return [*codes, *(add(DequantizeOp(code)) for code in codes)]

    module = program(build, floats(4, 6))
    for ours, torchs in zip(interpret(module, x), interpret(module, x, evaluator="torch"), strict=True):
        assert same_bits(ours, torchs)
    kind = Encoding.make(0.0123, 7, expressed=f16)
    module = program(lambda add, v: add(DequantizeOp(add(QuantizeOp(v, kind)))), floats(4, 6, element=f16))
    half = x.astype(np.float16)
    assert same_bits(interpret(module, half)[0], interpret(module, half, evaluator="torch")[0])


def test_quantized_ops_fall_back_to_the_reference():
    rng = np.random.default_rng(7)
    source, out = Encoding.make(0.02, 100, signed=False), Encoding.make(0.3, -5)
    weights = Encoding.make(rng.uniform(0.01, 0.02, 4), 0, qmin=-127, axis=0)
    w = random_codes(rng, weights, 4, 9)
    module = program(
        lambda add, v: add(nn.LinearOp(v, add(constant(w, weights)), result_type=quantized(out, 5, 4))),
        quantized(source, 5, 9),
    )
    codes = random_codes(rng, source, 5, 9)
    assert same_bits(interpret(module, codes)[0], interpret(module, codes, evaluator="torch")[0])


NETWORKS = [("golden", "xnnpack"), ("resnet8", "x86"), ("mobilenet_v1", "xnnpack"), ("autoencoder", "x86")]


def sqnr(reference: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    wide = reference.astype(np.float64)
    noise = ((wide - other) ** 2).sum()
    return math.inf if noise == 0 else 10 * math.log10((wide**2).sum() / noise)


def fused_of(module: ModuleOp) -> ModuleOp:
    from qcomp.transforms.pipeline import run_passes

    fused = module.clone()
    run_passes(fused, "dce,fuse-activation,fuse-qdq,dce")
    return fused


@pytest.mark.parametrize(("name", "quantizer"), NETWORKS)
def test_networks(name: str, quantizer: str):
    """The bits of convert_pt2e's graph; in integers each op by the code rule, the whole by the SQNR rule."""
    networks = pytest.importorskip("networks")
    from qcomp import from_torch

    inputs = networks.example(name)
    _, converted = networks.quantize(networks.build(name), inputs, quantizer)
    module = from_torch(converted, example_inputs=inputs)
    arrays = [value.numpy() for value in inputs]
    with torch.no_grad():
        expected = converted(*inputs).numpy()
    assert same_bits(interpret(module, *arrays, evaluator="torch")[0], expected)
    fused, values = fused_of(module), {}
    (result,) = interpret(fused, *arrays, observer=lambda op, found: values.update(zip(op.results, found, strict=True)))
    assert sqnr(expected, result) >= sqnr(expected, interpret(module, *arrays)[0]) - 3
    values.update(zip(next(iter(fused.ops)).regions[0].block.args, arrays, strict=True))
    total = differ = 0
    for op in fused.walk():
        if isinstance(op, nn.WeightedOp) and encoding_of(op.result.type) is not None:
            operands = [values[operand] for operand in op.operands]
            assert plan_of(op, operands[1], operands[2] if op.bias is not None else None) is not None
            found = meaning_of(type(op))
            assert found is not None
            real = [real_value(array, tensor(v)) for array, v in zip(operands, op.operands, strict=True)]
            distance = np.abs(store(found.real(op, real), op).astype(int) - values[op.result])
            assert distance.max() <= 1 and distance.sum() <= max(1, distance.size // 1000)
            total, differ = total + distance.size, differ + int(distance.sum())
    assert total > 0 and differ <= max(1, total // 20_000), f"{differ} of {total}"
