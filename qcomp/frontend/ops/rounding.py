# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where 16-bit floats are rounded: what is one kernel in torch and several ops here rounds once, at the result."""

from __future__ import annotations

from functools import wraps

from xdsl.ir import SSAValue

from qcomp.frontend.builder import Builder, Complex, Result, dtype_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import Handler


def in_float32(handler: Handler) -> Handler:
    """`handler` of a composite op: it sees float16 and bfloat16 in float32, and its float32 results are rounded back.

    Not when the node asks for another `dtype`.
    """

    @wraps(handler)
    def wide(b: Builder, node: Node) -> Result:
        results, half = b.widened(lambda: handler(b, node))
        if node.argument("dtype") is not None or b.flag(node, "half_to_float"):
            return results
        if isinstance(results, SSAValue | Complex | None):
            return rounded(b, results, half)
        return [rounded(b, value, half) for value in results]

    return wide


Value = SSAValue | Complex | None


def rounded(b: Builder, value: Value, half: str) -> Value:
    """`value` as `half` when it is float32 and something was widened; complex values stay."""
    if not isinstance(value, SSAValue):
        return value
    return b.cast(value, half) if half and dtype_of(value) == "float32" else value
