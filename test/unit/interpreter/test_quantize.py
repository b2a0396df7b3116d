# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quantize and dequantize equal torch's ops in bits, at ties and beyond the range too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tensor_programs import same_bits
from xdsl.dialects.builtin import bf16, f16, f32, f64

from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import narrow, widen
from qcomp.interpreter.reference.quantize import code_of, dequantize, quantize, reciprocal, requantize

torch: Any = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")
decomposed = torch.ops.quantized_decomposed

SCALES = (0.02, 0.0078431377, 0.1, 0.05, 0.3, 1.0, 3.7e-5, 1.1920929e-07, 611.25, 2.5e-39, 1e30)
RANGES = {
    "int8": ((-128, 127), (-127, 127), (-8, 7)),
    "uint8": ((0, 255), (3, 250), (0, 15)),
    "int16": ((-32768, 32767), (-32767, 32767)),
    "uint16": ((0, 65535),),
}
CASES = [(dtype, low, high) for dtype, ranges in RANGES.items() for low, high in ranges]


def adversarial(scale: float, low: int, high: int) -> np.ndarray[Any, Any]:
    """Ties of the whole range, their neighbours, far values and specials."""
    steps = np.unique(np.linspace(low - 300, high + 300, 4000).round())
    with np.errstate(over="ignore"):
        ties = ((steps + 0.5) * scale).astype(np.float32)
        near = np.concatenate([np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))])
    rng = np.random.default_rng(int(high))
    noise = rng.standard_normal(2000).astype(np.float32) * np.float32(min(scale * (high - low), 1e30))
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e10, -1e10, 2.0**31, -(2.0**31), 1e-45, 1.5, 2.5]
    return np.concatenate([ties, near, noise, np.array(special, np.float32)])


def clamped(codes: Any, low: int, high: int) -> np.ndarray[Any, Any]:
    """torch's code for NaN is 0 even where 0 is outside the range."""
    return np.clip(codes.numpy(), low, high)


def encoding(dtype: str, low: int, high: int, scale: Any, zero: Any, **rest: Any) -> Encoding:
    width = 16 if "16" in dtype else 8
    held = np.asarray(scale, np.float32).astype(np.float64)
    return Encoding.make(held, zero, signed=dtype[0] == "i", width=width, qmin=low, qmax=high, **rest)


@pytest.mark.parametrize(("dtype", "low", "high"), CASES)
def test_per_tensor_equals_torch(dtype: str, low: int, high: int):
    for index, scale in enumerate(SCALES):
        zero = (low, high, 3, (low + high) // 2 + 1)[index % 4]
        kind = encoding(dtype, low, high, scale, zero)
        x = adversarial(kind.scale, low, high)
        arguments = (kind.scale, zero, low, high, getattr(torch, dtype))
        codes = decomposed.quantize_per_tensor(torch.from_numpy(x), *arguments)
        expected = clamped(codes, low, high)
        assert same_bits(quantize(x, kind), expected), scale
        back = decomposed.dequantize_per_tensor(torch.from_numpy(expected), *arguments)
        assert same_bits(dequantize(expected, kind), back.numpy())


@pytest.mark.parametrize(("dtype", "low", "high"), CASES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_channel_equals_torch(dtype: str, low: int, high: int, axis: int):
    scales = np.array(SCALES[:9], np.float32)
    zeros = np.linspace(max(low, -100), min(high, 100), 9).round().astype(np.int64)
    kind = encoding(dtype, low, high, scales, zeros, axis=axis)
    x = np.stack([np.resize(adversarial(float(scale), low, high), (7, 500)) for scale in scales])
    x = np.ascontiguousarray(np.moveaxis(x, 0, axis))
    arguments = (torch.from_numpy(scales), torch.from_numpy(zeros), axis, low, high, getattr(torch, dtype))
    codes = decomposed.quantize_per_channel(torch.from_numpy(x), *arguments)
    expected = clamped(codes, low, high)
    assert same_bits(quantize(x, kind), expected)
    if dtype != "uint16":  # torch has no uint16 arithmetic
        back = decomposed.dequantize_per_channel(torch.from_numpy(expected), *arguments)
        assert same_bits(dequantize(expected, kind), back.numpy())


def test_blocks_and_float32_recipe_equal_torchao():
    affine = pytest.importorskip("torchao.quantization.quant_primitives")
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, 32, 5)).astype(np.float32)
    scales = rng.uniform(0.003, 0.03, (6, 4, 1)).astype(np.float32)
    zeros = rng.integers(-5, 9, (6, 4, 1))
    for block, blocks, shape in (((1, 8, 5), ((0, 1), (1, 8)), (6, 4, 1)), ((6, 32, 5), (), ())):
        s, z = scales[tuple(slice(n) for n in shape)].reshape(shape or (-1,))[: None if shape else 1], zeros
        s, z = s.reshape(shape), z.reshape(-1)[: s.size].reshape(shape)
        kind = encoding("int8", -127, 127, s, z, blocks=blocks)
        values = (torch.from_numpy(np.array(s)), torch.from_numpy(np.array(z)))
        codes = affine.quantize_affine(torch.from_numpy(x), block, *values, torch.int8, -127, 127)
        assert same_bits(quantize(x, kind, f32), codes.numpy())
        back = affine.dequantize_affine(codes, block, *values, torch.int8, -127, 127)
        assert same_bits(dequantize(codes.numpy(), kind), back.numpy())


@pytest.mark.parametrize("element", [f16, bf16])
def test_narrow_floats_equal_torch(element: Any):
    dtype = torch.float16 if element == f16 else torch.bfloat16
    rng = np.random.default_rng(4)
    x = torch.from_numpy(rng.standard_normal((5, 400)).astype(np.float32)).to(dtype)
    stored = x.view(torch.uint16).numpy() if element == bf16 else x.numpy()
    kind = encoding("int8", -128, 127, 0.0123, 7, expressed=element)
    arguments = (kind.scale, 7, -128, 127, torch.int8)
    codes = decomposed.quantize_per_tensor(x, *arguments)
    assert same_bits(quantize(stored, kind), codes.numpy())
    everything = torch.arange(-128, 128).to(torch.int8)
    back = decomposed.dequantize_per_tensor(everything, *arguments, out_dtype=dtype)
    back = back.view(torch.uint16).numpy() if element == bf16 else back.numpy()
    assert same_bits(dequantize(everything.numpy(), kind), back)
    scales = np.array([0.0123, 0.2, 1.7, 0.011, 0.9], np.float32)
    kind = encoding("int8", -128, 127, scales, [1, 0, -5, 7, 100], axis=0, expressed=element)
    back = decomposed.dequantize_per_channel(
        codes, torch.from_numpy(scales), torch.from_numpy(kind.zero_points.copy()), 0, -128, 127, torch.int8,
        out_dtype=dtype,
    )  # fmt: skip
    back = back.view(torch.uint16).numpy() if element == bf16 else back.numpy()
    assert same_bits(dequantize(codes.numpy(), kind), back)


def test_widen_and_narrow_equal_torch():
    bits = np.arange(2**16, dtype=np.uint16)
    reference = torch.from_numpy(bits).view(torch.bfloat16)
    assert same_bits(widen(bits, bf16), reference.float().numpy())
    floats = np.random.default_rng(5).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    expected = torch.from_numpy(floats).to(torch.bfloat16).view(torch.uint16).numpy()
    ours = narrow(floats, bf16)
    assert np.array_equal(ours[~np.isnan(floats)], expected[~np.isnan(floats)])
    assert np.isnan(widen(ours, bf16)[np.isnan(floats)]).all()
    assert same_bits(narrow(floats, f16), torch.from_numpy(floats).to(torch.float16).numpy())


def test_documented_example():
    x = np.array([3.082, -0.587, -4.358, 1.137, -2.169, -2.797, 0.807, 1.676], np.float32)
    kind = Encoding.make(0.02, 3)
    codes = quantize(x, kind)
    assert codes.tolist() == [127, -26, -128, 60, -105, -128, 43, 87]
    expected = np.array([2.480, -0.580, -2.620, 1.140, -2.160, -2.620, 0.800, 1.680], np.float32)
    np.testing.assert_allclose(dequantize(codes, kind), expected, rtol=1e-6)


def test_reciprocal_not_division():
    x = np.array([-2.450000047683716, -2.3499999046325684, -2.2100000381469727, -1.690000057220459], np.float32)
    kind = Encoding.make(0.02)
    assert quantize(x, kind).tolist() == [-122, -117, -110, -84]
    assert np.rint(x / np.float32(0.02)).tolist() == [-123, -118, -111, -85]


def test_recipes():
    rng = np.random.default_rng(1)
    exact = rng.uniform(1e-3, 1, 2000).astype(np.float32)
    assert all(reciprocal(Encoding.make(float(s)), f64) == reciprocal(Encoding.make(float(s)), f32) for s in exact)
    kinds = [Encoding.make(float(scale)) for scale in rng.uniform(1e-3, 1, 2000)]
    differ = [kind for kind in kinds if reciprocal(kind, f64) != reciprocal(kind, f32)]
    assert differ, "scales that are no float32 tell the recipes apart"
    for kind in differ[:20]:
        x = adversarial(kind.scale, -128, 127)
        literal = decomposed.quantize_per_tensor(torch.from_numpy(x), kind.scale, 0, -128, 127, torch.int8)
        assert same_bits(quantize(x, kind), literal.numpy())
        spread = torch.tensor([kind.scale], dtype=torch.float32), torch.zeros(1, dtype=torch.int64)
        tensor = decomposed.quantize_per_channel(torch.from_numpy(x[None]), *spread, 0, -128, 127, torch.int8)
        assert same_bits(quantize(x, kind, f32), tensor.numpy()[0])


def test_ties_and_specials():
    kind = Encoding.make(1.0)
    assert quantize(np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32), kind).tolist() == [0, 2, 2, 0, -2]
    specials = np.array([np.inf, -np.inf, np.nan], np.float32)
    assert quantize(specials, Encoding.make(1.0, 9)).tolist() == [127, -128, 0]
    assert quantize(specials, Encoding.make(1.0, 9, signed=False, qmin=3, qmax=250)).tolist() == [250, 3, 3]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
def test_scalars_and_nothing(shape: tuple[int, ...]):
    kind = Encoding.make(0.5, 3)
    for value in (1.0, np.nan):
        codes = quantize(np.full(shape, value, np.float32), kind)
        assert codes.shape == shape and (codes == (5 if value == 1.0 else 0)).all()
        assert np.shape(dequantize(codes, kind)) == shape


def test_32_bit_codes_saturate():
    kind = Encoding.make(1.0, 0, width=32)
    x = np.array([3e9, -3e9, 2147483520.0, 16777217.0, np.nan], np.float32)
    assert quantize(x, kind).tolist() == [2**31 - 1, -(2**31), 2147483520, 16777216, 0]


def test_float64_is_refused():
    with pytest.raises(QcompError, match="f64"):
        quantize(np.zeros(2), Encoding.make(0.1, expressed=f64))


@given(
    arrays(np.float32, st.integers(0, 20), elements=st.floats(width=32, allow_nan=True)),
    st.floats(2.0**-20, 2.0**10, width=32),
    st.integers(-128, 127),
)
@settings(max_examples=200, deadline=None)
def test_round_trip_is_within_half_a_step(x: Any, scale: float, zero: int):
    kind = Encoding.make(scale, zero)
    codes = quantize(x, kind)
    real = dequantize(codes, kind)
    assert np.array_equal(quantize(real, kind), codes), "codes are a fixed point"
    low, high = (kind.qmin - zero) * scale, (kind.qmax - zero) * scale
    inside = (x >= low) & (x <= high)
    assert (np.abs(x[inside].astype(np.float64) - real[inside]) <= scale * (0.5 + 2.0**-13)).all()
    assert (real[x > high] == np.float32(high)).all() and (real[x < low] == np.float32(low)).all()


@given(arrays(np.float32, 30, elements=st.floats(-100, 100, width=32)), st.integers(-128, 127))
@settings(max_examples=100, deadline=None)
def test_quantize_is_monotone(x: Any, zero: int):
    codes = quantize(np.sort(x), Encoding.make(0.37, zero)).astype(np.int64)
    assert (np.diff(codes) >= 0).all()


def test_requantize_is_quantize_of_dequantize():
    source, target = Encoding.make(0.031, 4), Encoding.make(0.05, 130, signed=False)
    codes = np.arange(-128, 128).astype(np.int8)
    assert same_bits(requantize(codes, source, target), quantize(dequantize(codes, source), target))
    assert code_of(6.0, target) == 250 and code_of(float("inf"), target) == 255
