# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data movement. Codes move unchanged when all tensors share one per-tensor encoding."""

from __future__ import annotations

from xdsl.ir import Operation

from qcomp.dialects import nn
from qcomp.dialects.nn.base import ints, torch_sizes
from qcomp.dialects.quant import Encoding, encoding_of
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import movement
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.quantize import code_of

Moving = nn.ReshapeOp | nn.PermuteOp | nn.ExpandOp | nn.SliceOp | nn.CatOp | nn.EmbeddingOp | nn.TakeOp


def shared_encoding(op: Operation) -> Encoding | None:
    """The per-tensor encoding that result and all data operands have, or None."""
    data = op.operands[:1] if isinstance(op, nn.EmbeddingOp) else op.operands
    encoding = encoding_of(op.results[0].type)
    same = encoding is not None and encoding.per_tensor and all(encoding_of(v.type) == encoding for v in data)
    return encoding if same else None


def _coded(op: Moving, arrays: Arrays) -> Array | None:
    return None if shared_encoding(op) is None else move(op, arrays)


@meaning(nn.ReshapeOp, nn.PermuteOp, nn.ExpandOp, nn.SliceOp, nn.CatOp, nn.EmbeddingOp, nn.TakeOp, coded=_coded)
def move(op: Moving, arrays: Arrays) -> Array:
    """The op on arrays of any dtype."""
    match op:
        case nn.ReshapeOp():
            return movement.reshape(arrays[0], torch_sizes(op.result))
        case nn.PermuteOp():
            return movement.permute(arrays[0], ints(op.dims))
        case nn.ExpandOp():
            return movement.expand(arrays[0], torch_sizes(op.result))
        case nn.SliceOp():
            return movement.cut(arrays[0], op.dim.value.data, *op.bounds, op.step.value.data)
        case nn.CatOp():
            return movement.concatenate(arrays, op.dim.value.data)
        case nn.TakeOp():
            return movement.take(arrays[0], op.dim.value.data, ints(op.indices))
        case nn.EmbeddingOp():
            return movement.embedding(arrays[0], arrays[1])


def _coded_pad(op: nn.PadOp, arrays: Arrays) -> Array | None:
    encoding = shared_encoding(op)
    if encoding is None:
        return None
    fill = code_of(op.value.value.data, encoding)
    return movement.pad(arrays[0], ints(op.low), ints(op.high), fill)


@meaning(nn.PadOp, coded=_coded_pad)
def _pad(op: nn.PadOp, arrays: Arrays) -> Array:
    return movement.pad(arrays[0], ints(op.low), ints(op.high), op.value.value.data)
