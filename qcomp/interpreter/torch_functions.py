# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which aten overload each function by name stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Operation

from qcomp.dialects import nn

Values = Sequence[Any]
Kernel = Callable[[Any, Values], Any]
_AS_NAMED = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erfc", "exp2", "expm1",
    "floor", "hardshrink", "log", "log10", "log1p", "log2", "log_sigmoid", "logit", "mish", "nan_to_num", "reciprocal",
    "round", "sign", "sin", "sinh", "softplus", "softshrink", "tan", "threshold", "trunc", "atan2", "copysign",
    "fmax", "fmin", "fmod", "heaviside", "hypot", "logaddexp", "pow", "remainder", "xlogy", "floor_divide", "elu",
)  # fmt: skip


def _round_decimals(x: Any, decimals: float) -> Any:
    return x.round(decimals=int(decimals))


def _wrap_index(x: Any, size: float) -> Any:
    return x.where(x >= 0, x + int(size))


def _trunc_divide(x: Any, y: Any) -> Any:
    return x.div(y, rounding_mode="trunc")


def functions(torch: Any) -> dict[type[Operation], Kernel]:
    """The kernels of functions, comparison and choice."""
    aten = torch.ops.aten
    table: dict[str, Callable[..., Any]] = {name: getattr(aten, name) for name in _AS_NAMED if name != "log_sigmoid"}
    table |= {
        "log_sigmoid": torch.nn.functional.logsigmoid,
        "round_decimals": _round_decimals,
        "wrap_index": _wrap_index,
        "and": aten.bitwise_and, "or": aten.bitwise_or, "xor": aten.bitwise_xor,
        "shift_left": aten.bitwise_left_shift, "shift_right": aten.bitwise_right_shift,
        "trunc_divide": _trunc_divide,
    }  # fmt: skip
    return {
        nn.FunctionOp: lambda op, v: table[op.function.data](v[0], *op.numbers),
        nn.BinaryFunctionOp: lambda op, v: _activated(aten, op, table[op.function.data](v[0], v[1])),
        nn.CompareOp: lambda op, v: getattr(aten, op.predicate.data)(v[0], v[1]),
        nn.SelectOp: lambda op, v: aten.where(v[0], v[1], v[2]),
    }


def _activated(aten: Any, op: nn.BinaryFunctionOp, value: Any) -> Any:
    return value if op.activation is None else aten.clamp(value, *op.activation.bounds)
