# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchao's affine ops and groups within rows, against torch bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torchao.quantization.quant_primitives  # noqa: F401  (registers torchao's ops)
from eager import Call, r

import qcomp
from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

AO: Any = torch.ops.torchao
Q: Any = torch.ops.quantized_decomposed
SIZES = (6, 8)
GRANULARITIES = {"tensor": (6, 8), "row": (1, 8), "column": (6, 1), "group": (1, 4), "tile": (3, 4)}


def bits(function: Any, *inputs: torch.Tensor) -> None:
    model = Call(function).eval()
    with torch.no_grad():
        expected = [value.numpy() for value in model(*inputs)]
    found = interpret(from_torch(torch.export.export(model, inputs)), *(value.numpy() for value in inputs))
    for left, right in zip(found, expected, strict=True):
        assert left.dtype == right.dtype and left.tobytes() == right.tobytes()


@pytest.mark.parametrize("blocks", GRANULARITIES.values(), ids=GRANULARITIES)
def test_constant_parameters(blocks: tuple[int, int]) -> None:
    grid = tuple(size // block for size, block in zip(SIZES, blocks, strict=True))
    scale, zero = torch.rand(grid) / 20 + 0.01, torch.randint(-5, 9, grid, dtype=torch.int32)

    def body(x: torch.Tensor) -> Any:
        codes = AO.quantize_affine(x, blocks, scale, zero, torch.int8, -8, 7)
        return codes, AO.dequantize_affine(codes, blocks, scale, zero, torch.int8, -8, 7)

    bits(body, r(*SIZES))


@pytest.mark.parametrize("blocks", GRANULARITIES.values(), ids=GRANULARITIES)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("own", [False, True])
def test_dequantize_to_16_bits(kind: torch.dtype, blocks: tuple[int, int], own: bool) -> None:
    """Scales in float32 or in the 16 bits of the result; the product is rounded once."""
    grid = tuple(size // block for size, block in zip(SIZES, blocks, strict=True))
    scale = (torch.rand(grid) / 20 + 0.01).to(kind if own else torch.float32)
    zero = torch.randint(-128, 128, grid, dtype=torch.int32)
    codes = torch.randint(-128, 128, SIZES, dtype=torch.int8)

    def body(x: torch.Tensor) -> Any:
        held = AO.dequantize_affine(codes, blocks, scale, zero, torch.int8, -128, 127, output_dtype=kind)
        return (x + held.float(),)

    bits(body, r(*SIZES))


@pytest.mark.parametrize("blocks", GRANULARITIES.values(), ids=GRANULARITIES)
@pytest.mark.parametrize("mapping", ["SYMMETRIC", "ASYMMETRIC"])
def test_chosen_parameters(mapping: str, blocks: tuple[int, int]) -> None:
    def body(x: torch.Tensor) -> Any:
        scale, zero = AO.choose_qparams_affine(
            x, mapping, blocks, torch.int8, -128, 127, 1e-5, torch.float32, torch.int32, keepdim=blocks == (1, 8)
        )
        codes = AO.quantize_affine(x, blocks, scale, zero, torch.int8, -128, 127)
        return scale, zero, codes, AO.dequantize_affine(codes, blocks, scale, zero, torch.int8, -128, 127)

    bits(body, r(*SIZES))


def test_groups_of_int4_weights() -> None:
    """The codes of a matrix with a scale per group of a row stay what they are; the linear is in float."""
    codes = torch.randint(-8, 8, (6, 8), dtype=torch.int8)
    scales, zeros = torch.rand(6, 2) / 10 + 0.01, torch.randint(-2, 3, (6, 2), dtype=torch.int32)
    weight = r(6, 8)

    def body(x: torch.Tensor) -> Any:
        real = Q.dequantize_per_channel_group(codes, scales, zeros, -8, 7, torch.int8, 4, torch.float32)
        held = Q.quantize_per_channel_group(weight, scales, torch.zeros_like(zeros), -8, 7, torch.int8, 4)
        return x + real, held

    def with_constants(x: torch.Tensor) -> Any:
        return (torch.nn.functional.linear(x, AO.dequantize_affine(codes, (1, 4), scales, zeros, torch.int8, -8, 7)),)

    model = Call(with_constants).eval()
    module = from_torch(torch.export.export(model, (r(3, 8),)))
    assert "i8<-8:7>:f32:{0:1, 1:4}" in str(module)
    artifact = qcomp.compile(module, "generic")
    assert np.allclose(artifact(r(3, 8).numpy()), model(r(3, 8))[0].numpy(), 1e-5, 1e-5)
    with pytest.raises(QcompError, match="zero points 0"):
        from_torch(torch.export.export(Call(body).eval(), (r(6, 8),)))


def test_dynamic_activations_times_int8_weights() -> None:
    codes, scales = torch.randint(-127, 128, (5, 8), dtype=torch.int8), torch.rand(5, 1) / 30 + 0.01

    def body(x: torch.Tensor) -> Any:
        blocks = (1, 1, 8)
        scale, zero = AO.choose_qparams_affine(x, "ASYMMETRIC", blocks, torch.int8, -128, 127, 1e-5)
        held = AO.quantize_affine(x, blocks, scale, zero, torch.int8, -128, 127)
        real = AO.dequantize_affine(held, blocks, scale, zero, torch.int8, -128, 127)
        weight = AO.dequantize_affine(codes, (1, 8), scales, None, torch.int8, -127, 127)
        return torch.nn.functional.linear(real, weight)

    x = r(2, 3, 8)
    artifact = qcomp.compile(torch.export.export(Call(body).eval(), (x,)), verify=True)
    assert [row["compute"] for row in artifact.report()["ops"] if row["macs"]] == ["i8"]
    assert np.allclose(artifact(x.numpy()), body(x).numpy(), 1e-5, 1e-5)


ZERO = torch.zeros((1, 1), dtype=torch.int32)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda x: AO.choose_qparams_affine(x, "SYMMETRIC_NO_CLIPPING_ERR", (6, 8), torch.int8)[0], "NO_CLIPPING"),
        (lambda x: AO.quantize_affine(x, (6, 8), x[:1, :1].abs(), ZERO, torch.float8_e4m3fn), "float8"),
    ],
)
def test_refusals(body: Any, match: str) -> None:
    program = torch.export.export(Call(body).eval(), (r(*SIZES),))
    with pytest.raises(QcompError, match=match):
        from_torch(program)
