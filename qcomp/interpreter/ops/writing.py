# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors with a part replaced. Codes move unchanged when base, source and result share one per-tensor encoding."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.dialects.dims import attribute_size
from qcomp.dialects.quant import encoding_of
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import movement
from qcomp.interpreter.reference.array import Array

Writing = nn.InsertSliceOp | nn.IndexCopyOp


def _coded(op: Writing, arrays: Arrays) -> Array | None:
    encoding = encoding_of(op.result.type)
    same = encoding is not None and encoding.per_tensor
    same = same and encoding_of(op.base.type) == encoding == encoding_of(op.source.type)
    return write(op, arrays) if same else None


@meaning(nn.InsertSliceOp, nn.IndexCopyOp, coded=_coded)
def write(op: Writing, arrays: Arrays) -> Array:
    """The op on arrays of any dtype."""
    if isinstance(op, nn.InsertSliceOp):
        dim, start, step = op.dim.value.data, attribute_size(op.start), op.step.value.data
        return movement.insert_slice(arrays[0], arrays[1], dim, start, step)
    return movement.index_copy(arrays[1], arrays[0], arrays[2], op.dim.value.data)
