# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer contractions against a plain integer loop, and against the float graph by the code rule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program, quantized, random_codes, same_bits
from xdsl.dialects.builtin import bf16

from qcomp.dialects import nn
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp
from qcomp.errors import QcompError
from qcomp.interpreter import interpret
from qcomp.interpreter.reference.contraction import integer_linear
from qcomp.interpreter.reference.integer_plan import IntegerPlan, integer_plan

Array = np.ndarray[Any, np.dtype[Any]]
U8 = Encoding.make(0.021, 114, signed=False)
I8 = Encoding.make(0.034, -7)
RESIDUAL = Encoding.make(0.043, 19)
OUT = Encoding.make(0.055, 11)
OUT_U8 = Encoding.make(0.047, 98, signed=False)

# op, input shape, weight shape, attributes
CONVOLUTIONS: list[tuple[type[nn.ConvolutionOp], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (nn.Conv1dOp, (2, 3, 11), (5, 3, 4), {"stride": (2,), "padding": (1,)}),
    (nn.Conv2dOp, (2, 3, 7, 9), (5, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0)}),
    (nn.Conv2dOp, (1, 6, 8, 5), (4, 3, 3, 3), {"groups": 2, "padding": (2, 1), "dilation": (2, 1)}),
    (nn.Conv2dOp, (2, 4, 6, 7), (4, 1, 3, 3), {"groups": 4, "padding": (1, 1), "stride": (2, 2)}),
    (nn.Conv2dOp, (1, 3, 6, 5), (6, 1, 2, 3), {"groups": 3, "padding": (0, 1, 1, 2), "dilation": (1, 2)}),
    (nn.Conv2dOp, (1, 5, 6, 7), (3, 5, 4, 2), {"padding": (1, 0, 2, 1)}),
    (nn.Conv2dOp, (3, 7, 4, 5), (6, 7, 1, 1), {}),
    (nn.Conv2dOp, (2, 7, 5, 6), (4, 7, 1, 1), {"stride": (2, 3)}),
    (nn.Conv3dOp, (1, 2, 4, 5, 6), (3, 2, 2, 3, 2), {"stride": (1, 2, 1), "padding": (1, 0, 1), "dilation": (2, 1, 3)}),
]
IDS = [f"{op.name}-{index}" for index, (op, *_) in enumerate(CONVOLUTIONS)]


def weight_encoding(rng: np.random.Generator, channels: int) -> Encoding:
    return Encoding.make(rng.uniform(0.002, 0.02, channels).astype(np.float32).astype(np.float64), 0, qmin=-127, axis=0)


def plain_convolution(x: Array, w: Array, attributes: dict[str, Any]) -> Array:
    """Cross-correlation by its definition, in Python's integers or floats."""
    rank = x.ndim - 2
    stride = attributes.get("stride", (1,) * rank)
    dilation = attributes.get("dilation", (1,) * rank)
    pads = attributes.get("padding", (0,) * rank)
    begins, ends = pads[:rank], pads[rank:] or pads
    x = np.pad(x, [(0, 0), (0, 0), *zip(begins, ends, strict=True)])
    groups = attributes.get("groups", 1)
    out = [(x.shape[i + 2] - dilation[i] * (w.shape[i + 2] - 1) - 1) // stride[i] + 1 for i in range(rank)]
    result = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    per_group, inner = w.shape[0] // groups, w.shape[1]
    for o, *place in product(range(w.shape[0]), *(range(size) for size in out)):
        first = o // per_group * inner
        window = tuple(
            slice(p * s, p * s + d * (k - 1) + 1, d)
            for p, s, d, k in zip(place, stride, dilation, w.shape[2:], strict=True)
        )
        patch = x[(slice(None), slice(first, first + inner), *window)]
        result[(slice(None), o, *place)] = (patch * w[o]).reshape(x.shape[0], -1).sum(axis=1)
    return result


def plain_finish(acc: Array, plan: IntegerPlan, residual: Array | None, axis: int) -> Array:
    """The documented formula, element by element in int32 and float32."""
    moved = np.moveaxis(acc, axis, -1)
    assert (np.abs(moved) <= plan.bound).all()
    held = moved + plan.start
    assert (np.abs(held) < 2**31).all()
    real = held.astype(np.int32).astype(np.float32) * plan.multiplier
    if plan.bias is not None:
        real = real + plan.bias
    if residual is not None:
        assert plan.residual is not None and plan.residual_multiplier is not None
        other = (np.moveaxis(residual, axis, -1).astype(np.int64) - plan.residual.zero_point).astype(np.float32)
        real = real + other * plan.residual_multiplier
    assert real.dtype == np.float32 and plan.output is not None and plan.inverse is not None
    codes = np.rint(real * plan.inverse).astype(np.int64) + plan.output.zero_point
    return np.moveaxis(np.clip(codes, plan.act_min, plan.act_max), -1, axis).astype(plan.output.dtype)


ACTIVATIONS: list[Any] = [None, nn.ReluAttr(), nn.ClampAttr.of(0.0, 6.0), nn.ClampAttr.of(-1.25, 2.5)]


def variants() -> Iterator[Any]:
    """Every convolution with another mix of encodings, bias, residual and activation."""
    for index, case in enumerate(CONVOLUTIONS):
        for activation in range(4):
            number = index + activation
            yield pytest.param(
                case, (U8, I8)[number % 2], (OUT, OUT_U8)[index % 2], bool(number % 3), bool(activation % 2),
                ACTIVATIONS[activation], id=f"{IDS[index]}-{activation}",
            )  # fmt: skip


@pytest.mark.parametrize(("case", "source", "output", "with_bias", "with_residual", "activation"), list(variants()))
def test_convolution(
    case: Any, source: Encoding, output: Encoding, with_bias: bool, with_residual: bool, activation: Any
):
    op, shape, weight_shape, attributes = case
    rng = np.random.default_rng(sum(shape) + len(weight_shape))
    x, kind = random_codes(rng, source, *shape), weight_encoding(rng, weight_shape[0])
    w = random_codes(rng, kind, *weight_shape)
    bias = rng.normal(0, 3, weight_shape[0]).astype(np.float32) if with_bias else None
    acc = plain_convolution(x.astype(np.int64) - source.zero_point, w.astype(np.int64), attributes)
    residual = random_codes(rng, RESIDUAL, *acc.shape) if with_residual else None

    def build(add: Any, value: Any, other: Any) -> Any:
        operands = (value, add(constant(w, kind)), None if bias is None else add(constant(bias)))
        return add(
            op(
                *operands, **attributes, residual=other if with_residual else None, activation=activation,
                result_type=quantized(output, *acc.shape),
            )
        )  # fmt: skip

    module = program(build, quantized(source, *shape), quantized(RESIDUAL, *acc.shape))
    (codes,) = interpret(module, x, residual if residual is not None else random_codes(rng, RESIDUAL, *acc.shape))
    plan = integer_plan(
        w, source, kind, output, bias=bias, residual_encoding=RESIDUAL if with_residual else None,
        activation=None if activation is None else activation.bounds,
    )  # fmt: skip
    assert same_bits(codes, plain_finish(acc, plan, residual, 1))


def fused_and_plain(case: Any, index: int, activation: Any, with_residual: bool) -> tuple[Array, Array]:
    """Codes of the fused integer op, and of quantize(op(dequantize)) in float, on the same codes."""
    op, shape, weight_shape, attributes = case
    rng = np.random.default_rng(index)
    shape = (4, shape[1], *(size + 9 for size in shape[2:]))
    source, kind = (U8, I8)[index % 2], weight_encoding(rng, weight_shape[0])
    output = Encoding.make(1.2 * np.sqrt(np.prod(weight_shape[1:])) * 6.4 / 255, -5)
    w, bias = random_codes(rng, kind, *weight_shape), rng.normal(0, 3, weight_shape[0]).astype(np.float32)
    size = plain_convolution(np.zeros(shape), w, attributes).shape

    def build(add: Any, value: Any, other: Any) -> Any:
        weight, offset = add(constant(w, kind)), add(constant(bias))
        real = [add(DequantizeOp(v)) for v in (value, weight, other)]
        rest = {**attributes, "activation": activation}
        plain = add(op(real[0], real[1], offset, residual=real[2] if with_residual else None, **rest))
        rest |= {"residual": other if with_residual else None, "result_type": quantized(output, *size)}
        return add(op(value, weight, offset, **rest)), add(QuantizeOp(plain, output))

    module = program(build, quantized(source, *shape), quantized(RESIDUAL, *size))
    ours, expected = interpret(module, random_codes(rng, source, *shape), random_codes(rng, RESIDUAL, *size))
    return ours.astype(np.int64), expected.astype(np.int64)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("with_residual", [False, True])
def test_code_rule(activation: Any, with_residual: bool):
    """Fed the same codes, at most 1 code from quantize(op(dequantize)), in at most n/1000 elements."""
    total = differ = 0
    for index, case in enumerate(CONVOLUTIONS):
        ours, expected = fused_and_plain(case, index, activation, with_residual)
        distance = np.abs(ours - expected)
        assert distance.max() <= 1
        assert activation is not None or len(np.unique(ours)) > 100
        total, differ = total + distance.size, differ + int(distance.sum())
    assert total > 20_000 and differ <= total // 1000, f"{differ} of {total}"


def test_ties_round_to_even():
    """With scales that are powers of two, every second accumulator ends half-way between two codes."""
    source, kind, out = Encoding.make(0.25, 3), Encoding.make([0.5], qmin=-127, axis=0), Encoding.make(0.25, 5)
    codes = np.arange(-128, 128).astype(np.int8)[:, None]
    w = np.ones((1, 1), np.int8)
    for bias in (None, np.array([0.125], np.float32)):
        plan = integer_plan(w, source, kind, out, bias=bias)
        halves = (codes.astype(np.int64) - 3) + (0 if bias is None else 1)
        expected = np.clip([[round(half / 2) + 5] for half in halves[:, 0].tolist()], -128, 127)
        assert integer_linear(codes, w, plan).tolist() == expected.tolist()


def test_bias_to_the_last_bit():
    """A float result is float32(acc) * multiplier + bias, product and sum each rounded."""
    rng = np.random.default_rng(12)
    kind = weight_encoding(rng, 5)
    x, w = random_codes(rng, I8, 40, 2), random_codes(rng, kind, 5, 2)
    bias = rng.normal(0, 0.01, 5).astype(np.float32)
    plan = integer_plan(w, I8, kind, None, bias=bias)
    acc = (x.astype(np.int64) - I8.zero_point) @ w.T.astype(np.int64)
    product = acc.astype(np.float32) * plan.multiplier
    assert not np.array_equal(product + bias, (acc * plan.multiplier.astype(np.float64) + bias).astype(np.float32))
    assert same_bits(integer_linear(x, w, plan), product + bias)


def test_linear_and_matmul():
    rng = np.random.default_rng(8)
    kind = weight_encoding(rng, 6)
    x, w = random_codes(rng, U8, 2, 3, 77), random_codes(rng, kind, 6, 77)
    bias = rng.normal(0, 9, 6).astype(np.float32)
    residual = random_codes(rng, RESIDUAL, 2, 3, 6)

    def build(add: Any, value: Any, other: Any) -> Any:
        operands = (value, add(constant(w, kind)), add(constant(bias)))
        return add(nn.LinearOp(*operands, residual=other, result_type=quantized(OUT, 2, 3, 6)))

    (codes,) = interpret(program(build, quantized(U8, 2, 3, 77), quantized(RESIDUAL, 2, 3, 6)), x, residual)
    plan = integer_plan(w, U8, kind, OUT, bias=bias, residual_encoding=RESIDUAL)
    acc = (x.astype(np.int64) - U8.zero_point) @ w.T.astype(np.int64)
    assert same_bits(codes, plain_finish(acc, plan, residual, -1))

    lhs, rhs, symmetric = random_codes(rng, U8, 3, 1, 4, 9), random_codes(rng, I8, 5, 9, 2), Encoding.make(0.013)
    module = program(
        lambda add, a, b: add(nn.MatmulOp(a, b, quantized(OUT, 3, 5, 4, 2))),
        quantized(U8, 3, 1, 4, 9),
        quantized(symmetric, 5, 9, 2),
    )
    (codes,) = interpret(module, lhs, rhs)
    acc = (lhs.astype(np.int64) - U8.zero_point) @ rhs.astype(np.int64)
    real = acc.astype(np.float32) * np.float32(U8.scale * symmetric.scale) * np.float32(1 / OUT.scale)
    expected = np.clip(np.rint(real) + OUT.zero_point, -128, 127)
    assert np.array_equal(codes, expected)


def test_wide_accumulators_stay_exact():
    """Beyond 2**24 a float32 product would round: odd sums near 2**30."""
    kind = Encoding.make(1.0, 0, width=16, qmin=-32767)
    weights = Encoding.make(np.array([1.0, 0.5]), 0, qmin=-127, axis=0)
    x = np.full((3, 256), 32767, np.int16)
    x[:, 0] -= np.arange(3, dtype=np.int16)
    w = np.full((2, 256), 127, np.int8)
    w[:, 0] = 1
    plan = integer_plan(w, kind, weights, None)
    acc = x.astype(np.int64) @ w.T.astype(np.int64)
    assert acc.max() > 2**29 and len(np.unique(acc)) == 3
    expected = acc.astype(np.int32).astype(np.float32) * plan.multiplier
    assert same_bits(integer_linear(x, w, plan), expected)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=IDS)
def test_float_convolution_rounds_once(case: Any):
    op, shape, weight_shape, attributes = case
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(size).astype(np.float32) for size in (shape, weight_shape))
    bias = rng.standard_normal(weight_shape[0]).astype(np.float32)
    module = program(
        lambda add, value: add(op(value, add(constant(w)), add(constant(bias)), **attributes)), floats(*shape)
    )
    (result,) = interpret(module, x)
    view = (1, -1, *(1 for _ in shape[2:]))
    expected = plain_convolution(x.astype(np.float64), w.astype(np.float64), attributes) + bias.reshape(view)
    np.testing.assert_allclose(result, expected, rtol=2.0**-23)


def test_fused_activation_and_residual_equal_the_parts():
    rng = np.random.default_rng(7)
    x, w, r = (rng.standard_normal(s).astype(np.float32) for s in ((1, 3, 5, 6), (4, 3, 2, 2), (1, 4, 4, 5)))

    def build(add: Any, value: Any, other: Any) -> Any:
        weight = add(constant(w))
        fused = add(nn.Conv2dOp(value, weight, residual=other, activation=nn.ClampAttr.of(0, 6)))
        plain = add(nn.ClampOp.of(add(nn.AddOp(add(nn.Conv2dOp(value, weight)), other)), 0, 6))
        return fused, plain

    fused, plain = interpret(program(build, floats(1, 3, 5, 6), floats(1, 4, 4, 5)), x, r)
    assert same_bits(fused, plain)


def test_float_results_of_integer_contractions():
    """No encoding on the result: float32 t, in bf16 rounded once more; a float residual is added as it is."""
    rng = np.random.default_rng(9)
    kind = weight_encoding(rng, 4)
    w = random_codes(rng, kind, 4, 5)
    x, r = random_codes(rng, I8, 3, 5), rng.standard_normal((3, 4)).astype(np.float32)

    def build(add: Any, value: Any, other: Any) -> Any:
        weight = add(constant(w, kind))
        fused = add(nn.LinearOp(value, weight, residual=other, activation=nn.ReluAttr(), result_type=floats(3, 4)))
        return fused, add(nn.LinearOp(value, weight, result_type=floats(3, 4, element=bf16)))

    fused, narrow = interpret(program(build, quantized(I8, 3, 5), floats(3, 4)), x, r)
    acc = (x.astype(np.int64) - I8.zero_point) @ w.T.astype(np.int64)
    real = acc.astype(np.float32) * integer_plan(w, I8, kind, None).multiplier
    assert same_bits(fused, np.maximum(real + r, np.float32(0)))
    assert narrow.dtype == np.uint16


def test_weight_only_quantization_computes_in_float():
    rng = np.random.default_rng(10)
    kind = Encoding.make(rng.uniform(0.01, 0.1, (4, 2)), rng.integers(-5, 5, (4, 2)), blocks=((0, 1), (1, 3)))
    w, x = random_codes(rng, kind, 4, 6), rng.standard_normal((2, 6)).astype(np.float32)

    def build(add: Any, value: Any) -> Any:
        weight = add(constant(w, kind))
        return add(nn.LinearOp(value, weight)), add(nn.LinearOp(value, add(DequantizeOp(weight))))

    fused, plain = interpret(program(build, floats(2, 6)), x)
    assert same_bits(fused, plain)


def test_empty_batch():
    rng = np.random.default_rng(11)
    for op, shape, weight_shape, attributes in CONVOLUTIONS:
        kind = weight_encoding(rng, weight_shape[0])
        w = random_codes(rng, kind, *weight_shape)
        size = (0, *plain_convolution(np.zeros((1, *shape[1:])), w, attributes).shape[1:])
        module = program(
            lambda add, x: add(op(x, add(constant(w, kind)), **attributes, result_type=quantized(OUT, *size))),  # noqa: B023
            quantized(U8, 0, *shape[1:]),
        )
        assert interpret(module, np.zeros((0, *shape[1:]), np.uint8))[0].shape == size


def test_refusal_names_the_op():
    kind = Encoding.make([0.1, 0.2], [0, 3], axis=0)
    module = program(
        lambda add, x: add(nn.LinearOp(x, add(constant(np.ones((2, 3), np.int8), kind)), result_type=floats(4, 2))),
        quantized(I8, 4, 3),
    )
    with pytest.raises(QcompError, match=r"nn\.linear: weight has a zero point"):
        interpret(module, np.zeros((4, 3), np.int8))
