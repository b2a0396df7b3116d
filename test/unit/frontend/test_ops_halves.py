# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of 16-bit floats that are one kernel in torch round once, at the result, though they become several ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from eager import Call, r
from torch.nn import functional as F

from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), ((2, 6, 5, 7), (6,), (6,))),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), ((2, 6, 5, 7), (6,), (6,))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (17,), w), ((5, 17), (17,))),
    "log_softmax": (lambda x: F.log_softmax(x, -1), ((5, 17),)),
    "glu": (F.glu, ((5, 18),)),
    "addmm": (torch.addmm, ((4, 11), (4, 7), (7, 11))),
    "baddbmm": (lambda a, x, y: torch.baddbmm(a, x, y, beta=0.3, alpha=0.7), ((3, 4, 11), (3, 4, 7), (3, 7, 11))),
    "addmv": (torch.addmv, ((4,), (4, 7), (7,))),
    "addr": (torch.addr, ((4, 7), (4,), (7,))),
    "bilinear": (lambda x: F.interpolate(x, size=(9, 8), mode="bilinear"), ((2, 3, 5, 7),)),
    "bicubic": (lambda x: F.interpolate(x, size=(9, 8), mode="bicubic"), ((2, 3, 5, 7),)),
    "attention": (F.scaled_dot_product_attention, ((2, 3, 5, 8), (2, 3, 9, 8), (2, 3, 9, 8))),
    "causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), ((2, 9, 8),) * 3),
}


def bits(value: torch.Tensor) -> np.ndarray:
    return value.view(torch.int16).numpy().view(np.uint16) if value.dtype == torch.bfloat16 else value.numpy()


def numbers(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(array.view(np.int16)).view(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=lambda dtype: str(dtype)[6:])
@pytest.mark.parametrize("name", CASES)
def test_rounded_once(name: str, dtype: torch.dtype) -> None:
    """The float64 result rounded, but for results that lie halfway as far as float32 sees; and near eager."""
    function, shapes = CASES[name]
    inputs = tuple(r(*shape, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes))
    model = Call(function).eval()
    with torch.no_grad():
        exact, eager = model(*(value.double() for value in inputs)), model(*inputs)
    unit = 2.0 ** (-8 if dtype == torch.bfloat16 else -11)
    program = torch.export.export(model, inputs)
    module = from_torch(program)
    (found,) = interpret(module, *map(bits, inputs))
    result = numbers(found, dtype)
    assert (result == exact.to(dtype)).double().mean() >= 0.98
    assert ((result.double() - exact).abs() <= 1.01 * unit * exact.abs() + 1e-6).all()
    assert (result.double() - eager.double()).abs().max() <= 3 * unit * exact.abs().max()


def test_what_the_caller_asks_for_in_float32_stays() -> None:
    model = Call(lambda x: F.log_softmax(x, 1, dtype=torch.float32)).eval()
    value = r(3, 7, dtype=torch.bfloat16)
    (found,) = interpret(from_torch(torch.export.export(model, (value,))), bits(value))
    assert found.dtype == np.float32
    assert np.allclose(found, model(value).numpy(), rtol=1e-6, atol=1e-6)
