# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""float16 and bfloat16 lie in memory as 16-bit patterns: widened to f32 exactly, rounded half to even back."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from qcomp.dialects import loop
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.reals import Reals

i16 = IntegerType(16)
_INFINITY, _NAN = 0x7C00, 0x7E00


def widen_bfloat16(b: Builder, pattern: SSAValue) -> SSAValue:
    """i16 to f32."""
    m = Reals(b, loop.tile_shape(pattern.type))
    return m.from_bits(m.multiply_whole(_extended(b, pattern), m.whole(65536)))


def narrow_bfloat16(b: Builder, x: SSAValue) -> SSAValue:
    """f32 to i16; NaN becomes one pattern."""
    m = Reals(b, loop.tile_shape(x.type))
    bits = m.bits(x)
    odd = m.bit_and(m.shift_right(bits, 16), m.whole(1))
    rounded = m.add_whole(bits, m.add_whole(odd, m.whole(0x7FFF)))
    pattern = m.select("ne", x, x, m.whole(0x7FC0), m.shift_right(rounded, 16))
    return b.add(arith.TruncIOp(pattern, loop.tile_like(x.type, i16)))  # pyright: ignore[reportArgumentType]


def widen_float16(b: Builder, pattern: SSAValue) -> SSAValue:
    """i16 to f32: the exponent is moved by a product, which is exact for denormals too."""
    m = Reals(b, loop.tile_shape(pattern.type))
    bits = _extended(b, pattern)
    size = m.bit_and(bits, m.whole(0x7FFF))
    moved = m.multiply_whole(size, m.whole(8192))
    finite = m.multiply(m.from_bits(moved), m.number(2.0**112))
    other = m.from_bits(m.bit_or(moved, m.whole(0x7F800000)))
    value = m.select("ge", size, m.whole(_INFINITY), other, finite)
    sign = m.bit_and(m.multiply_whole(bits, m.whole(65536)), m.whole(-(2**31)))
    return m.from_bits(m.bit_or(m.bits(value), sign))


def narrow_float16(b: Builder, x: SSAValue) -> SSAValue:
    """f32 to i16."""
    m = Reals(b, loop.tile_shape(x.type))
    size, bits = m.absolute(x), m.bit_and(m.bits(x), m.whole(0x7FFFFFFF))
    odd = m.bit_and(m.shift_right(bits, 13), m.whole(1))
    rounded = m.shift_right(m.add_whole(bits, m.add_whole(odd, m.whole(0xFFF))), 13)
    normal = m.subtract_whole(rounded, m.whole(112 * 1024))
    normal = m.select("ge", normal, m.whole(_INFINITY), m.whole(_INFINITY), normal)
    # Adding 1/2 leaves as many bits as denormal halves have.
    half = m.subtract_whole(m.bits(m.add(size, m.number(0.5))), m.whole(0x3F000000))
    pattern = m.select("lt", size, 2.0**-14, half, normal)
    pattern = m.select("ne", x, x, m.whole(_NAN), pattern)
    sign = m.bit_and(m.shift_right(m.bits(x), 16), m.whole(0x8000))
    return b.add(arith.TruncIOp(m.bit_or(pattern, sign), loop.tile_like(x.type, i16)))  # pyright: ignore[reportArgumentType]


def _extended(b: Builder, pattern: SSAValue) -> SSAValue:
    return b.add(arith.ExtSIOp(pattern, loop.tile_like(pattern.type, i32)))  # pyright: ignore[reportArgumentType]
