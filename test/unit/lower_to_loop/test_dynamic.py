# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization with computed parameters at three levels, NaN and infinities included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program
from three_way import check
from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import nn, quant
from qcomp.dialects.element import ui8
from qcomp.dialects.quant import Encoding
from qcomp.transforms.dynamic_parameters import Parameters, parameters_of
from qcomp.transforms.pipeline import run_passes

AFFINE = Parameters.per_tensor(-128, 127, 1e-4, False, i8)
UNSIGNED = Parameters.per_tensor(0, 255, 1e-4, False, ui8)
SYMMETRIC = Parameters.per_tensor(0, 255, 1e-4, True, ui8)
NEAREST = Parameters(-128, 127, 255.0, 1e-7, False, None, nearest=True)
RNG = np.random.default_rng(0)


def fake_quantized(
    add: Any, x: SSAValue, rule: Parameters, storage: Attribute, axes: Sequence[int] | None
) -> list[SSAValue]:  # fmt: skip
    """Scale, zero point, codes, reals."""
    scale, zero = parameters_of(add, x, rule, axes)
    codes = add(quant.QuantizeDynamicOp(x, scale, zero, storage, rule.qmin, rule.qmax))
    return [scale, zero, codes, add(quant.DequantizeDynamicOp(codes, scale, zero))]


@pytest.mark.parametrize("axes", [None, (2,)])
@pytest.mark.parametrize(("rule", "storage"), [(AFFINE, i8), (UNSIGNED, ui8), (SYMMETRIC, ui8), (NEAREST, i8)])
def test_parameters_codes_and_reals(axes: Sequence[int] | None, rule: Parameters, storage: Attribute) -> None:
    module = program(lambda add, x: fake_quantized(add, x, rule, storage, axes), floats(3, 5, 37))
    x = 3 * RNG.standard_normal((3, 5, 37)).astype(np.float32)
    x[0, 1], x[1, 1], x[2, 2] = 0, np.abs(x[1, 1]), -np.abs(x[2, 2])
    planted = x.copy()
    planted[0, 0, 0], planted[1, 0, 0], planted[2, 0, 0] = np.nan, np.inf, -np.inf
    for value in (x, planted):
        check(module, value)


@pytest.mark.parametrize("axes", [None, (2,)])
@pytest.mark.parametrize("sizes", [(1, 5, 3), (7, 64, 17), (15, 39, 40)])
def test_linear_on_codes(sizes: tuple[int, int, int], axes: Sequence[int] | None) -> None:
    rows, inner, channels = sizes
    weight = RNG.integers(-127, 128, (channels, inner)).astype(np.int8)
    encoding = Encoding.make(RNG.uniform(0.01, 0.1, channels), qmin=-127, axis=0)
    bias = RNG.standard_normal(channels).astype(np.float32)

    def build(add: Any, x: SSAValue) -> list[SSAValue]:
        held = add(quant.DequantizeOp(add(constant(weight, encoding))))
        signed, unsigned = (
            fake_quantized(add, x, rule, storage, axes)[-1] for rule, storage in ((AFFINE, i8), (SYMMETRIC, ui8))
        )
        plain = add(nn.LinearOp(signed, held))
        return [plain, add(nn.LinearOp(unsigned, held, add(constant(bias)), activation=nn.ReluAttr()))]

    module = program(build, floats(2, rows, inner))
    run_passes(module, "fuse-dynamic-linear,unsigned-activations,fold-constants,dce", verify=True)
    assert str(module).count("nn.dynamic_linear") == 2
    check(module, 3 * RNG.standard_normal((2, rows, inner)).astype(np.float32))


def test_linear_on_signed_codes_without_the_dot_instruction() -> None:
    from qcomp.backend.target import GENERIC

    weight = RNG.integers(-127, 128, (5, 6)).astype(np.int8)

    def build(add: Any, x: SSAValue) -> SSAValue:
        scale, zero, codes, _ = fake_quantized(add, x, AFFINE, i8, None)
        return add(nn.DynamicLinearOp(codes, scale, zero, add(constant(weight, Encoding.make(0.02, qmin=-127)))))

    check(program(build, floats(3, 6)), RNG.standard_normal((3, 6)).astype(np.float32), targets=[GENERIC])
