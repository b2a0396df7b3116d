# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors made out of sizes; symbols have been replaced by numbers before."""

from __future__ import annotations

import numpy as np

from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn import ArangeOp, DimValueOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.errors import QcompError
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference.array import Array


def _number(size: int) -> int:
    if is_symbolic(size):
        raise QcompError(
            f"the size {size} is not known", code="dynamic-shape", hint="run main, or specialize-dims first"
        )
    return size


@meaning(DimValueOp)
def _dim_value(op: DimValueOp, arrays: Arrays) -> Array:
    return np.array(_number(op.size), np.int64)


@meaning(ArangeOp)
def _arange(op: ArangeOp, arrays: Arrays) -> Array:
    (count,) = (_number(size) for size in shape(op.result))
    numbers = _number(op.first) + np.arange(count, dtype=np.int64) * op.step.value.data
    return numbers.astype(numpy_dtype(tensor(op.result).element_type))
