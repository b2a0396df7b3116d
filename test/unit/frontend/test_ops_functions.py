# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparison, logic, functions by name and what is composed of them, against eager torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from eager import Call, Case, compare, ints, r
from torch.nn import functional as F

from qcomp.errors import QcompError
from qcomp.frontend import from_torch


def special(*shape: int) -> torch.Tensor:
    """Normal numbers with NaN, infinities and zeros among them."""
    values = r(*shape) * 3
    values.reshape(-1)[:6] = torch.tensor([0.0, -0.0, math.nan, math.inf, -math.inf, 1.0])
    return values


def bools(*shape: int) -> torch.Tensor:
    return ints(*shape) > 0


POSITIVE = r(4, 5).abs() + 0.1
UNIT = r(4, 5).tanh() * 0.99
CASES: dict[str, Case] = {
    "comparisons": (lambda x, y: (x == y, x != y, x < y, x <= 0, x > 0.5, x >= y), (special(3, 7), special(7))),
    "comparisons of ints": (lambda x, y: (x == y, x < 2, x > 1.5, x >= y), (ints(3, 5), ints(5).int())),
    "logic": (
        lambda x, y: (torch.logical_and(x, y), torch.logical_or(x, y), torch.logical_xor(x, y), x.logical_not()),
        (special(4, 7), ints(7)),
    ),
    "bits": (lambda x, y: (x & y, x | 3, x ^ y, ~x, x << 2, x >> 1, x >> y.abs()), (ints(4, 5), ints(5))),
    "truth values": (lambda x, y: (x & y, x | y, x ^ y, ~x, x + y, x * y, x.int() - 1), (bools(9), bools(9).flip(0))),
    "classes": (
        lambda x: (x.isnan(), x.isinf(), x.isfinite(), x.isposinf(), x.isneginf(), x.signbit(), x.nan_to_num(1, 2, 3)),
        (special(4, 5),),
    ),
    "where": (
        lambda c, x, y: (torch.where(c, x, y), torch.where(c, 1.5, y), torch.where(c, x, 0), torch.where(c, 1, 2)),
        (bools(3, 5), r(3, 5), r(5)),
    ),
    "masked_fill": (
        lambda m, x: (x.masked_fill(m, -math.inf), x.masked_fill(m, 7), x.int().masked_fill(m, 2.5)),
        (bools(5), r(3, 5)),
    ),
    "whole": (
        lambda x: (x.floor(), x.ceil(), x.trunc(), x.round(), x.round(decimals=1), x.sign(), x.frac()),
        (r(5, 8) * 9,),
    ),
    "whole ints": (lambda x: (x.floor(), x.ceil(), x.sign(), x.abs(), -x), (ints(9),)),
    "division": (
        lambda x, y: (
            torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), x // y, x % y,
            torch.fmod(x, y), torch.remainder(x, 2.5), torch.fmod(x, -3), 7 % y,
        ),
        (r(4, 5) * 9, r(5, seed=1)),
    ),
    "division of ints": (
        lambda x, y: (
            torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), x // y, x % y, x // 3,
            torch.fmod(x, y), torch.remainder(x, -2), torch.fmod(x, -3),
        ),
        (ints(4, 5), ints(5) * 2 + 1),
    ),
    "powers": (
        lambda x, y: (x**0, x**1, x**2, x**3, x**0.5, x**-0.5, x**-1, x**-2, x**2.5, x**y, 2**y, x.pow(4)),
        (POSITIVE, r(5)),
    ),
    "powers of ints": (lambda x, y: (x**0, x**5, x**y, x.float() ** y, x**0.5, 3**y), (ints(4, 5), ints(5).abs())),
    "clamps": (
        lambda x, y: (torch.clamp(x, y, y + 1), torch.clamp(x, min=y), x.clamp_max(y), torch.fmax(x, y), x.fmin(y)),
        (special(3, 7), r(7)),
    ),
    "products": (
        lambda x, y, z: (
            torch.addcmul(x, y, z, value=0.5), torch.addcdiv(x, y, z), torch.lerp(x, y, 0.3), torch.lerp(x, y, 0.7),
            torch.lerp(x, y, z), torch.rsub(x, y, alpha=2),
        ),
        (r(4, 5), r(5, seed=1), r(4, 1, seed=2)),
    ),
    "pairs": (
        lambda x, y: (
            torch.hypot(x, y), torch.atan2(x, y), torch.copysign(x, y), torch.copysign(x, -1), torch.xlogy(x, y.abs()),
            torch.logaddexp(x, y), torch.logaddexp2(x, y), torch.heaviside(x, y), torch.ldexp(x, y.floor()),
        ),
        (r(4, 5), r(5, seed=1)),
    ),
    "logarithms": (lambda x: (x.log(), x.log2(), x.log10(), x.log1p(), x.exp2(), x.expm1()), (POSITIVE * 9,)),
    "circular": (lambda x: (x.sin(), x.cos(), x.tan(), x.atan(), torch.sinc(x), x.deg2rad()), (r(4, 5) * 30,)),
    "inverse": (lambda x: (x.asin(), x.acos(), x.atanh(), x.logit(0.1), torch.special.expit(x)), (UNIT,)),
    "hyperbolic": (lambda x: (x.sinh(), x.cosh(), x.asinh(), (x.abs() + 1).acosh(), x.erfc()), (r(4, 5) * 3,)),
    "of ints": (lambda x: (x.sin(), x.log1p(), x.reciprocal(), x.square(), x.erfc()), (ints(9).abs() + 1,)),
    "soft": (
        lambda x: (F.softplus(x), F.softplus(x, 3, 2), F.elu(x, 0.5), F.selu(x), F.celu(x, 2), F.mish(x)),
        (r(4, 5) * 4,),
    ),
    "hard": (
        lambda x: (
            F.hardshrink(x, 0.3), F.softshrink(x, 0.3), F.tanhshrink(x), F.threshold(x, 0.1, 5), F.logsigmoid(x),
            F.softsign(x), F.rrelu(x), F.glu(x), F.glu(x, 0),
        ),
        (r(4, 6) * 2,),
    ),
    "prelu": (lambda x, w: (F.prelu(x, w), F.prelu(x, w[:1])), (r(2, 3, 4), r(3))),
    "close": (lambda x, y: (torch.isclose(x, y), torch.isclose(x, y, 0.1, 0.2)), (special(4, 5), special(4, 5) + 1e-7)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str):
    function, inputs = CASES[name]
    compare(function, *inputs, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_composed_ops_round_16_bit_floats_once(dtype: torch.dtype):
    import numpy as np

    from qcomp.interpreter import interpret

    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.addcmul(x, x, y, value=0.3).float(), torch.lerp(x, y, 0.3).float(), torch.sinc(x).float()

    inputs = (r(4, 9, dtype=dtype), r(9, seed=1, dtype=dtype))
    module = from_torch(torch.export.export(Call(function), inputs))
    arrays = [value.view(torch.uint16).numpy() if dtype == torch.bfloat16 else value.numpy() for value in inputs]
    for found, expected in zip(interpret(module, *arrays), function(*inputs), strict=True):
        step = 2.0**-10 if dtype == torch.float16 else 2.0**-7
        assert np.allclose(found, expected.numpy(), step, 1e-6)
        assert (found == expected.numpy()).mean() > 0.9


def test_random_slopes_are_refused():
    with pytest.raises(QcompError, match="rrelu in training mode"):
        from_torch(torch.export.export(Call(lambda x: F.rrelu(x, training=True)), (r(3),)))
