# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Angles modulo a right angle, exactly for all float32: x = (quadrant + 4 k) * pi/2 + rest with |rest| <= pi/4.

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


def quadrant(x: Array) -> Array:
    """0, 1, 2 or 3 as float32: which right angle is nearest; NaN for NaN and infinities."""
    found = _phase(x)[0].astype(np.float32)
    found = np.where(np.signbit(x) & (found > 0), np.float32(4) - found, found)
    found = np.where(np.abs(x) <= np.float32(SMALL), np.float32(0), found)
    return np.where(np.isfinite(x), found, np.float32(np.nan))


def remaining_angle(x: Array) -> Array:
    """What is left, as float32; NaN for NaN and infinities."""
    rest = _phase(x)[1].astype(np.float32) * np.float32(FACTOR)
    rest = np.where(np.signbit(x), -rest, rest)
    rest = np.where(np.abs(x) <= np.float32(SMALL), x, rest)
    return np.where(np.isfinite(x), rest, np.float32(np.nan))
