# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Picking and writing by indices, orders, running totals and further reductions.

Codes that only move are moved, and those that are ordered are ordered as codes.
"""

from __future__ import annotations

from xdsl.ir import Operation

from qcomp.dialects import nn
from qcomp.dialects.quant import encoding_of
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import indexing
from qcomp.interpreter.reference.array import Array


def _coded_gather(op: nn.GatherOp, arrays: Arrays) -> Array | None:
    return _gather(op, arrays) if _moves_codes(op, 0) else None


@meaning(nn.GatherOp, coded=_coded_gather)
def _gather(op: nn.GatherOp, arrays: Arrays) -> Array:
    return indexing.gather(arrays[0], arrays[1], op.dim.value.data)


def _moves_codes(op: Operation, *places: int) -> bool:
    """Whether the result and the operands at `places` share one per-tensor encoding."""
    encoding = encoding_of(op.results[0].type)
    alike = all(encoding_of(op.operands[place].type) == encoding for place in places)
    return encoding is not None and encoding.per_tensor and alike


def _coded_scatter(op: nn.ScatterOp, arrays: Arrays) -> Array | None:
    return _scatter(op, arrays) if op.reduce.data == "none" and _moves_codes(op, 0, 2) else None


@meaning(nn.ScatterOp, coded=_coded_scatter)
def _scatter(op: nn.ScatterOp, arrays: Arrays) -> Array:
    return indexing.scatter(arrays[0], arrays[1], arrays[2], op.dim.value.data, op.reduce.data)


@meaning(nn.ArgsortOp)
def _argsort(op: nn.ArgsortOp, arrays: Arrays) -> Array:
    return indexing.argsort(arrays[0], op.dim.value.data, bool(op.descending.value.data))


def _coded_scan(op: nn.ScanOp, arrays: Arrays) -> Array | None:
    return _scan(op, arrays) if op.kind.data in ("max", "min") and _moves_codes(op, 0) else None


@meaning(nn.ScanOp, coded=_coded_scan)
def _scan(op: nn.ScanOp, arrays: Arrays) -> Array:
    return indexing.scan(arrays[0], op.dim.value.data, op.kind.data)


def _coded_amin(op: nn.AminOp, arrays: Arrays) -> Array | None:
    return _amin(op, arrays) if _moves_codes(op, 0) else None


@meaning(nn.AminOp, coded=_coded_amin)
def _amin(op: nn.AminOp, arrays: Arrays) -> Array:
    return indexing.smallest(arrays[0], op.axes, bool(op.keepdim.value.data))


@meaning(nn.ProdOp)
def _prod(op: nn.ProdOp, arrays: Arrays) -> Array:
    return indexing.product(arrays[0], op.axes, bool(op.keepdim.value.data))


@meaning(nn.ArgmaxOp, nn.ArgminOp)
def _place(op: nn.ArgmaxOp | nn.ArgminOp, arrays: Arrays) -> Array:
    return indexing.place_of(arrays[0], op.axes[0], bool(op.keepdim.value.data), isinstance(op, nn.ArgmaxOp))
