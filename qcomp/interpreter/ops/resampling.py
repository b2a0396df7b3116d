# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn.resample; nn.take is with the other data movement."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.resampling import resample


@meaning(nn.ResampleOp)
def _resample(op: nn.ResampleOp, arrays: Arrays) -> Array:
    return resample(arrays[0], arrays[1], arrays[2], op.dim.value.data)
