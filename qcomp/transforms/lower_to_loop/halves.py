# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of float16 and bfloat16: kernels read the 16-bit patterns and widen them in registers."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import bf16, f16
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects.constant import Array
from qcomp.transforms.lower_to_loop.driver import Lowering

HALVES: dict[str, Attribute] = {"f16": f16, "bf16": bf16}


def half_of(lowering: Lowering, value: SSAValue) -> str | None:
    """ "f16" or "bf16" when `value` is a constant of those that is cast to f32."""
    constant = lowering.half(value)
    return None if constant is None else str(constant.value.data.element)


def patterns(array: Array, half: str | None) -> Array:
    """float32 that came from `half` as its i16 patterns; other arrays as they are."""
    if half is None:
        return array
    if half == "f16":
        return array.astype(np.float16).view(np.int16)
    return (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16).view(np.int16).reshape(array.shape)
