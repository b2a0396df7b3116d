# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The op table: a handler per target, split by topic. It gets the builder and a node and returns the results."""

from __future__ import annotations

from qcomp.frontend.ops import (
    attention,
    bags,
    comparison,
    convolution,
    creation,
    dynamic,
    einsum,
    elementwise,
    functions,
    linear,
    norm,
    numeric,
    padding,
    pooling,
    quantized,
    recurrent,
    reduction,
    resize,
    sampling,
    shape,
    split,
    strided,
    writing,
)
from qcomp.frontend.ops.table import HANDLERS, Handler

__all__ = [
    "HANDLERS",
    "Handler",
    "attention",
    "bags",
    "comparison",
    "convolution",
    "creation",
    "dynamic",
    "einsum",
    "elementwise",
    "functions",
    "linear",
    "norm",
    "numeric",
    "padding",
    "pooling",
    "quantized",
    "recurrent",
    "reduction",
    "resize",
    "sampling",
    "shape",
    "split",
    "strided",
    "writing",
]
