# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The proof that int32 holds, the constants, and every refusal."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter.reference.integer_plan import activation_codes, channel_sums, integer_plan, matmul_plan

U8 = Encoding.make(0.02, 5, signed=False)
I8 = Encoding.make(0.03, -7)
OUT = Encoding.make(0.05, 11)


def weights(scales: Any, zero: Any = 0, axis: int | None = 0, **rest: Any) -> Encoding:
    return Encoding.make(scales, zero, qmin=-127, axis=axis, **rest)


def full(channels: int, inner: int, value: int = 127) -> np.ndarray[Any, Any]:
    return np.full((channels, inner), value, np.int8)


def test_constants_follow_the_formula():
    weight = np.array([[1, -2, 3], [-4, 5, -6]], np.int8)
    scales, bias = np.array([0.01, 0.004]), np.array([0.5, -0.3], np.float32)
    residual = Encoding.make(0.07, 3)
    plan = integer_plan(weight, U8, weights(scales), OUT, bias=bias, residual_encoding=residual, activation=(0.0, 6.0))
    assert plan.bound.tolist() == [6 * 250, 15 * 250]
    assert plan.start.tolist() == [0, 0] and plan.bias is not None
    assert plan.bias.tolist() == bias.tolist()
    assert plan.multiplier.tolist() == (0.02 * scales).astype(np.float32).tolist()
    assert plan.residual_multiplier == np.float32(0.07) and plan.inverse == np.float32(1 / 0.05)
    assert (plan.act_min, plan.act_max) == (11, 127), "6 / 0.05 + 11 is beyond 127"
    assert plan.start.dtype == np.int32 and plan.multiplier.dtype == np.float32


def test_float_result_keeps_the_activation_real():
    plan = integer_plan(full(2, 3), I8, weights([0.1, 0.2]), None, activation=(-1.0, 2.0))
    assert plan.output is None and plan.activation == (-1.0, 2.0)
    assert plan.multiplier.tolist() == (0.03 * np.array([0.1, 0.2])).astype(np.float32).tolist()


def test_a_bias_of_zeros_is_none():
    assert integer_plan(full(1, 3), I8, weights([0.1]), OUT).bias is None
    assert integer_plan(full(1, 3), I8, weights([0.1]), OUT, bias=np.zeros(1, np.float32)).bias is None


def test_negative_weights_and_range_count():
    reach = max(I8.qmax - I8.zero_point, I8.zero_point - I8.qmin)
    assert reach == 134
    assert integer_plan(full(1, 4, -127), I8, weights([0.1]), OUT).bound.tolist() == [4 * 127 * 134]
    narrow = Encoding.make(0.02, 10, signed=False, qmin=4, qmax=30)
    assert integer_plan(full(1, 4), narrow, weights([0.1]), OUT).bound.tolist() == [4 * 127 * 20]


def test_overflow_at_the_very_edge():
    kind = Encoding.make(1.0, 0, width=16, qmin=-32767)
    weight = np.array([[127] * 516 + [5]], np.int8)
    bound = (127 * 516 + 5) * 32767
    assert bound < 2**31 <= bound + 2 * 32767 + 2
    plan = integer_plan(weight, kind, weights([1.0]), OUT)
    assert plan.bound.tolist() == [bound]
    held, room = Encoding.make([1.0], 0, width=32, axis=0), 2**31 - 1 - bound
    fits = integer_plan(weight, kind, weights([1.0]), OUT, bias=np.array([-room], np.int32), bias_encoding=held)
    assert fits.start.tolist() == [-room] and fits.bound.tolist() == [2**31 - 1]
    beyond = integer_plan(weight, kind, weights([1.0]), OUT, bias=np.array([room + 1], np.int32), bias_encoding=held)
    assert beyond.start.tolist() == [0] and beyond.bias is not None and beyond.bias.tolist() == [room + 1]
    weight[0, -1] = 7
    with pytest.raises(QcompError, match=r"accumulator overflows: .acc. can reach 21475"):
        integer_plan(weight, kind, weights([1.0]), OUT)


def test_a_bias_may_be_of_any_size():
    plan = integer_plan(full(2, 9), U8, weights([0.01, 1.2e-10]), OUT, bias=np.array([0.1, 5e30], np.float32))
    assert plan.bias is not None and plan.bias.tolist() == np.array([0.1, 5e30], np.float32).tolist()


def test_quantized_bias_is_added_in_codes():
    scales = np.array([0.01, 0.004])
    held = (np.float32(0.02) * scales.astype(np.float32)).astype(np.float64)
    codes = np.array([1234, -77], np.int32)
    bias = Encoding.make(held, 0, width=32, axis=0)
    plan = integer_plan(full(2, 3), U8, weights(scales), OUT, bias=codes, bias_encoding=bias)
    assert plan.start.tolist() == [1234, -77] and plan.bias is None
    assert plan.bound.tolist() == [3 * 127 * 250 + 1234, 3 * 127 * 250 + 77]
    other = Encoding.make(held * 3, 0, width=32, axis=0)
    plan = integer_plan(full(2, 3), U8, weights(scales), OUT, bias=codes, bias_encoding=other)
    assert plan.bias is not None and plan.start.tolist() == [0, 0]
    assert plan.bias.tolist() == (codes.astype(np.float32) * (held * 3).astype(np.float32)).tolist()


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("zero point that is not 0", {"weight": weights([0.1, 0.2], [0, 1])}),
        ("not quantized per channel", {"weight": weights([0.1, 0.2, 0.3], axis=1)}),
        ("not quantized per channel", {"weight": Encoding.make([0.1] * 6, blocks=((0, 1), (1, 1)))}),
        ("input is not quantized per tensor", {"source": weights([0.1, 0.2, 0.3], axis=1)}),
        ("result is not quantized per tensor", {"output": weights([0.1, 0.2])}),
        ("residual is not quantized per tensor", {"residual_encoding": weights([0.1, 0.2])}),
        ("bias is not finite", {"bias": np.array([1, np.nan], np.float32)}),
        ("normal range", {"output": Encoding.make(1e38)}),
        ("normal range", {"weight": weights([1e-38, 0.1])}),
    ],
)
def test_refusals(reason: str, change: dict[str, Any]):
    arguments: dict[str, Any] = {"weight": weights([0.1, 0.2]), "source": U8, "output": OUT} | change
    kinds = [arguments.pop(name) for name in ("source", "weight", "output")]
    with pytest.raises(QcompError, match=reason) as caught:
        integer_plan(full(2, 3), *kinds, **arguments)
    assert caught.value.code == "not-integer"


def test_activation_codes():
    kind = Encoding.make(0.1, 20, signed=False)
    assert activation_codes(kind, None) == (0, 255)
    assert activation_codes(kind, (0.0, float("inf"))) == (20, 255)
    assert activation_codes(kind, (-1.0, 6.0)) == (10, 80)
    assert activation_codes(kind, (3.0, 1.0)) == (30, 30), "min > max gives max"
    assert activation_codes(Encoding.make(0.1, 3, qmin=-127), (-99.0, 99.0)) == (-127, 127)


def test_matmul_plan():
    lhs, rhs = Encoding.make(0.02, 5, signed=False), Encoding.make(0.03)
    plan = matmul_plan(77, lhs, rhs, OUT)
    assert plan.bound.tolist() == [77 * 250 * 128] and plan.bias is None
    plan = matmul_plan(77, lhs, Encoding.make(0.03, -100), OUT)
    assert plan.bound.tolist() == [77 * 250 * 227] and plan.rhs_zero == -100
    with pytest.raises(QcompError, match="per channel with a zero point"):
        matmul_plan(77, lhs, Encoding.make([0.03, 0.02], [0, 1], axis=1), OUT)
    with pytest.raises(QcompError, match="overflows"):
        matmul_plan(70_000, lhs, rhs, OUT)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_nothing_ever_overflows(data: st.DataObject):
    """The worst activations stay within int32, quantized bias included."""
    channels, inner = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 40))
    values = st.lists(st.integers(-127, 127), min_size=channels * inner, max_size=channels * inner)
    weight = np.array(data.draw(values), np.int8).reshape(channels, inner)
    scales = np.array([data.draw(st.floats(1e-6, 1.0)) for _ in range(channels)])
    bias = np.array([data.draw(st.integers(-(2**31), 2**31 - 1)) for _ in range(channels)], np.int32)
    low = data.draw(st.integers(-32768, 32766))
    high = data.draw(st.integers(low + 1, 32767))
    kind = Encoding.make(0.01, data.draw(st.integers(low, high)), width=16, qmin=low, qmax=high)
    held = Encoding.make(0.01 * scales, 0, width=32, axis=0)
    far = kind.qmax - kind.zero_point, kind.qmin - kind.zero_point
    worst = [
        (weight.astype(np.int64) * np.where((weight > 0) == up, *far)).sum(axis=1) + bias for up in (True, False)
    ]
    try:
        plan = integer_plan(weight, kind, weights(scales), OUT, bias=bias, bias_encoding=held)
    except QcompError as error:
        assert "overflows" in error.message
        return
    if plan.bias is not None:
        assert plan.bias.tolist() == (bias.astype(np.float32) * held.scales.astype(np.float32)).tolist()
        worst = [reached - bias for reached in worst]
    for reached in worst:
        assert (np.abs(reached) <= plan.bound).all() and (np.abs(reached) < 2**31).all()


def test_sums_of_channels_need_little_memory() -> None:
    """A band of channels is widened at a time; the last one may be short."""
    codes = np.random.default_rng(5).integers(-128, 128, (37, 3, 9001)).astype(np.int8)
    wide = codes.astype(np.int64).reshape(37, -1)
    tracemalloc.start()
    plain, absolute = channel_sums(codes), channel_sums(codes, absolute=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(plain, wide.sum(axis=1)) and np.array_equal(absolute, np.abs(wide).sum(axis=1))
    assert peak < 3 * codes.size
    assert channel_sums(np.zeros((2, 0), np.int8)).tolist() == [0, 0]
