# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn.resample and nn.grid_sample; nn.take is with the other data movement."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.resampling import resample
from qcomp.interpreter.reference.sampling import grid_sample


@meaning(nn.ResampleOp)
def _resample(op: nn.ResampleOp, arrays: Arrays) -> Array:
    return resample(arrays[0], arrays[1], arrays[2], op.dim.value.data)


@meaning(nn.GridSampleOp)
def _grid_sample(op: nn.GridSampleOp, arrays: Arrays) -> Array:
    flags = (op.mode.data, op.padding_mode.data, bool(op.align_corners.value.data))
    return grid_sample(arrays[0], arrays[1], *flags)
