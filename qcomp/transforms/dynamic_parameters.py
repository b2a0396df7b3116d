# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops that compute scale and zero point of a tensor from its range, as torch and torchao choose them.

Used by the frontend for ``choose_qparams`` ops and by `insert-qdq` for dynamic observers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects.nn import AmaxOp, ConstantOp, NegOp
from qcomp.dialects.nn.base import shape
from qcomp.dialects.quant import ChooseScaleOp, ChooseZeroPointOp, is_unsigned

Add = Callable[[Operation], SSAValue]


@dataclass(frozen=True)
class Parameters:
    """How parameters follow from a range.

    divisor: steps of the range; floor: the least scale; zero_point: a constant, or None for one that is chosen;
    nearest: see `quant.choose_zero_point`.
    """

    qmin: int
    qmax: int
    divisor: float
    floor: float
    symmetric: bool
    zero_point: int | None
    nearest: bool = False

    @staticmethod
    def per_tensor(qmin: int, qmax: int, floor: float, symmetric: bool, storage: Attribute) -> Parameters:
        """torch's ``choose_qparams`` and ``choose_qparams_symmetric``: unsigned codes are symmetric around 128."""
        steps = float(qmax - qmin)
        if not symmetric:
            return Parameters(qmin, qmax, steps, floor, False, None)
        return Parameters(qmin, qmax, steps / 2, floor, True, 128 if is_unsigned(storage) else 0)


def parameters_of(
    add: Add, value: SSAValue, rule: Parameters, axes: Sequence[int] | None = None
) -> tuple[SSAValue, SSAValue]:  # fmt: skip
    """Scale (f32) and zero point (i32) of `value` over `axes`, which stay with size 1; of the whole: 0-d.

    `add` inserts an op and gives its result.
    """
    keep = axes is not None
    high = add(AmaxOp(value, axes or (), keep))
    low = add(NegOp(add(AmaxOp(add(NegOp(value)), axes or (), keep))))
    scale = add(ChooseScaleOp(low, high, rule.divisor, rule.floor, rule.symmetric))
    if rule.zero_point is None:
        return scale, add(ChooseZeroPointOp(low, high, scale, rule.qmin, rule.qmax, rule.nearest))
    # One number serves all scales.
    return scale, add(ConstantOp(np.full((1,) * len(shape(scale)), rule.zero_point, np.int32)))
