# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Picking and writing by indices, orders, running totals and further reductions. Codes that only move are moved."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.dialects.quant import encoding_of
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import indexing
from qcomp.interpreter.reference.array import Array


def _coded_gather(op: nn.GatherOp, arrays: Arrays) -> Array | None:
    encoding = encoding_of(op.result.type)
    same = encoding is not None and encoding.per_tensor and encoding_of(op.input.type) == encoding
    return _gather(op, arrays) if same else None


@meaning(nn.GatherOp, coded=_coded_gather)
def _gather(op: nn.GatherOp, arrays: Arrays) -> Array:
    return indexing.gather(arrays[0], arrays[1], op.dim.value.data)


@meaning(nn.ScatterOp)
def _scatter(op: nn.ScatterOp, arrays: Arrays) -> Array:
    return indexing.scatter(arrays[0], arrays[1], arrays[2], op.dim.value.data, op.reduce.data)


@meaning(nn.ArgsortOp)
def _argsort(op: nn.ArgsortOp, arrays: Arrays) -> Array:
    return indexing.argsort(arrays[0], op.dim.value.data, bool(op.descending.value.data))


@meaning(nn.ScanOp)
def _scan(op: nn.ScanOp, arrays: Arrays) -> Array:
    return indexing.scan(arrays[0], op.dim.value.data, op.kind.data)


@meaning(nn.AminOp)
def _amin(op: nn.AminOp, arrays: Arrays) -> Array:
    return indexing.smallest(arrays[0], op.axes, bool(op.keepdim.value.data))


@meaning(nn.ProdOp)
def _prod(op: nn.ProdOp, arrays: Arrays) -> Array:
    return indexing.product(arrays[0], op.axes, bool(op.keepdim.value.data))


@meaning(nn.ArgmaxOp, nn.ArgminOp)
def _place(op: nn.ArgmaxOp | nn.ArgminOp, arrays: Arrays) -> Array:
    return indexing.place_of(arrays[0], op.axes[0], bool(op.keepdim.value.data), isinstance(op, nn.ArgmaxOp))
