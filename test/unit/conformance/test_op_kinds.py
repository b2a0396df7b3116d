# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each kind of op in bfloat16, float16 and float64, compiled, beside eager torch and, in bits, the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import deep
import numpy as np
import pytest
import torch
from eager import Call, r
from torch.nn import functional as F

import qcomp
from qcomp.interpreter.run import interpret

T = torch.Tensor
Case = tuple[Callable[..., T], tuple[tuple[int, ...], ...]]
UNITS = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float64: 2.0**-53}


def of_one(names: str, shape: tuple[int, ...], prepare: Callable[[T], T], home: Any = torch) -> dict[str, Case]:
    """Functions of one tensor, which `prepare` brings into their domain."""

    def case(name: str) -> Case:
        return lambda x: getattr(home, name)(prepare(x)), (shape,)

    return {name: case(name) for name in names.split()}


IN_BITS: dict[str, Case] = {
    **of_one("sum mean amax amin exp tanh erf sigmoid expm1 exp2 sin cos", (5, 37), lambda x: x),
    **of_one("atan sinh cosh asinh erfc floor round abs", (5, 37), lambda x: x * 2),
    **of_one("log log1p log2 log10 sqrt rsqrt reciprocal acosh", (5, 37), lambda x: x.abs() + 1),
    **of_one("asin acos atanh tan", (5, 37), lambda x: x.tanh() * 0.75),
    **of_one("gelu silu elu selu softplus mish hardswish leaky_relu logsigmoid relu6 glu", (6, 38), lambda x: x * 3, F),
    "var": (lambda x: x.var(1), ((3, 37, 5),)), "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), ((3, 37, 5),)),
    "cumsum": (lambda x: x.cumsum(1), ((3, 17, 5),)), "logsumexp": (lambda x: x.logsumexp(1), ((3, 17, 5),)),
    "softmax": (lambda x: x.softmax(1), ((3, 17, 5),)), "log_softmax": (lambda x: x.log_softmax(-1), ((3, 17, 5),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (17,), w, b), ((3, 17), (17,), (17,))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), ((2, 6, 5, 7), (6,), (6,))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (17,), w, 1e-5), ((3, 17), (17,))),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), ((2, 6, 11, 9),)),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), ((2, 6, 11, 9),)),
    "adaptive_pool": (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), ((2, 6, 11, 9),)),
    "bilinear": (lambda x: F.interpolate(x, size=(9, 8), mode="bilinear"), ((2, 3, 5, 7),)),
    "cat": (lambda x, y: torch.cat([x, y], 1), ((2, 3, 5), (2, 4, 5))), "flip": (lambda x: x.flip(1), ((2, 7, 5),)),
    "pad": (lambda x: F.pad(x, (1, 2), value=0.3), ((3, 5),)), "sort": (lambda x: x.sort(1)[0], ((3, 17),)),
    "where": (lambda x, y: torch.where(x > y, x, y * 0.1), ((3, 5), (3, 5))),
    "slice_scatter": (lambda x, y: x.slice_scatter(y, 1, 2, 5), ((3, 7), (3, 3))),
    "pow": (lambda x, y: (x.abs() + 0.1) ** y, ((5, 37), (5, 37))), "atan2": (torch.atan2, ((5, 37), (5, 37))),
    "remainder": (lambda x, y: torch.remainder(x, y.abs() + 0.5), ((5, 37), (5, 37))),
    "clamp": (lambda x: x.clamp(-0.3, 0.7), ((5, 37),)), "lerp": (lambda x, y: torch.lerp(x, y, 0.3), ((5, 7), (5, 7))),
}  # fmt: skip
SUMS: dict[str, Case] = {
    "linear": (F.linear, ((5, 37), (19, 37), (19,))),
    "matmul": (torch.matmul, ((3, 5, 7), (3, 7, 11))),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), ((2, 6, 17), (10, 6, 3))),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, 2, 1), ((2, 6, 11, 9), (10, 6, 3, 3), (10,))),
    "conv3d": (F.conv3d, ((2, 3, 4, 5, 6), (5, 3, 2, 2, 2))),
    "addmm": (torch.addmm, ((11,), (5, 7), (7, 11))),
    "depthwise": (lambda x, w: F.conv2d(x, w, groups=6), ((2, 6, 7, 9), (6, 1, 3, 3))),
    "transposed": (lambda x, w: F.conv_transpose2d(x, w, stride=2), ((2, 3, 5, 6), (3, 5, 3, 3))),
    "attention": (F.scaled_dot_product_attention, ((2, 3, 7, 8), (2, 3, 9, 8), (2, 3, 9, 8))),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), ((2, 3, 5), (2, 4, 5))),
}
"""Contractions: C sums in an order of its own."""


class Every(torch.nn.Module):
    """All cases as one program, which is compiled once; weights are constants."""

    def __init__(self, cases: dict[str, Case], dtype: torch.dtype):
        super().__init__()
        self.calls = [Call(function) for function, _ in cases.values()]
        self.weights: list[list[T]] = []
        for number, (_, shapes) in enumerate(cases.values()):
            self.weights.append([r(*shape, seed=7 * number + place, dtype=dtype) for place, shape in enumerate(shapes)])
            for place, value in enumerate(self.weights[-1][1:]):
                self.register_buffer(f"w{number}_{place}", value)
        self.inputs = tuple(values[0] for values in self.weights)

    def forward(self, *inputs: T) -> tuple[T, ...]:
        found: list[T] = []
        for number, (call, value) in enumerate(zip(self.calls, inputs, strict=True)):
            rest = [getattr(self, f"w{number}_{place}") for place in range(len(self.weights[number]) - 1)]
            found.append(call(value, *rest))
        return tuple(found)


def array(value: T) -> np.ndarray[Any, Any]:
    return value.view(torch.int16).numpy().view(np.uint16) if value.dtype == torch.bfloat16 else value.numpy()


@pytest.mark.parametrize(
    "dtype, target", deep.in_turn(UNITS, ["native", "generic"]), ids=lambda value: str(value).removeprefix("torch.")
)
@pytest.mark.parametrize("cases", [IN_BITS, SUMS], ids=["in_bits", "sums"])
def test_near_eager(cases: dict[str, Case], dtype: torch.dtype, target: str) -> None:
    model = Every(cases, dtype).eval()
    with torch.no_grad():
        expected = model(*model.inputs)
    program = torch.export.export(model, model.inputs)
    reference = interpret(qcomp.from_torch(program), *map(array, model.inputs))
    found = qcomp.compile(program, target=target)(*model.inputs)
    share = 1e-13 if dtype == torch.float64 else 3 * UNITS[dtype]
    for name, want, have, held in zip(cases, expected, found, reference, strict=True):
        assert have.dtype == want.dtype and have.shape == want.shape, name
        assert (have.double() - want.double()).abs().max() <= share * want.double().abs().max(), name
        if cases is IN_BITS:
            assert array(have).tobytes() == held.tobytes(), name
