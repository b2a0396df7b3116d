# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations and softmax."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.dialects.nn.base import ints
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import norm
from qcomp.interpreter.reference.array import Array


@meaning(nn.BatchNormOp)
def _batch_norm(op: nn.BatchNormOp, arrays: Arrays) -> Array:
    rest = list(arrays[3:])
    weight = rest.pop(0) if op.weight is not None else None
    bias = rest.pop(0) if op.bias is not None else None
    return norm.batch_norm(arrays[0], arrays[1], arrays[2], weight, bias, op.eps.value.data)


@meaning(nn.LayerNormOp)
def _layer_norm(op: nn.LayerNormOp, arrays: Arrays) -> Array:
    rest = list(arrays[1:])
    weight = rest.pop(0) if op.weight is not None else None
    bias = rest.pop(0) if op.bias is not None else None
    return norm.layer_norm(arrays[0], len(ints(op.normalized_shape)), weight, bias, op.eps.value.data)


@meaning(nn.SoftmaxOp)
def _softmax(op: nn.SoftmaxOp, arrays: Arrays) -> Array:
    return norm.softmax(arrays[0], op.dim.value.data)
