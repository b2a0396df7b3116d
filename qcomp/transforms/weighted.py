# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making a convolution or linear like another one, with other operands."""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import SSAValue

from qcomp.dialects.nn import ActivationAttr, WeightedOp
from qcomp.dialects.nn.base import SEGMENTS, Tensor

OpT = TypeVar("OpT", bound=WeightedOp)


def rebuild(
    op: OpT,
    value: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    residual: SSAValue | None,
    activation: ActivationAttr | None,
    result_type: Tensor,
) -> OpT:
    """An op with the attributes and location of `op` and these operands, activation and result type."""
    optional = (bias, residual)
    properties = {name: attr for name, attr in op.properties.items() if name != "activation"}
    properties[SEGMENTS] = DenseArrayBase.from_list(i32, [1, 1, *(int(item is not None) for item in optional)])
    if activation is not None:
        properties["activation"] = activation
    new = type(op).create(
        operands=[value, weight, *(item for item in optional if item is not None)],
        result_types=[result_type],
        properties=properties,
        attributes=dict(op.attributes),
        location=op.location,
    )
    return new
