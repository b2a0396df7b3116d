# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every op of the tensor dialects has a meaning, and a torch kernel where torch has one."""

from __future__ import annotations

from typing import Any

import pytest

from qcomp.dialects.nn import CONTROL, ConstantOp, DynamicLinearOp, Nn
from qcomp.dialects.quant import Quant
from qcomp.interpreter.dispatch import meaning_of

# The interpreter runs regions itself.
OPS = [op for op in (*Nn.operations, *Quant.operations) if op not in CONTROL]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_has_a_meaning(op: Any):
    assert meaning_of(op) is not None, f"bind a reference function to {op.name} in qcomp/interpreter/ops"


def test_every_nn_op_has_a_torch_kernel():
    torch = pytest.importorskip("torch")
    from qcomp.interpreter.torch_kernels import kernels

    missing = set(Nn.operations) - set(kernels(torch)) - {*CONTROL, ConstantOp, DynamicLinearOp}
    assert not missing, f"without a kernel in torch_kernels.py: {sorted(op.name for op in missing)}"
