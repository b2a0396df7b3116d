# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization by parameters chosen at run time, against torch's ops bit for bit, and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from eager import Call, r
from torch import nn

import qcomp
from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

Q: Any = torch.ops.quantized_decomposed


def bits(function: Any, *inputs: torch.Tensor, compiled: bool = True) -> None:
    """The same types and bits as in torch, by the interpreter and by C."""
    model = Call(function).eval()
    with torch.no_grad():
        expected = [value.numpy() for value in model(*inputs)]
    arrays = [value.numpy() for value in inputs]
    program = torch.export.export(model, inputs)
    results = [interpret(from_torch(program), *arrays)]
    if compiled:
        results.append(qcomp.compile(program, "generic")(*arrays))
    for found in results:
        for left, right in zip(found, expected, strict=True):
            assert left.dtype == right.dtype and left.tobytes() == right.tobytes()


def samples() -> list[torch.Tensor]:
    """Rows with both signs, one sign, zeros, tiny numbers, and one number."""
    rows = r(5, 7, seed=3) * torch.tensor([3.0, 0.02, 40.0, 1e-7, 1.0])[:, None]
    rows[1], rows[2], rows[4] = rows[1].abs(), -rows[2].abs(), 0.0
    return [rows, rows[1], rows[2:3], rows[3:4], torch.full((1, 3), -0.7), torch.zeros(2, 2)]


MATRICES = [*(value for value in samples() if value.dim() > 1), r(2, 3, 9)]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("kind", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int8", -127, 127)])
def test_per_tensor(symmetric: bool, kind: str, low: int, high: int) -> None:
    dtype = getattr(torch, kind)
    choose = Q.choose_qparams_symmetric.tensor if symmetric else Q.choose_qparams.tensor

    def body(x: torch.Tensor) -> Any:
        scale, zero = choose(x, low, high, 2.0**-12, dtype)
        codes = Q.quantize_per_tensor.tensor(x, scale, zero, low, high, dtype)
        return codes, Q.dequantize_per_tensor.tensor(codes, scale, zero, low, high, dtype)

    bits(lambda *values: [part for value in values for part in body(value)], *samples(), compiled=not symmetric)


def test_parameters_have_torchs_types() -> None:
    bits(lambda x: Q.choose_qparams.tensor(x, -128, 127, 1e-4, torch.int8), r(3, 4), compiled=False)
    model = Call(lambda x: Q.choose_qparams_symmetric.tensor(x, 0, 255, 1e-4, torch.uint8)).eval()
    scale, zero = interpret(from_torch(torch.export.export(model, (r(3, 4),))), r(3, 4).numpy())
    assert (scale.dtype, zero.dtype) == (np.float64, np.int64) and zero.tolist() == [128]


def test_per_token_symmetric() -> None:
    def body(x: torch.Tensor) -> Any:
        scales, zeros = Q.choose_qparams_per_token(x, torch.int8)
        codes = Q.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        return (Q.dequantize_per_token(codes, scales, zeros, -128, 127, torch.int8, torch.float32),)

    bits(lambda *values: [part for value in values for part in body(value)], *MATRICES)


def test_per_token_asymmetric() -> None:
    """In float64, which loops lack: interpreted only, and refused by name."""

    def body(x: torch.Tensor) -> Any:
        scales, zeros = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
        codes = Q.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        return (Q.dequantize_per_token(codes, scales, zeros, -128, 127, torch.int8, torch.float32),)

    bits(lambda *values: [part for value in values for part in body(value)], *MATRICES, compiled=False)
    program = torch.export.export(Call(body).eval(), (MATRICES[0],))
    with pytest.raises(QcompError, match="float64 is not lowered"):
        qcomp.compile(program, "generic")


def test_refusals_name_the_reason() -> None:
    half = torch.export.export(Call(lambda x: Q.choose_qparams.tensor(x, 0, 255, 1e-4, torch.uint8)), (r(3, 4).half(),))
    with pytest.raises(QcompError, match=r"choose_qparams.tensor of float16 is not supported.*float32"):
        from_torch(half)

    def fractional(x: torch.Tensor) -> Any:
        return (Q.quantize_per_token(x, torch.ones(3, 1), torch.full((3, 1), 2.0), -128, 127, torch.int8) + 0,)

    with pytest.raises(QcompError, match="float32 scales and zero points"):
        from_torch(torch.export.export(Call(fractional), (r(3, 4),)))


@pytest.mark.parametrize("fold", [False, True])
def test_fractional_zero_points_of_embeddings(fold: bool) -> None:
    """uint8 tables with float32 zero points, as EmbeddingQuantizer leaves them."""
    table = r(11, 6, seed=2)
    scales, zeros = r(11, seed=4).abs() / 30 + 0.01, torch.rand(11, generator=torch.Generator().manual_seed(1)) * 200
    codes = Q.quantize_per_channel(table, scales, zeros, 0, 0, 255, torch.uint8)

    def body(indices: torch.Tensor) -> Any:
        held = codes if fold else Q.quantize_per_channel(table, scales, zeros, 0, 0, 255, torch.uint8)
        real = Q.dequantize_per_channel(held, scales, zeros, 0, 0, 255, torch.uint8)
        return (torch.nn.functional.embedding(indices, real),)

    bits(body, torch.tensor([[3, 0, 10], [3, 7, 1]]))


@pytest.mark.parametrize("per_token", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_dynamic_linear_works_on_codes(per_token: bool, signed: bool) -> None:
    low, dtype = (-128, torch.int8) if signed else (0, torch.uint8)
    weight, scales = torch.randint(-127, 128, (9, 21), dtype=torch.int8), torch.rand(9) / 50 + 0.01
    bias, zeros = r(9, seed=5), torch.zeros(9, dtype=torch.int64)

    def body(x: torch.Tensor) -> Any:
        if per_token:
            scale, zero = Q.choose_qparams_per_token(x, torch.int8)
            codes = Q.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
            real = Q.dequantize_per_token(codes, scale, zero, -128, 127, torch.int8, torch.float32)
        else:
            scale, zero = Q.choose_qparams.tensor(x, low, low + 255, 1e-4, dtype)
            codes = Q.quantize_per_tensor.tensor(x, scale, zero, low, low + 255, dtype)
            real = Q.dequantize_per_tensor.tensor(codes, scale, zero, low, low + 255, dtype)
        held = Q.dequantize_per_channel(weight, scales, zeros, 0, -127, 127, torch.int8)
        flat = torch.nn.functional.linear(real.reshape(-1, 21), held, bias)
        return torch.relu(flat).reshape(2, 5, 9)

    x = r(2, 5, 21, seed=6)
    artifact = qcomp.compile(torch.export.export(Call(body).eval(), (x,)), verify=True)
    rows = [row for row in artifact.report()["ops"] if row["macs"]]
    assert [(row["op"], row["compute"]) for row in rows] == [("nn.dynamic_linear", "i8")]
    assert artifact.report()["macs_integer_share"] == 1.0
    found, expected = artifact(x).numpy(), body(x).numpy()
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


class Attention(nn.Module):
    """Three linears over one value."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1)
        return scores @ self.v(x)


def test_one_value_quantized_once_for_several_linears() -> None:
    import networks
    from torchao.quantization.pt2e import quantize_pt2e

    x, model = r(2, 5, 12), Attention().eval()
    quantizer = networks.make_quantizer("xnnpack", is_dynamic=True)
    prepared = quantize_pt2e.prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
    prepared(x)
    module = from_torch(prepared)
    converted = quantize_pt2e.convert_pt2e(prepared)
    with torch.no_grad():
        expected = converted(x).numpy()
    qcomp.run_passes(module, "quantize", verify=True)
    (found,) = interpret(module, x.numpy(), evaluator="torch")
    assert np.array_equal(found, expected)
    artifact = qcomp.compile(converted)
    computed = [row["compute"] for row in artifact.report()["ops"] if row["op"] == "nn.dynamic_linear"]
    assert computed == ["i8"] * 3
    assert sum(row["op"] == "quant.quantize_dynamic" for row in artifact.report()["ops"]) == 1
    assert np.abs(artifact(x.numpy()) - expected).max() < 1e-5
