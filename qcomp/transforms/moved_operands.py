# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose results hold elements of their operands: which operands those are, and when codes may stand for reals."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import Encoding, quantized_type
from qcomp.transforms.code_identities import MAX_WIDTH
from qcomp.transforms.rewriting import constant

_ALL = (
    nn.ReshapeOp, nn.PermuteOp, nn.SliceOp, nn.ExpandOp, nn.PadOp, nn.CatOp, nn.TakeOp, nn.InsertSliceOp,
    *nn.MAX_POOLS, *nn.ADAPTIVE_MAX_POOLS, nn.AmaxOp, nn.AminOp,
)  # fmt: skip
_FIRST = (nn.GatherOp, nn.EmbeddingOp)
ORDERED = (*nn.MAX_POOLS, *nn.ADAPTIVE_MAX_POOLS, nn.AmaxOp, nn.AminOp, nn.ScanOp)
"""Those that choose elements by their order."""
PLACES = (nn.ArgsortOp, nn.ArgmaxOp, nn.ArgminOp, *nn.MAX_POOL_INDICES)
"""Ops whose results tell places of elements by their order; so do scans of such kinds."""


def moved_places(op: Operation) -> tuple[int, ...]:
    """The places of the operands whose elements the result of `op` holds; none for ops that compute."""
    match op:
        case nn.ScatterOp() if op.reduce.data == "none":
            return 0, 2
        case nn.SelectOp() | nn.IndexCopyOp():
            return 1, 2
        case nn.ScanOp() if op.kind.data in ("max", "min"):
            return (0,)
        case _ if isinstance(op, _FIRST):
            return (0,)
        case _ if isinstance(op, _ALL):
            return tuple(range(len(op.operands)))
        case _:
            return ()


def tells_places(op: Operation) -> bool:
    """Whether `op` finds where elements are, by their order."""
    return isinstance(op, PLACES) or (isinstance(op, nn.ScanOp) and op.kind.data.startswith("arg"))


@lru_cache(maxsize=4096)
def keeps_order(encoding: Encoding) -> bool:
    """Whether a larger code stands for a larger number, all of them finite: shown by trying every code."""
    from qcomp.interpreter.reference.quantize import dequantize

    if not encoding.per_tensor or encoding.width > MAX_WIDTH or not isinstance(encoding.expressed, Float32Type):
        return False
    reals = dequantize(np.arange(encoding.qmin, encoding.qmax + 1).astype(encoding.dtype), encoding)
    return bool(np.isfinite(reals).all() and (np.diff(reals.astype(np.float64)) > 0).all())


def exact_codes(value: SSAValue, encoding: Encoding) -> nn.ConstantOp | None:
    """A constant of codes that stand, bit for bit, for the f32 constant `value`; None where there are none."""
    from qcomp.interpreter.reference.quantize import dequantize, quantize

    held = constant(value)
    if held is None or held.array.dtype != np.float32 or not encoding.per_tensor:
        return None
    codes = quantize(held.array, encoding)
    if dequantize(codes, encoding).tobytes() != np.ascontiguousarray(held.array).tobytes():
        return None
    new = nn.ConstantOp(codes, quantized_type(tensor(value), encoding))
    new.location = held.location
    return new
