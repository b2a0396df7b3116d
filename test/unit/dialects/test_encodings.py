# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized types: random encodings through text, equality, hashing."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32, f64
from xdsl.utils.exceptions import VerifyException

import qcomp
from qcomp.dialects.constant import ConstantStore
from qcomp.dialects.quant import Encoding, UniformQuantizedType, encoding_of, expanded_types, parameter_arrays
from qcomp.dialects.sidecar import large_constants
from qcomp.dialects.text import parse, parse_text, print_text, save

SCALES = st.floats(2**-149, 3.4e38, allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 1e22, 1.0, 2**-149])


@st.composite
def encodings(draw: st.DrawFn) -> Encoding:
    """An encoding of any form; up to 40 parameters."""
    signed, width = draw(st.booleans()), draw(st.integers(2, 32))
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    qmin = draw(st.just(low) | st.integers(low, high - 1))
    qmax = draw(st.just(high) | st.integers(qmin + 1, high))
    form = draw(st.sampled_from(["tensor", "axis", "blocks"]))
    shape: tuple[int, ...] = ()
    axis, blocks = None, ()
    if form == "axis":
        axis, shape = draw(st.integers(0, 4)), (draw(st.integers(1, 40)),)
    if form == "blocks":
        shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
        blocks = tuple((at, draw(st.integers(1, 64))) for at in range(len(shape)))
    size = int(np.prod(shape))
    scales = draw(st.lists(SCALES, min_size=size, max_size=size))
    zeros = draw(
        st.just([min(max(0, qmin), qmax)] * size) | st.lists(st.integers(qmin, qmax), min_size=size, max_size=size)
    )
    return Encoding.make(
        np.array(scales).reshape(shape), np.array(zeros, np.int64).reshape(shape), signed=signed, width=width,
        qmin=qmin, qmax=qmax, axis=axis, blocks=blocks, expressed=draw(st.sampled_from([f16, bf16, f32, f64])),
    )  # fmt: skip


def module_of(encoding: Encoding) -> ModuleOp:
    return ModuleOp([], {"kind": UniformQuantizedType(encoding)})


def kind_of(module: ModuleOp) -> Encoding:
    encoding = encoding_of(module.attributes["kind"])
    assert encoding is not None
    return encoding


@settings(max_examples=150)
@given(encodings())
def test_types_read_back_from_text(encoding: Encoding):
    """With parameters by digest, and in MLIR's full form, which needs no constants."""
    module = module_of(encoding)
    ctx = qcomp.context()
    ctx.constants = ConstantStore(None, {name: data.array for name, data in large_constants(module).items()})
    again = kind_of(parse_text(print_text(module), ctx))
    assert again == encoding and hash(again) == hash(encoding)
    with expanded_types():
        text = print_text(module)
    assert "#nn" not in text
    full = kind_of(parse_text(text, qcomp.context()))
    assert full == encoding and full.key == encoding.key


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(encodings())
def test_types_read_back_from_files(tmp_path: Path, encoding: Encoding):
    save(module_of(encoding), tmp_path / "m.mlir")
    assert kind_of(parse(tmp_path / "m.mlir")) == encoding


@given(encodings(), encodings())
def test_equality_is_that_of_the_parameters(left: Encoding, right: Encoding):
    assert (left == right) == (left.key == right.key)
    assert (UniformQuantizedType(left) == UniformQuantizedType(right)) == (left == right)


def test_each_part_matters():
    base = Encoding.make([0.5, 0.25], [1, 2], axis=0)
    others = [
        Encoding.make([0.5, np.nextafter(0.25, 1)], [1, 2], axis=0),
        Encoding.make([0.5, 0.25], [1, 3], axis=0),
        Encoding.make([0.5, 0.25], [1, 2], axis=1),
        Encoding.make([0.5, 0.25], [1, 2], axis=0, signed=False),
        Encoding.make([0.5, 0.25], [1, 2], axis=0, width=16),
        Encoding.make([0.5, 0.25], [1, 2], axis=0, qmin=-127),
        Encoding.make([0.5, 0.25], [1, 2], axis=0, qmax=126),
        Encoding.make([0.5, 0.25], [1, 2], axis=0, expressed=f16),
        Encoding.make([0.5, 0.25], [1, 2], blocks=((0, 1),)),
    ]
    for other in others:
        assert other != base and UniformQuantizedType(other) != UniformQuantizedType(base)
    assert base.with_axis(3) == Encoding.make([0.5, 0.25], [1, 2], axis=3)
    assert Encoding.make([0.5, 0.25], [1, 2], axis=0) == base


def test_parameters_cannot_be_changed():
    encoding = Encoding.make([0.5, 0.25], 3, axis=0)
    with pytest.raises(ValueError, match="read-only"):
        encoding.scales[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        encoding.zero_points[0] = 1


def test_dtypes_and_storage():
    found = [
        (
            str(Encoding.make(0.5, signed=signed, width=width).dtype),
            str(Encoding.make(0.5, signed=signed, width=width).storage),
        )
        for signed in (True, False)
        for width in (4, 8, 16, 32)
    ]
    assert found == [
        ("int8", "i4"), ("int8", "i8"), ("int16", "i16"), ("int32", "i32"),
        ("uint8", "ui4"), ("uint8", "ui8"), ("uint16", "ui16"), ("uint32", "ui32"),
    ]  # fmt: skip


def test_parameters_broadcast_over_the_tensor():
    per_axis = Encoding.make([0.5, 0.25, 1.0], [1, 2, 3], axis=1)
    scales, zeros = parameter_arrays(per_axis, (2, 3, 4))
    assert scales.shape == zeros.shape == (1, 3, 1)
    grid = np.array([[0.5, 0.25], [1.0, 2.0]]), np.array([[1, 2], [3, 4]])
    blocks = Encoding.make(*grid, blocks=((0, 1), (2, 3)))
    scales, zeros = parameter_arrays(blocks, (2, 5, 6))
    assert np.broadcast_to(scales, (2, 5, 6))[1, 4].tolist() == [1.0] * 3 + [2.0] * 3
    assert np.broadcast_to(zeros, (2, 5, 6))[0, 0].tolist() == [1] * 3 + [2] * 3


@pytest.mark.parametrize(
    ("shape", "fits"), [((2, 6), True), ((2, 3), True), ((4, 6), False), ((2, 5), False), ((2,), False)]
)
def test_blocks_divide_the_tensor(shape: tuple[int, ...], fits: bool):
    encoding = Encoding.make(np.full((2, shape[-1] // 3), 0.5), blocks=((0, 1), (1, 3)))
    if fits:
        encoding.check_shape(shape)
    else:
        with pytest.raises(VerifyException):
            encoding.check_shape(shape)


def test_a_type_of_2048_scales_is_short_and_quick():
    kind = TensorType(UniformQuantizedType(Encoding.make(np.linspace(0.1, 1, 2048), axis=0)), [2048, 3])
    module = ModuleOp([], {f"a{at}": kind for at in range(200)})
    start = time.perf_counter()
    text = print_text(module)
    assert time.perf_counter() - start < 0.5
    assert len(text) < 200 * 150
    with expanded_types():
        assert len(print_text(ModuleOp([], {"a": kind}))) > 30_000


TINY = {
    5e-39: ([3, 3, 3, 4, 127, -128, 127, 127, 3], 4.999999675228202e-39),
    2.94e-39: ([3, 3, 3, 4, 127, -128, 127, 127, 3], 2.93999984827054e-39),
    2.9e-39: ([0, 0, 127, 127, 127, -128, 127, 127, 127], 3.5959997877238595e-37),
    1e-45: ([0, 0, 127, 127, 127, -128, 127, 127, 127], 1.7376100957627732e-43),
    3e38: ([3, 3, 3, 3, 3, 3, 3, 4, 3], 0.0),
}
"""Scale -> what torch 2.13 (quantized_decomposed) makes of `EXTREMES`: codes, and the real of the fourth."""
EXTREMES = np.array([0.0, -0.0, 1e-39, 3e-39, 1.0, -2.0, 1e38, 3e38, 1e-44], np.float32)


def test_scales_at_the_ends_of_float32_do_what_torch_does():
    """Denormal scales are kept; below 2^-128 the reciprocal is infinite, and 0 becomes NaN, whose code is 0."""
    lines: list[str] = []
    for at, scale in enumerate(TINY):
        coded = f"tensor<9x!quant.uniform<i8:f32, {np.format_float_scientific(scale, trim='0')}:3>>"
        lines.append(f"%q{at} = quant.quantize %x : tensor<9xf32> -> {coded}")
        lines.append(f"%d{at} = quant.dequantize %q{at} : {coded} -> tensor<9xf32>")
    results, kinds = ", ".join(f"%d{at}" for at in range(len(TINY))), ", ".join(["tensor<9xf32>"] * len(TINY))
    head = f"func.func @main(%x: tensor<9xf32>) -> ({kinds}) {{"
    module = parse("\n".join([head, *lines, f"func.return {results} : {kinds}", "}"]))
    found = qcomp.interpret(module, EXTREMES)
    for (scale, (codes, fourth)), reals in zip(TINY.items(), found, strict=True):
        narrow = np.float32(scale)
        assert reals.tobytes() == ((np.array(codes, np.float32) - np.float32(3)) * narrow).tobytes()
        assert reals[3] == np.float32(fourth)
    loops = module.clone()
    qcomp.run_passes(loops, "lower-to-loop,plan-memory")
    for ours, theirs in zip(qcomp.interpret(loops, EXTREMES), found, strict=True):
        assert ours.tobytes() == theirs.tobytes()
