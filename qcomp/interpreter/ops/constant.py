# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn.constant."""

from __future__ import annotations

from qcomp.dialects.nn import ConstantOp
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference.array import Array


@meaning(ConstantOp, raw=True)
def _constant(op: ConstantOp, arrays: Arrays) -> Array:
    return op.array
