# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quant: codes and reals. The ops work on stored arrays directly."""

from __future__ import annotations

from typing import cast

from qcomp.dialects.quant import (
    CastStorageOp,
    DequantizeOp,
    Encoding,
    ObserveOp,
    QuantizeOp,
    RequantizeOp,
    encoding_of,
)
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.quantize import dequantize, quantize, requantize


@meaning(QuantizeOp, raw=True)
def _quantize(op: QuantizeOp, arrays: Arrays) -> Array:
    return quantize(arrays[0], op.encoding, op.recipe)


@meaning(DequantizeOp, raw=True)
def _dequantize(op: DequantizeOp, arrays: Arrays) -> Array:
    return dequantize(arrays[0], op.encoding)


@meaning(RequantizeOp, raw=True)
def _requantize(op: RequantizeOp, arrays: Arrays) -> Array:
    source, target = (cast(Encoding, encoding_of(value.type)) for value in (op.input, op.result))
    return requantize(arrays[0], source, target, op.recipe)


@meaning(ObserveOp, CastStorageOp, raw=True)
def _same(op: ObserveOp | CastStorageOp, arrays: Arrays) -> Array:
    return arrays[0]
