# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks drawn at random go through all pipelines, every pass held to its letter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensor_programs import constant, floats, program
from xdsl.ir import Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import shape
from qcomp.dialects.quant import Encoding, ObserveOp
from qcomp.transforms.pipeline import run_passes

PASSES = "O1,quantize,O2,integer,unsigned-activations,dce,unfuse-qdq"
Step = Callable[["Drawn"], SSAValue | None]


class Drawn:
    """A network under construction: the values so far and the random choices."""

    def __init__(self, add: Callable[[Operation], SSAValue], value: SSAValue, choose: st.DataObject, seed: int):
        self.add, self.choose, self.rng = add, choose, np.random.default_rng(seed)
        self.values = [value]

    def integer(self, low: int, high: int) -> int:
        return self.choose.draw(st.integers(low, high))

    def value(self) -> SSAValue:
        """One of the last four values."""
        return self.values[-1 - self.integer(0, min(3, len(self.values) - 1))]

    def observe(self, value: SSAValue) -> SSAValue:
        signed, sparse = self.integer(0, 1) == 1, self.integer(0, 3)
        if sparse == 0:
            return value
        zero = int(self.rng.integers(-128, 128)) + (0 if signed else 128)
        scale = float(np.float32(self.rng.uniform(0.005, 0.2)))
        return self.add(ObserveOp(value, Encoding.make(scale, zero, signed=signed)))

    def constant(self, *sizes: int) -> SSAValue:
        return self.add(constant(self.rng.standard_normal(sizes).astype(np.float32)))

    def weight(self, *sizes: int) -> SSAValue:
        value = self.constant(*sizes)
        kind = self.integer(0, 2)
        scales = self.rng.uniform(0.005, 0.03, sizes[0])
        if kind == 0:
            return value
        encoding = Encoding.make(scales, axis=0, qmin=-127) if kind == 1 else Encoding.make(float(scales[0]))
        return self.add(ObserveOp(value, encoding))


def convolution(net: Drawn) -> SSAValue | None:
    value = net.value()
    if len(shape(value)) != 4 or min(shape(value)[2:]) < 3:
        return None
    inputs = shape(value)[1]
    groups = inputs if net.integer(0, 3) == 0 else 1
    outputs = groups * net.integer(1, 3)
    kernel = (net.integer(1, 3), net.integer(1, 3))
    bias = net.constant(outputs) if net.integer(0, 1) else None
    conv = net.add(
        nn.Conv2dOp(
            value, net.weight(outputs, inputs // groups, *kernel), bias, groups=groups,
            stride=(net.integer(1, 2), 1), padding=(net.integer(0, 1), net.integer(0, 1)),
        )
    )  # fmt: skip
    if net.integer(0, 2):
        return conv
    statistics = [net.add(constant(net.rng.uniform(0.3, 2.0, outputs).astype(np.float32))) for _ in range(4)]
    return net.add(nn.BatchNormOp(conv, *statistics, eps=0.01))


def linear(net: Drawn) -> SSAValue | None:
    value = net.value()
    outputs, inputs = net.integer(1, 5), shape(value)[-1]
    return net.add(nn.LinearOp(value, net.weight(outputs, inputs), net.constant(outputs)))


def activation(net: Drawn) -> SSAValue:
    value = net.value()
    kinds = [nn.ReluOp, lambda x: nn.ClampOp.of(x, 0.0, 6.0), lambda x: nn.ClampOp.of(x, -1.0), nn.SigmoidOp, nn.NegOp]
    return net.add(kinds[net.integer(0, len(kinds) - 1)](value))


def binary(net: Drawn) -> SSAValue | None:
    lhs, rhs = net.value(), net.value()
    if shape(lhs) != shape(rhs):
        return None
    return net.add([nn.AddOp, nn.SubOp, nn.MulOp, nn.MaximumOp][net.integer(0, 3)](lhs, rhs))


def residual(net: Drawn) -> SSAValue | None:
    """A convolution that keeps the shape, plus another value, perhaps activated."""
    value = net.observe(net.value())
    if len(shape(value)) != 4:
        return None
    channels = shape(value)[1]
    path = net.add(nn.Conv2dOp(value, net.weight(channels, channels, 3, 1), padding=(1, 0)))
    total = net.add(nn.AddOp(path, value) if net.integer(0, 1) else nn.AddOp(value, path))
    return total if net.integer(0, 1) else net.add(nn.ReluOp(total))


def pool(net: Drawn) -> SSAValue | None:
    value = net.value()
    if len(shape(value)) != 4 or min(shape(value)[2:]) < 3:
        return None
    kernel, stride = (net.integer(1, 3), net.integer(2, 3)), (net.integer(1, 2), net.integer(1, 2))
    if net.integer(0, 1):
        return net.add(nn.MaxPool2dOp(value, kernel, stride, (0, 1)))
    if net.integer(0, 1):
        return net.add(nn.AdaptiveAvgPool2dOp(value, (1, net.integer(1, 2))))
    return net.add(nn.AvgPool2dOp(value, kernel, stride, (0, 1), bool(net.integer(0, 1)), bool(net.integer(0, 1))))


def movement(net: Drawn) -> SSAValue:
    value = net.value()
    sizes = shape(value)
    kind = net.integer(0, 4)
    if kind == 0:
        return net.add(nn.PermuteOp(value, net.choose.draw(st.permutations(range(len(sizes))))))
    if kind == 1:
        return net.add(nn.ReshapeOp(value, net.choose.draw(st.permutations(sizes))))
    if kind == 2:
        axis = net.integer(0, len(sizes) - 1)
        return net.add(nn.SliceOp(value, axis, 0, net.integer(1, sizes[axis]), net.integer(1, 2)))
    if kind == 3:
        fill = [0.0, 0.75, -0.0][net.integer(0, 2)]
        return net.add(nn.PadOp(value, (0,) * (len(sizes) - 1) + (1,), (0,) * len(sizes), fill))
    return net.add(nn.CatOp([value, value], len(sizes) - 1))


STEPS: tuple[Step, ...] = (convolution, residual, linear, activation, activation, binary, binary, pool, movement)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(choose=st.data(), seed=st.integers(0, 2**31))
def test_every_pass_keeps_its_promise(choose: st.DataObject, seed: int):
    def build(add: Callable[[Operation], SSAValue], x: SSAValue) -> list[SSAValue]:
        net = Drawn(add, x, choose, seed)
        net.values.append(net.observe(x))
        for _ in range(net.integer(2, 9)):
            value = STEPS[net.integer(0, len(STEPS) - 1)](net)
            if value is not None:
                net.values.append(net.observe(value))
        return net.values[-min(3, len(net.values)) :]

    module = program(build, floats(2, 3, 5, 7))
    run_passes(module, PASSES, verify=True)
