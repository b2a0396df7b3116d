# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn's functions by name, comparison and choice."""

from __future__ import annotations

import numpy as np

from qcomp.dialects import nn
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import expressed_type
from qcomp.errors import QcompError
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.ops.elementwise import coded_unary
from qcomp.interpreter.reference.algebra import compare
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.elementwise import clamp
from qcomp.interpreter.reference.functions import BINARY, FUNCTIONS, evaluate
from qcomp.interpreter.reference.narrow_floats import narrow, widen


@meaning(nn.FunctionOp, coded=coded_unary)
def _function(op: nn.FunctionOp, arrays: Arrays) -> Array:
    if op.function.data == "wrap_index":
        check_indices(arrays[0], int(op.numbers[0]))
    return evaluate(FUNCTIONS[op.function.data], [arrays[0]], op.numbers)


@meaning(nn.BinaryFunctionOp)
def _binary(op: nn.BinaryFunctionOp, arrays: Arrays) -> Array:
    result = evaluate(BINARY[op.function.data], list(arrays), ())
    if op.activation is None:
        return result
    element = expressed_type(tensor(op.result)).element_type
    return clamp(widen(narrow(result, element), element), *op.activation.bounds)


@meaning(nn.CompareOp)
def _compare(op: nn.CompareOp, arrays: Arrays) -> Array:
    return compare(op.predicate.data, arrays[0], arrays[1])


def _coded_select(op: nn.SelectOp, arrays: Arrays) -> Array | None:
    return np.where(arrays[0], arrays[1], arrays[2]) if op.moves_codes else None


@meaning(nn.SelectOp, coded=_coded_select)
def _select(op: nn.SelectOp, arrays: Arrays) -> Array:
    return np.where(arrays[0], arrays[1], arrays[2])


def check_indices(indices: Array, size: int) -> None:
    """Raise QcompError for indices outside -size to size - 1."""
    if indices.size and not -size <= int(indices.min()) <= int(indices.max()) < size:
        raise QcompError(f"indices outside {-size} to {size - 1}", code="index")
