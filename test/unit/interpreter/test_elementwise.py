# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops equal torch in bits where IEEE defines them; the others are within two units in the last place."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program, quantized, same_bits
from xdsl.dialects.builtin import FloatAttr, StringAttr, TensorType, bf16, f16, f32, f64, i1, i8, i32, i64

from qcomp.dialects import nn
from qcomp.dialects.element import numpy_dtype, ui8
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp
from qcomp.errors import QcompError
from qcomp.interpreter import interpret
from qcomp.interpreter.ops.elementwise import code_table
from qcomp.interpreter.reference import elementwise, transcendental, transcendental64

torch: Any = pytest.importorskip("torch")
Array = np.ndarray[Any, np.dtype[Any]]
SPECIALS = [
    0.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    1e-45,
    -1e-45,
    3.4e38,
    -3.4e38,
    3.0,
    -3.0,
    6.0,
    1e10,
    88.8,
    -104.0,
]
BOUNDS = [-math.inf, -2.0, -0.0, 0.0, 1.0, 2.0, 6.0, math.inf]


def sample(seed: int, size: int = 4000) -> Array:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(size).astype(np.float32) * np.float32(4)
    anything = rng.integers(0, 2**32, size, dtype=np.uint32).view(np.float32)
    return np.concatenate([noise, anything, np.array(SPECIALS, np.float32)])


def both(op: Any, *arrays: Array) -> tuple[Array, Array]:
    """The numpy and the torch evaluator's result of `op(add, *values)` on float32 arrays."""
    module = program(op, *(floats(*array.shape) for array in arrays))
    return interpret(module, *arrays)[0], interpret(module, *arrays, evaluator="torch")[0]


EXACT = {
    "relu": nn.ReluOp, "neg": nn.NegOp, "abs": nn.AbsOp, "rsqrt": nn.RsqrtOp,
    "hardswish": nn.HardswishOp, "hardsigmoid": nn.HardsigmoidOp,
    "leaky_relu": lambda x: nn.LeakyReluOp(x, negative_slope=FloatAttr(0.1, f32)),
}  # fmt: skip
CLOSE = {  # torch's sqrt comes from a vector library and is not IEEE's
    "sqrt": nn.SqrtOp, "sigmoid": nn.SigmoidOp, "tanh": nn.TanhOp, "silu": nn.SiluOp, "exp": nn.ExpOp, "erf": nn.ErfOp,
    "gelu": lambda x: nn.GeluOp(x, approximate=StringAttr("none")),
    "gelu_tanh": lambda x: nn.GeluOp(x, approximate=StringAttr("tanh")),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact_unary(name: str):
    for size in (4000, 3):
        ours, torchs = both(lambda add, x: add(EXACT[name](x)), sample(1, size))
        assert same_bits(ours, torchs)


@pytest.mark.parametrize("name", CLOSE)
def test_transcendental(name: str):
    x = np.concatenate([np.linspace(-30, 30, 20001).astype(np.float32), np.array(SPECIALS, np.float32)])
    if "gelu" in name:
        x = x[x < 1e38]  # torch's gelu overflows early and is NaN at inf
    ours, torchs = both(lambda add, value: add(CLOSE[name](value)), x)
    assert np.array_equal(np.isnan(ours), np.isnan(torchs)), "NaN at the same places, -inf included"
    finite = np.isfinite(torchs)
    assert np.array_equal(ours[~finite], torchs[~finite], equal_nan=True)
    # torch's own gelu cancels in float32 where the tail vanishes, its silu underflows.
    scale = np.maximum(np.abs(torchs), np.abs(x) if "gelu" in name else 0)[finite]
    assert (np.abs(ours[finite] - torchs[finite]) <= 4 * np.spacing(scale) + np.float32(1e-36)).all()


ULPS = {"exp": 0.95, "log": 0.9, "tanh": 1.1, "erf": 1.3, "sigmoid": 1.85, "silu": 2.7}


def ulps_off(found: Array, exact: Array) -> Array:
    """The error of float32 numbers in units in the last place of the exact ones; 0 where both overflow or are NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        same = (found == rounded) | (np.isnan(found) & np.isnan(exact))
        exponent = np.maximum(np.floor(np.log2(np.abs(exact))), -126)
        return np.where(same, 0, np.abs(found - exact) / np.exp2(exponent - 23))


@pytest.mark.parametrize("name", ULPS)
def test_error_in_units_in_the_last_place(name: str):
    """Over all exponents, denormals and specials, and densely where most numbers are."""
    everywhere = np.arange(0, 2**32, 40_961, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([everywhere, np.linspace(-20, 20, 100_001).astype(np.float32), np.array(SPECIALS, np.float32)])
    if name == "silu":  # a denormal sigmoid has few bits
        x = x[~(x < -85)]
    with np.errstate(all="ignore"):
        exact = getattr(transcendental64, name)(x.astype(np.float64))
        off = ulps_off(getattr(transcendental, name)(x), exact)
    worst = int(np.argmax(off))
    assert off[worst] <= ULPS[name], x[worst]


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_error_of_gelu(approximate: str):
    """Within 3 units, of x itself where x is below -1: torch's own loses all digits there."""
    x = np.concatenate([np.linspace(-20, 20, 100_001), np.geomspace(1e-38, 1e38, 1000)]).astype(np.float32)
    found, exact = transcendental.gelu(x, approximate), transcendental64.gelu(x.astype(np.float64), approximate)
    scale = np.where(x < -1, np.abs(x), np.abs(exact)).astype(np.float32)
    assert (np.abs(found - exact) <= 3 * np.spacing(scale)).all()


def test_exp_rounds_denormals_and_overflows_in_the_right_places():
    x = np.array([-87.34, -90.0, -100.1, -103.27, -103.98, -104.5, 88.72, 88.73, 1e30], np.float32)
    with np.errstate(over="ignore"):
        expected = np.exp(x.astype(np.float64)).astype(np.float32)
    assert same_bits(transcendental.exp(x), expected)


def test_transcendental_in_float64():
    x = np.linspace(-6.5, 6.5, 9001)
    expected = np.array([math.erf(value) for value in x.tolist()])
    np.testing.assert_allclose(transcendental64.erf(x), expected, rtol=4e-16, atol=1e-300)
    np.testing.assert_allclose(transcendental.erf(x), expected, rtol=4e-16, atol=1e-300)
    tiny = np.array([1e-300, -1e-45, 0.0, -0.0, math.inf, -math.inf, math.nan])
    assert same_bits(transcendental64.erf(tiny), np.array([math.erf(value) for value in tiny]))


def test_clamp_forms():
    """Enumerated over bounds with -0.0, infinities and min > max, on NaN, -0.0 and infinities."""
    x = np.array([*SPECIALS, -2.5, -2.0, -1.0, 0.5, 1.0, 1.5, 2.0, 5.0, 7.0] * 3, np.float32)
    for low, high in product(BOUNDS, BOUNDS):
        ours, torchs = both(lambda add, value: add(nn.ClampOp.of(value, low, high)), x)  # noqa: B023
        assert same_bits(ours, torchs), (low, high)


BINARY = [nn.AddOp, nn.SubOp, nn.MulOp, nn.DivOp, nn.MaximumOp, nn.MinimumOp]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
@pytest.mark.parametrize("activation", [None, nn.ReluAttr(), nn.ClampAttr.of(-1.0, 2.0)], ids=str)
def test_binary(op: Any, activation: Any):
    specials = np.array(SPECIALS, np.float32)
    pairs = np.array(list(product(specials, specials)), np.float32).T
    left, right = (np.concatenate([part, sample(seed, 500)]) for part, seed in zip(pairs, (2, 3), strict=True))
    ours, torchs = both(lambda add, a, b: add(op(a, b, activation=activation)), left, right)
    assert same_bits(ours, torchs)
    a, b = (np.ascontiguousarray(part) for part in (sample(4, 60)[: 4 * 1 * 7].reshape(4, 1, 7), sample(5)[:5, None]))
    ours, torchs = both(lambda add, x, y: add(op(x, y, activation=activation)), a, b)
    assert ours.shape == (4, 5, 7) and same_bits(ours, torchs)


@pytest.mark.parametrize("element", [f16, bf16], ids=str)
@pytest.mark.parametrize("name", ["relu", "hardswish", "leaky_relu", "add", "mul", "div", "add_relu"])
def test_narrow_floats(element: Any, name: str):
    dtype = torch.float16 if element == f16 else torch.bfloat16
    values = [torch.from_numpy(sample(seed, 600)[:1000]).to(dtype) for seed in (6, 7)]
    stored = [v.view(torch.uint16).numpy() if element == bf16 else v.numpy() for v in values]
    ops: dict[str, Any] = {
        "add": nn.AddOp, "mul": nn.MulOp, "div": nn.DivOp,
        "add_relu": lambda a, b: nn.AddOp(a, b, activation=nn.ReluAttr()),
    }  # fmt: skip
    module = program(
        lambda add, a, b: add(ops[name](a, b) if name in ops else EXACT[name](a)),
        floats(1000, element=element),
        floats(1000, element=element),
    )
    ours, torchs = interpret(module, *stored), interpret(module, *stored, evaluator="torch")
    if element == bf16:  # NaN payloads aside
        quiet = [np.where((a & 0x7FFF) > 0x7F80, 0x7FC0, a) for a in (ours[0], torchs[0])]
        assert np.array_equal(quiet[0], quiet[1])
    else:
        assert same_bits(ours[0], torchs[0])


CASTS = [f32, f16, bf16, f64, i8, ui8, i32, i64, i1]


@pytest.mark.parametrize("source", CASTS, ids=str)
@pytest.mark.parametrize("target", CASTS, ids=str)
def test_cast_equals_torch_where_c_defines_it(source: Any, target: Any):
    rng = np.random.default_rng(11)
    values = np.concatenate([rng.uniform(0, 127, 500), [0.0, 0.5, 1.0, 2.5, 126.99, 127.0]])
    if source not in (ui8, i1) and target != ui8:
        values = np.concatenate([values, -values])
    if target in (f32, f16, bf16, f64) and source in (f32, f64):
        values = np.concatenate([values, sample(12, 300)])
    if source in (i32, i64):
        values = np.concatenate([values, [2**31 - 1, -(2**31), 2**24 + 1, 300, -129]])
    if source == bf16:
        stored = torch.from_numpy(values).to(torch.bfloat16).view(torch.uint16).numpy()
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            stored = values.astype(numpy_dtype(source))
    module = program(
        lambda add, x: add(nn.CastOp(x, TensorType(target, stored.shape))), TensorType(source, stored.shape)
    )
    ours, torchs = interpret(module, stored)[0], interpret(module, stored, evaluator="torch")[0]
    if target == bf16:
        ours, torchs = (np.where((a & 0x7FFF) > 0x7F80, 0x7FC0, a) for a in (ours, torchs))
    assert same_bits(ours, torchs)


def test_cast_saturates_where_c_does_not_define_it():
    x = np.array([math.nan, math.inf, -math.inf, 300.7, -300.7, 127.9, -128.9, 2.0**31, 2.0**63], np.float32)
    assert elementwise.cast_to(x, np.dtype(np.int8)).tolist() == [0, 127, -128, 127, -128, 127, -128, 127, 127]
    assert elementwise.cast_to(x, np.dtype(np.int64)).tolist() == [
        0, 2**63 - 1, -(2**63), 300, -300, 127, -128, 2**31, 2**63 - 1,
    ]  # fmt: skip
    assert elementwise.cast_to(x[:3], np.dtype(np.bool_)).tolist() == [True, True, True]


def test_integers():
    a, b = np.array([2**31 - 1, -5, 7], np.int32), np.array([1, 3, -7], np.int32)
    kind = TensorType(i32, [3])
    module = program(
        lambda add, x, y: [
            add(op)
            for op in (nn.AddOp(x, y), nn.MulOp(x, y), nn.MaximumOp(x, y), nn.ReluOp(x), nn.ClampOp.of(x, -3, 6))
        ],
        kind,
        kind,
    )
    ours, torchs = interpret(module, a, b), interpret(module, a, b, evaluator="torch")
    assert [array.tolist() for array in ours[:4]] == [array.tolist() for array in torchs[:4]]
    assert ours[4].dtype == np.int32 and ours[4].tolist() == [6, -3, 6]
    with pytest.raises(QcompError, match=r"clamp of integers to 0\.5"):
        elementwise.clamp(a, 0.5, 2.0)
    with pytest.raises(QcompError, match="division of integers"):
        elementwise.divide(a, b)


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_quantized_unary_is_a_table(name: str):
    """On codes an op means quantize(f(dequantize)): by table for 8 bits, by the rule itself for 16."""
    make: Any = {**EXACT, **CLOSE}[name]
    target = Encoding.make(0.043, 100, signed=False)
    sources = (
        Encoding.make(0.031, -9),
        Encoding.make(0.027, 77, signed=False, qmin=5),
        Encoding.make(4e-4, 99, width=16),
    )
    for source in sources:
        codes = np.arange(source.qmin, source.qmax + 1).astype(source.dtype)

        def build(add: Any, x: Any) -> Any:
            op = make(x)
            fused = type(op)(x, quantized(target, codes.size), **dict(op.properties.items()))  # noqa: B023
            return add(fused), add(QuantizeOp(add(make(add(DequantizeOp(x)))), target))

        module = program(build, quantized(source, codes.size))
        fused, plain = interpret(module, codes)
        assert same_bits(fused, plain)
        op = next(op for op in module.walk() if isinstance(op, nn.UnaryOp))
        table = code_table(op)
        assert (table is None) == (source.width == 16)
        if table is not None:
            assert table.shape == (256,)
            assert same_bits(table[codes.astype(int) - (-128 if source.signed else 0)], plain)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
@pytest.mark.parametrize("activation", [None, nn.ReluAttr(), nn.ClampAttr.of(0.0, 6.0)], ids=str)
def test_quantized_binary(op: Any, activation: Any):
    left, right = Encoding.make(0.031, -9), Encoding.make(0.05, 77, signed=False)
    target = Encoding.make(0.07, -20, qmin=-127)
    a, b = np.arange(-128, 128).astype(np.int8)[:, None], np.arange(256).astype(np.uint8)[None]

    def build(add: Any, x: Any, y: Any) -> Any:
        fused = add(op(x, y, quantized(target, 256, 256), activation=activation))
        plain = add(op(add(DequantizeOp(x)), add(DequantizeOp(y)), activation=activation))
        return fused, add(QuantizeOp(plain, target))

    module = program(build, quantized(left, 256, 1), quantized(right, 1, 256))
    fused, plain = interpret(module, a, b)
    assert same_bits(fused, plain)
    assert same_bits(plain, interpret(module, a, b, evaluator="torch")[1])


def test_mixed_operands():
    """A quantized operand beside a float one, and a float result."""
    kind = Encoding.make(0.031, -9)
    codes, real = np.arange(-128, 128).astype(np.int8), np.linspace(-3, 3, 256).astype(np.float32)

    def build(add: Any, x: Any) -> Any:
        other = add(constant(real))
        return add(nn.MulOp(x, other, floats(256))), add(nn.MulOp(add(DequantizeOp(x)), other))

    fused, plain = interpret(program(build, quantized(kind, 256)), codes)
    assert same_bits(fused, plain)
