# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Relu and clamp as intervals: which op is one, what two in a row are, the attribute that fuses one."""

from __future__ import annotations

import math

from xdsl.ir import Operation

from qcomp.dialects.nn import ActivationAttr, ClampAttr, ClampOp, ReluAttr, ReluOp

Bounds = tuple[float, float]
RELU: Bounds = (0.0, math.inf)


def bounds_of(op: Operation) -> Bounds | None:
    """The interval that a relu or clamp op clamps to; None for any other op."""
    if isinstance(op, ReluOp):
        return RELU
    return op.bounds if isinstance(op, ClampOp) else None


def merge(first: Bounds, second: Bounds) -> Bounds | None:
    """The bounds of the clamp to `first` and then to `second`.

    Of bounds that compare equal the first one counts, as with the comparisons themselves (-0.0 against 0.0). None when
    both bounds would be zero: one clamp lets 0.0 and -0.0 through as they are, two need not.
    """
    (a, b), (c, d) = first, second
    raised = b if b >= c else c
    low, high = (a if a >= c else c), (raised if raised <= d else d)
    if low == high == 0.0:
        return None
    return low, high


def activation_attribute(bounds: Bounds) -> ActivationAttr:
    """The attribute that clamps to `bounds`."""
    if bounds == RELU and math.copysign(1.0, bounds[0]) > 0:
        return ReluAttr()
    return ClampAttr.of(*bounds)
