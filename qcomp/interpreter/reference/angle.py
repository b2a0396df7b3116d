# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Angles modulo a right angle: x = (quadrant + 4 k) * pi/2 + rest with |rest| <= pi/4, exactly for all float32, for
float64 with the rest within a unit in the last place.

x is an integer of 24 bits times a power of two; times 2/pi to 96 bits behind those that count whole turns, in integers.
No float comes close enough to a multiple of pi/2 that the rest would lose a bit of its 24.
"""

from __future__ import annotations

import numpy as np

from qcomp.interpreter.reference.array import Array

TWO_OVER_PI = (
    0x00000000, 0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB,
)  # fmt: skip
"""2/pi to 224 bits, behind 64 zeros."""
SMALL = float.fromhex("0x1.921fb4p-1")
"""Angles up to here, pi/4 rounded down, are their own rest."""
FACTOR = float.fromhex("0x1.921fb6p-62")
"""pi/2 in units of 2^-62, as float32: what the fraction of a right angle is multiplied by."""


def _phase(x: Array) -> tuple[Array, Array]:
    """(quadrant, fraction of a right angle in units of 2^-62 as int64 from -2^61 to 2^61)."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    exponent = (bits >> np.uint64(23)) & np.uint64(0xFF)
    # Where the exponent is out of the table the result is not used.
    place = np.where((exponent < 126) | (exponent == 255), np.uint64(126), exponent) - np.uint64(88)
    mantissa = (bits & np.uint64(0x7FFFFF)) | np.uint64(0x800000)
    table = np.array((*TWO_OVER_PI, 0), np.uint64)
    word, shift = place >> np.uint64(5), place & np.uint64(31)
    parts = [table[(word + np.uint64(i)).astype(np.intp)] for i in range(4)]
    joined = [_joined(parts[i], parts[i + 1], shift) for i in range(3)]
    high = (joined[0] << np.uint64(32)) | joined[1]
    turns = mantissa * high + ((mantissa * joined[2]) >> np.uint64(32))
    rounded = turns + np.uint64(1 << 61)
    return rounded >> np.uint64(62), (turns << np.uint64(2)).view(np.int64) >> 2


def _joined(first: Array, second: Array, shift: Array) -> Array:
    """32 bits from bit `shift` of two words."""
    return (((first << np.uint64(32)) | second) >> (np.uint64(32) - shift)) & np.uint64(0xFFFFFFFF)


TWO_OVER_PI64 = (
    0x00000000, 0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB,
    0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B,
    0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA,
    0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB,
)  # fmt: skip
"""2/pi to 1216 bits, behind 64 zeros."""
SMALL64 = float.fromhex("0x1.921fb54442d18p-1")
"""pi/4 as float64, rounded down: angles up to here are their own rest."""
HALF_PI, HALF_PI_LOW = float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")
_WORD, _LIMBS = np.uint64(0xFFFFFFFF), 6


def _phase64(x: Array) -> tuple[Array, Array]:
    """(quadrant, fraction of a right angle from -1/2 to 1/2 times pi/2) of |x| as float64.

    The mantissa, in two words, times 192 bits of 2/pi: of the product the first two bits count right angles modulo 4,
    and of 126 more at most 61 are zeros.
    """
    bits = np.asarray(x, np.float64).view(np.uint64) & np.uint64(0x7FFFFFFFFFFFFFFF)
    exponent = bits >> np.uint64(52)
    place = np.where((exponent < 1022) | (exponent == 2047), np.uint64(1022), exponent) - np.uint64(1013)
    mantissa = (bits & np.uint64(2**52 - 1)) | np.uint64(2**52)
    low, high = mantissa & _WORD, mantissa >> np.uint64(32)
    table = np.array((*TWO_OVER_PI64, 0), np.uint64)
    word, shift = (place >> np.uint64(5)).astype(np.intp), place & np.uint64(31)
    limbs = [_joined(table[word + i], table[word + i + 1], shift) for i in range(_LIMBS)]
    found: list[Array] = []
    carry, above = np.zeros_like(mantissa), np.zeros_like(mantissa)
    for limb in limbs[::-1]:
        product = limb * low
        total = (product & _WORD) + above * high + carry
        found.insert(0, total & _WORD)
        carry, above = (total >> np.uint64(32)) + (product >> np.uint64(32)), limb
    first, second = ((found[i] << np.uint64(32)) | found[i + 1] for i in (0, 2))
    quadrant = ((first + np.uint64(1 << 61)) >> np.uint64(62)).astype(np.float64)
    first, second = (first << np.uint64(2)) | (second >> np.uint64(62)), second << np.uint64(2)
    negative = first >= np.uint64(1 << 63)
    second, borrow = np.where(negative, ~second + np.uint64(1), second), second == 0
    first = np.where(negative, ~first + borrow.astype(np.uint64), first)
    parts = [(side >> np.uint64(32), side & _WORD) for side in (first, second)]
    one, two, three, four = (
        part.astype(np.float64) * 2.0 ** (-32 * power) for power, part in enumerate((*parts[0], *parts[1]), 1)
    )
    near = one + two
    rest = (two - (near - one)) + (three + four)
    size = near * HALF_PI + (near * HALF_PI_LOW + rest * HALF_PI)
    return quadrant, np.where(negative, -size, size)


def quadrant(x: Array) -> Array:
    """0, 1, 2 or 3 as a float: which right angle is nearest; NaN for NaN and infinities."""
    near = np.asarray((_phase64(x) if x.dtype == np.float64 else _phase(x))[0], np.float64) % 4
    found = np.where(np.signbit(x) & (near > 0), 4 - near, near)
    found = np.where(_is_own_rest(x), 0.0, found)
    return np.where(np.isfinite(x), found, np.nan).astype(x.dtype)


def remaining_angle(x: Array) -> Array:
    """What is left, as a float; NaN for NaN and infinities."""
    rest: Array
    if x.dtype == np.float64:
        rest = _phase64(x)[1]
    else:
        rest = _phase(x)[1].astype(np.float32) * np.float32(FACTOR)
    rest = np.where(np.signbit(x), np.negative(rest), rest)
    rest = np.where(_is_own_rest(x), x, rest)
    return np.where(np.isfinite(x), rest, x.dtype.type(np.nan))


def _is_own_rest(x: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.abs(np.asarray(x, np.float64)) <= (SMALL64 if x.dtype == np.float64 else SMALL)
