# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs loop-level text on numpy arrays, in every mode of the interpreter, and demands the same bits of all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qcomp.dialects.text import parse
from qcomp.interpreter.loop import LoopProgram


def run(text: str, *inputs: NDArray) -> tuple[NDArray, ...]:
    """The outputs of main: checked or not, batched or iteration by iteration, they are the same bits."""
    module = parse(text + "\n")
    results = [
        LoopProgram(module, checked=checked, batching=batching).run(inputs)
        for checked, batching in ((True, True), (True, False), (False, True))
    ]
    for other in results[1:]:
        assert [array.tobytes() for array in other] == [array.tobytes() for array in results[0]]
    return results[0]


def same_bits(left: NDArray, right: NDArray) -> bool:
    """Whether two arrays have one dtype, shape and bits; NaNs count as equal."""
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    if left.dtype.kind == "f":
        both = np.isnan(left) & np.isnan(right)
        left, right = np.where(both, 0, left).astype(left.dtype), np.where(both, 0, right).astype(right.dtype)
    return left.tobytes() == right.tobytes()
