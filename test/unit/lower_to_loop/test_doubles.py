# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops on float64: in bits at all levels, contractions within the rounding of their sums; constants keep their bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import three_way
from layers import Program
from xdsl.dialects.builtin import StringAttr, TensorType, f32, f64
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import parameter
from qcomp.errors import QcompError
from qcomp.interpreter import interpret

Build = Callable[["Doubles"], Sequence[SSAValue]]


class Doubles(Program):
    """A program on tensors of float64."""

    def real(self, *shape: int) -> SSAValue:
        """An argument of random numbers."""
        return self.given(self.rng.standard_normal(shape), f64)

    def weight(self, *shape: int) -> SSAValue:
        """A constant of random numbers."""
        return self.add(nn.ConstantOp(self.rng.standard_normal(shape)))


def norms(p: Doubles) -> list[SSAValue]:
    x, image = p.real(5, 37), p.real(2, 6, 3, 5)
    p.arrays[0][0, 3:6] = np.nan, np.inf, -0.0
    mean, var = p.weight(6), p.add(nn.ConstantOp(np.abs(p.rng.standard_normal(6)) + 0.1))
    ops = [
        nn.SoftmaxOp(x, 1), nn.SoftmaxOp(x, 0), nn.LayerNormOp(x, (37,), p.weight(37), p.weight(37), 1e-5),
        nn.LayerNormOp(image, (3, 5), None, None, 1e-3),
        nn.BatchNormOp(image, mean, var, p.weight(6), p.weight(6), 1e-3),
    ]  # fmt: skip
    return [p.add(op) for op in ops]


def reductions(p: Doubles) -> list[SSAValue]:
    x = p.real(3, 37, 5)
    ops = [nn.SumOp(x, (1,), True), nn.MeanOp(x, (0, 2), False), nn.MeanOp(x, (2,), False), nn.AmaxOp(x, (1, 2), False)]
    more = [nn.AminOp(x, (0,), True), nn.ProdOp(x, (2,), False), nn.ScanOp("add", x, 1), nn.ScanOp("logaddexp", x, 1)]
    return [p.add(op) for op in [*ops, nn.SumOp(x, (0,), False), *more, nn.ArgmaxOp(x, 1, False)]]


def windows(p: Doubles) -> list[SSAValue]:
    x = p.real(2, 6, 11, 9)
    ops = [
        nn.MaxPool2dOp(x, (3, 2), (2, 1), padding=(1, 1)), nn.AvgPool2dOp(x, (2, 3), (1, 2), padding=(1, 1)),
        nn.AdaptiveAvgPool2dOp(x, (4, 2)), nn.AdaptiveMaxPool2dOp(x, (3, 4)),
        nn.MAX_POOL_INDICES[0](x, (2, 2), (2, 2)), nn.TakeOp(x, 2, (3, 0, 10, 10)),
    ]  # fmt: skip
    indices = p.add(nn.ConstantOp(np.array([[0, 1], [3, 10], [5, 2]], np.int64)))
    weights = p.add(nn.ConstantOp(np.array([[0.3, 0.7], [1.1, -0.1], [0.25, 0.75]])))
    grid = p.given(p.rng.uniform(-1.2, 1.2, (2, 4, 3, 2)), f64)
    sampled = [nn.GridSampleOp(x, grid, "bilinear", mode, False) for mode in ("zeros", "border", "reflection")]
    return [p.add(op) for op in [*ops, nn.ResampleOp(x, indices, weights, 2), *sampled]]


def elements(p: Doubles) -> list[SSAValue]:
    """Numbers of the program are float64 too: bounds, slopes, padding."""
    x, y = p.real(3, 41), p.real(3, 41)
    p.arrays[0][1, :5] = np.nan, np.inf, 5e-324, 1e300, -800.0
    plain = [nn.ExpOp, nn.TanhOp, nn.ErfOp, nn.SigmoidOp, nn.SiluOp, nn.SqrtOp, nn.RsqrtOp, nn.HardswishOp]
    ops = [op(x) for op in plain]
    ops += [nn.GeluOp(x, approximate=StringAttr(mode)) for mode in ("none", "tanh")]
    ops += [nn.LeakyReluOp(x, negative_slope=parameter(0.01, x)), nn.ClampOp.of(x, -0.1, 0.7)]
    ops += [nn.PadOp(x, (0, 2), (1, 0), 0.3), nn.DivOp(x, y), nn.CastOp(x, TensorType(f32, (3, 41)))]
    return [p.add(op) for op in ops]


@pytest.mark.parametrize("build", [norms, reductions, windows, elements], ids=lambda build: build.__name__)
def test_in_bits(build: Build) -> None:
    p = Doubles()
    three_way.check(p.module(*build(p)), *p.arrays)


@pytest.mark.parametrize("build", [norms, elements], ids=lambda build: build.__name__)
def test_in_bits_by_all_compilers(build: Build) -> None:
    p = Doubles(1)
    three_way.check(p.module(*build(p)), *p.arrays, compilers=three_way.COMPILERS, loops=False)


def test_contractions() -> None:
    p = Doubles(2)
    x, image, volume = p.real(5, 33), p.real(2, 6, 7, 9), p.real(1, 3, 4, 5, 6)
    clamp = nn.ClampAttr.of(-0.1, 7.7)
    ops = [
        nn.LinearOp(x, p.weight(19, 33), p.weight(19)), nn.MatmulOp(x, p.weight(33, 18)),
        nn.MatmulOp(p.real(3, 5, 33), p.real(3, 33, 21)),
        nn.Conv1dOp(p.real(2, 5, 17), p.weight(4, 5, 3), padding=(1,)),
        nn.Conv2dOp(image, p.weight(20, 6, 3, 3), p.weight(20), stride=(2, 1), padding=(1, 1), activation=clamp),
        nn.Conv2dOp(image, p.weight(6, 1, 3, 3), padding=(1, 0), groups=6),
        nn.Conv2dOp(image, p.weight(8, 3, 2, 2), groups=2), nn.Conv3dOp(volume, p.weight(4, 3, 2, 3, 2), p.weight(4)),
        nn.ConvTranspose2dOp(image, p.weight(5, 6, 3, 3), stride=(2, 2)),
    ]  # fmt: skip
    three_way.check(p.module(*map(p.add, ops)), *p.arrays, relative=1e-14)


def test_recurrent() -> None:
    p = Doubles(3)
    lstm = nn.LstmOp(p.real(5, 3, 28), p.real(3, 7), p.real(3, 7), p.weight(28, 7), p.weight(28), None)
    gru = nn.GruOp(p.real(5, 3, 21), p.real(3, 7), p.weight(21, 7), None, True)
    rnn = nn.RnnOp(p.real(5, 3, 7), p.real(3, 7), p.weight(7, 7), p.weight(7), "tanh")
    three_way.check(p.module(*map(p.add, (lstm, gru, rnn))), *p.arrays, relative=1e-13)


def test_a_number_that_float32_does_not_hold_stays() -> None:
    p = Doubles()
    x = p.given(np.array([-5.0, 5.0]), f64)
    results = [
        nn.ClampOp.of(x, -0.1, 0.3),
        nn.LeakyReluOp(x, negative_slope=parameter(0.01, x)),
        nn.PadOp(x, (1,), (0,), 0.7),
    ]
    found = three_way.check(p.module(*map(p.add, results)), *p.arrays)
    assert [list(array) for array in found] == [[-0.1, 0.3], [-0.05, 5.0], [0.7, -5.0, 5.0]]
    assert nn.ClampAttr.of(0.0, 6.0).min.type == f32 and nn.ClampAttr.of(-0.1, 6.0).bounds == (-0.1, 6.0)


def test_an_op_of_two_float_types_is_refused() -> None:
    p = Doubles()
    x, wide = p.input((2, 3)), p.real(3)
    module = p.module(p.add(nn.LayerNormOp(x, (3,), wide, None, 1e-5)))
    with pytest.raises(QcompError, match=r"nn\.layer_norm of f64 is not lowered to loops"):
        three_way.lower(module, three_way.TARGETS[0])


def test_sums_do_not_fall_back_to_float32() -> None:
    p = Doubles()
    x = p.given(np.array([[1.0, 1e-9, 1e-12, 0.25]]), f64)
    module = p.module(p.add(nn.MeanOp(x, (1,), False)), p.add(nn.LayerNormOp(x, (4,), None, None, 1e-13)))
    mean, normal = interpret(three_way.lower(module, three_way.TARGETS[0]), *p.arrays)
    assert mean[0] == (1.0 + 1e-9 + 1e-12 + 0.25) / 4
    assert abs(float((normal**2).mean()) - 1) < 1e-11
