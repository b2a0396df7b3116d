# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants written as their bytes, ``dense<"0x0000803F">``, in MLIR's form, which mlir-opt reads.

Elements are little-endian. Truth values are bits, eight to a byte, the first in the lowest; an integer of another width
takes whole bytes, the bits above its width being 0. One element stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.element import integer_range, is_integer, numpy_dtype

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
_PREFIX = "0x"
LargeConstants = Literal["digest", "bytes", "first"]
"""Large constants print by digest, as their bytes, or as their first element everywhere, which is another constant."""
_form: ContextVar[LargeConstants] = ContextVar("large_constants", default="digest")


@contextmanager
def large_constants_as(form: LargeConstants) -> Generator[None]:
    """Within it, large constants print in `form`."""
    token = _form.set(form)
    try:
        yield
    finally:
        _form.reset(token)


def large_constant_form() -> LargeConstants:
    """The form in which large constants print."""
    return _form.get()


def hex_text(array: Array, element: Attribute) -> str:
    """``0x`` and the bytes of `array`, which holds elements of type `element`."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "b":
        return _PREFIX + np.packbits(flat.view(np.uint8), bitorder="little").tobytes().hex().upper()
    little = flat.astype(flat.dtype.newbyteorder("<"), copy=False)
    if (width := _odd_width(element)) is not None:
        bits = little.view(f"<u{flat.itemsize}") & np.array((1 << width) - 1, f"<u{flat.itemsize}")
        little = bits.view(np.uint8).reshape(-1, flat.itemsize)[:, : -(-width // 8)]
    return _PREFIX + little.tobytes().hex().upper()


def array_of_hex(text: str, kind: TensorType[Attribute]) -> Array:
    """The elements of a tensor of type `kind`, one alone when it stands for all. Raises VerifyException."""
    element, count = kind.element_type, math.prod(kind.get_shape())
    data = _bytes(text)
    dtype = numpy_dtype(element)
    if dtype.kind == "b":
        return _truth_values(data, count)
    width = _odd_width(element)
    size = dtype.itemsize if width is None else -(-width // 8)
    if len(data) not in (size * count, size):
        raise VerifyException(f"{len(data)} bytes of hexadecimal digits, expected {size * count} for {kind}")
    if width is None:
        return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype, copy=False)
    return _widened(data, size, width, dtype, element)


def _bytes(text: str) -> bytes:
    if not text.startswith(_PREFIX):
        raise VerifyException('a text in dense must begin with 0x, hexadecimal digits')
    try:
        return bytes.fromhex(text[len(_PREFIX) :])
    except ValueError:
        raise VerifyException("a text in dense must be an even number of hexadecimal digits") from None


def _truth_values(data: bytes, count: int) -> Array:
    if count > 8 and len(data) == 1 and data[0] in (0, 0xFF):
        return np.array([data[0] == 0xFF])
    if len(data) != -(-count // 8):
        raise VerifyException(f"{len(data)} bytes of hexadecimal digits for {count} truth values, eight to a byte")
    return np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little").view(np.bool_)


def _odd_width(element: Attribute) -> int | None:
    """The width of an integer that does not fill what holds it; None for all other types."""
    if not is_integer(element) or element.width.data in (1, 8, 16, 32, 64):
        return None
    return element.width.data


def _widened(data: bytes, size: int, width: int, dtype: np.dtype[Any], element: Attribute) -> Array:
    """Integers of `width` bits in `size` bytes each as `dtype`; bits above must be 0, or copies of the sign."""
    wide = np.zeros((len(data) // size, 8), np.uint8)
    wide[:, :size] = np.frombuffer(data, np.uint8).reshape(-1, size)
    bits = wide.reshape(-1).view("<u8").astype(np.int64)
    low, high = integer_range(cast(Any, element))
    whole = 1 << (8 * size)
    values = np.where(bits > high, bits - (1 << width), bits) if low < 0 else bits
    extended = np.where(bits > high, bits - whole, bits) if low < 0 else bits
    values = np.where(bits < 1 << width, values, extended)
    if values.size and not (values.min() >= low and values.max() <= high):
        raise VerifyException(f"hexadecimal digits hold a number that is not a value of {element} ({low} to {high})")
    return values.astype(dtype)
