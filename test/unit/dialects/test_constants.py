# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of every element type go through text and sidecar bit by bit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

import qcomp
from qcomp.dialects import constant
from qcomp.dialects.constant import INLINE_LIMIT, ConstantData, ConstantStore, DataAttr
from qcomp.dialects.element import element_type, integer_range, is_float, numpy_dtype
from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.quant import Encoding, quantized_type
from qcomp.dialects.text import parse, parse_text, print_text, save
from qcomp.errors import QcompError

INTEGERS = [IntegerType(width, sign) for width in (1, 3, 4, 8, 16, 31, 32, 64) for sign in Signedness if width > 1]
ELEMENTS: list[Attribute] = [IntegerType(1), *INTEGERS, f16, bf16, f32, f64]
SPECIAL = {
    "f2": [0x8000, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF, 0x0001, 0x3C00],
    "u2": [0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFFF, 0x0001, 0x3F80],
    "f4": [0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x00000001, 0x3DCCCCCD],
    "f8": [1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, (0x7FF << 52) + 1, (1 << 64) - 1, 1, 0x3FB999999999999A],
}
"""Bits of -0.0, infinities, NaNs (quiet, signalling, with payload), the smallest subnormal, an ordinary number."""


@st.composite
def constants(draw: st.DrawFn) -> ConstantData:
    """A constant of any element type and of a shape with up to 24 elements, empty ones and scalars among them."""
    element = draw(st.sampled_from(ELEMENTS))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    size = int(np.prod(shape))
    dtype = numpy_dtype(element)
    if is_float(element):
        bits = st.integers(0, 2 ** (8 * dtype.itemsize) - 1) | st.sampled_from(SPECIAL[dtype.str[1:]])
        values = draw(st.lists(bits, min_size=size, max_size=size))
        return ConstantData(np.array(values, f"u{dtype.itemsize}").view(dtype).reshape(shape), element)
    low, high = integer_range(element)  # pyright: ignore[reportArgumentType]
    values = draw(st.lists(st.integers(low, high) | st.sampled_from([low, high]), min_size=size, max_size=size))
    return ConstantData(np.array(values, dtype).reshape(shape), element)


def same_bits(left: ConstantData, right: ConstantData) -> bool:
    mine, other = left.array, right.array
    return (left.element, mine.dtype, mine.shape, mine.tobytes()) == (
        right.element, other.dtype, other.shape, other.tobytes(),
    )  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(constants())
def test_constants_read_back_from_their_bytes(monkeypatch: pytest.MonkeyPatch, data: ConstantData):
    monkeypatch.setattr(constant, "INLINE_LIMIT", 0)
    text = print_text(ModuleOp([], {"value": DataAttr(data)}), constants="bytes")
    found = parse_text(text, qcomp.context()).attributes["value"]
    assert isinstance(found, DataAttr) and found.data.type == data.type
    assert found.array.tobytes() == data.array.tobytes() and found.data.digest == data.digest
    assert data.array.size == 0 or 'dense<"0x' in text


@settings(max_examples=150)
@given(constants())
def test_small_constants_read_back_from_text(data: ConstantData):
    module = ModuleOp([ConstantOp(DataAttr(data))], {"note": DataAttr(data)})
    store = ConstantStore(None, {data.digest: data.array})
    for generic in (False, True):
        ctx = qcomp.context()
        ctx.constants = store
        again = parse_text(print_text(module, generic=generic), ctx)
        op = again.body.block.first_op
        assert isinstance(op, ConstantOp)
        assert same_bits(op.value.data, data)
        attribute = again.attributes["note"]
        assert isinstance(attribute, DataAttr) and attribute.data == data and same_bits(attribute.data, data)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(constants(), max_size=3), st.sampled_from(ELEMENTS), st.integers(17, 50), st.randoms())
def test_modules_read_back_from_text_and_sidecar(
    tmp_path: Path, small: list[ConstantData], element: Attribute, size: int, random: Any
):
    dtype = numpy_dtype(element)
    raw = np.frombuffer(random.randbytes(size * dtype.itemsize), f"u{dtype.itemsize}")
    if not is_float(element):
        low, high = integer_range(element)  # pyright: ignore[reportArgumentType]
        raw = (raw.astype(object) % (high - low + 1) + low).astype(dtype)
    large = ConstantData(raw.view(dtype) if dtype.kind != "b" else raw.astype(bool), element)
    expected = [*small, large, large]
    save(ModuleOp([ConstantOp(DataAttr(data)) for data in expected]), tmp_path / "m.mlir")
    found = [op.value.data for op in parse(tmp_path / "m.mlir").walk() if isinstance(op, ConstantOp)]
    assert len(found) == len(expected)
    assert all(map(same_bits, found, expected))


def test_equal_constants_are_one_in_the_sidecar(tmp_path: Path):
    array = np.arange(1000, dtype=np.float32)
    ops = [
        ConstantOp(array),
        ConstantOp(array.copy()),
        ConstantOp(array.reshape(10, 100)),
        ConstantOp(array.view("i4")),
    ]
    save(ModuleOp(ops), tmp_path / "m.mlir")
    assert 4000 <= (tmp_path / "m.safetensors").stat().st_size < 5000
    again = [op for op in parse(tmp_path / "m.mlir").walk() if isinstance(op, ConstantOp)]
    assert [op.array.shape for op in again] == [(1000,), (1000,), (10, 100), (1000,)]
    assert again[0].value == again[1].value and hash(again[0].value) == hash(again[1].value)
    assert again[0].value != again[2].value and again[0].value != again[3].value


def test_the_sidecar_is_safetensors(tmp_path: Path):
    safetensors = pytest.importorskip("safetensors.numpy")
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u4", "u2", "u1", "u8")
    arrays = [np.arange(20).astype(dtype) + at for at, dtype in enumerate(kinds)]  # equal bytes would be one entry
    arrays.append(np.arange(20) % 2 == 0)
    data = [ConstantData(array) for array in arrays]
    save(ModuleOp([ConstantOp(DataAttr(item)) for item in data]), tmp_path / "m.mlir")
    found = safetensors.load_file(tmp_path / "m.safetensors")
    for item in data:
        assert found[item.digest].dtype == item.array.dtype and found[item.digest].tolist() == item.array.tolist()


def test_codes_of_a_quantized_constant():
    kind = quantized_type(TensorType(f32, (2, 3)), Encoding.make(0.5, 3, signed=False))
    op = ConstantOp(np.array([[0, 1, 255], [7, 8, 9]], np.uint8), kind)
    again = parse_text(print_text(ModuleOp([op.clone()])), qcomp.context()).body.block.first_op
    assert isinstance(again, ConstantOp) and again.result.type == kind and again.value == op.value


def test_constants_are_read_only_and_shared():
    array = np.arange(4, dtype=np.float32)
    data = DataAttr.of(array)
    assert data.array.base is array and not data.array.flags.writeable
    op = ConstantOp(data)
    assert op.clone().value.array is op.value.array
    with pytest.raises(ValueError, match="read-only"):
        op.array[0] = 1  # pyright: ignore[reportIndexIssue]


def test_a_transposed_array_keeps_its_elements():
    array = np.arange(6, dtype=np.int32).reshape(2, 3).T
    assert DataAttr.of(array).array.tolist() == array.tolist()
    assert DataAttr.of(array) == DataAttr.of(np.ascontiguousarray(array))


def test_an_array_of_another_dtype_is_refused():
    with pytest.raises(VerifyException, match="constant of type f32 cannot be held by a float64 array"):
        ConstantData(np.zeros(3), f32)
    with pytest.raises(QcompError, match="arrays of dtype complex64 have no element type"):
        ConstantData(np.zeros(3, np.complex64))


def test_element_types_and_dtypes():
    for element in (IntegerType(1), f16, f32, f64, IntegerType(8), IntegerType(64, Signedness.UNSIGNED)):
        assert element_type(numpy_dtype(element)) == element
    assert element_type("bfloat16") == bf16 and numpy_dtype(bf16) == np.uint16
    assert numpy_dtype(IntegerType(4)) == np.int8 and numpy_dtype(IntegerType(4, Signedness.UNSIGNED)) == np.uint8
    with pytest.raises(QcompError, match="no numpy dtype"):
        numpy_dtype(StringAttr("f32"))


def _parse_constant(text: str) -> np.ndarray:
    op = parse(f"%c = nn.constant {text}\n").body.block.first_op
    assert isinstance(op, ConstantOp)
    return op.array


def test_spellings_of_literals():
    assert _parse_constant("dense<7> : tensor<2x3xi8>").tolist() == [[7, 7, 7]] * 2
    assert _parse_constant("dense<0xFF> : tensor<2xui8>").tolist() == [255, 255]
    assert _parse_constant("dense<-0x80> : tensor<i8>").tolist() == -128
    assert _parse_constant("dense<[1, 2.5, -3.0e2]> : tensor<3xf32>").tolist() == [1, 2.5, -300]
    assert _parse_constant("dense<[1, // not 0x2\n 3]> : tensor<2xi8>").tolist() == [1, 3]
    assert _parse_constant("dense<0x3F80> : tensor<bf16>").tolist() == 0x3F80
    assert _parse_constant("dense<1.00390625> : tensor<bf16>").tolist() == 0x3F80, "half to even"
    assert _parse_constant("dense<[]> : tensor<0x4xf32>").shape == (0, 4)
    assert _parse_constant("dense<3> : tensor<0x4xi32>").shape == (0, 4)
    assert np.signbit(_parse_constant("dense<-0.0> : tensor<f32>"))


@pytest.mark.parametrize("element", [f32, f16, bf16, f64])
def test_printed_numbers_are_short(element: Attribute):
    dtype = numpy_dtype(element)
    value = np.array([0x3DCD], np.uint16) if dtype.kind == "u" else np.array([0.1], dtype)
    text = print_text(ModuleOp([ConstantOp(DataAttr(ConstantData(value, element)))]), locations=False)
    assert "dense<[0x3DCD]>" in text if dtype.kind == "u" else "dense<[0.1]>" in text


def test_arrays_of_up_to_16_elements_stand_in_the_text():
    for size, inline in ((INLINE_LIMIT, True), (INLINE_LIMIT + 1, False)):
        text = print_text(ModuleOp([ConstantOp(np.zeros(size, np.float32))]))
        assert ("dense" in text) == inline


def test_printing_a_large_module_is_quick():
    module = ModuleOp([ConstantOp(np.zeros((1000, 1000), np.float32)) for _ in range(20)])
    start = time.perf_counter()
    print_text(module)
    assert time.perf_counter() - start < 1.0


@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
def test_float_attributes_keep_their_bits(single: float, double: float):
    """Clamp bounds, slopes and eps are xDSL's own attributes."""
    module = ModuleOp([], {"a": FloatAttr(single, f32), "b": FloatAttr(double, f64)})
    again = parse_text(print_text(module), qcomp.context())
    found = [cast(FloatAttr, again.attributes[name]).value.data for name in "ab"]
    assert np.array(found).tobytes() == np.array([single, double]).tobytes()
