# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""float16 and bfloat16: widened to float32 to compute, rounded half to even afterwards, as torch does on CPU."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute

from qcomp.interpreter.reference.array import Array

_QUIET_NAN = 0x7FC0


def is_narrow(element: Attribute) -> bool:
    """Whether `element` is a float type narrower than float32."""
    return isinstance(element, BFloat16Type | Float16Type)


def widen(array: Array, element: Attribute) -> Array:
    """`array` of `element` as float32 when that is f16 or bf16 (held as uint16 bits); unchanged otherwise. Exact."""
    if isinstance(element, BFloat16Type):
        return (array.astype(np.uint32) << 16).view(np.float32)
    if isinstance(element, Float16Type):
        return array.astype(np.float32)
    return array


def narrow(array: Array, element: Attribute) -> Array:
    """The inverse of `widen`: float32 values rounded half to even to f16 or bf16; unchanged for other types."""
    if isinstance(element, BFloat16Type):
        return _bfloat16_bits(array.astype(np.float32))
    if isinstance(element, Float16Type):
        with np.errstate(over="ignore"):
            return array.astype(np.float32).astype(np.float16)
    return array


def _bfloat16_bits(array: Array) -> Array:
    bits = np.ascontiguousarray(array).view(np.uint32).reshape(array.shape)
    rounded = ((bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array.astype(np.float32)), np.uint16(_QUIET_NAN), rounded)
