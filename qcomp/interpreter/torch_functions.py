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
        **_indexing(torch),
    }


def _indexing(torch: Any) -> dict[type[Operation], Kernel]:
    def scan(op: nn.ScanOp, values: Values) -> Any:
        dim, kind = op.dim.value.data, op.kind.data
        match kind:
            case "add" | "mul":
                return (torch.cumsum if kind == "add" else torch.cumprod)(values[0], dim, dtype=values[0].dtype)
            case "logaddexp":
                return torch.logcumsumexp(values[0], dim)
            case _:
                found = (torch.cummax if kind.endswith("max") else torch.cummin)(values[0], dim)
                return found.indices if kind.startswith("arg") else found.values

    def scatter(op: nn.ScatterOp, values: Values) -> Any:
        base, indices, source = values
        kinds = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
        where = (op.dim.value.data, indices.long().expand(source.shape), source)
        if op.reduce.data == "none":
            return base.scatter(*where)
        return base.scatter_reduce(*where, kinds[op.reduce.data])

    def gather(op: nn.GatherOp, values: Values) -> Any:
        dim, shape = op.dim.value.data, list(op.result.type.get_shape())
        wide = [*shape[:dim], values[0].shape[dim], *shape[dim + 1 :]]
        return values[0].expand(wide).gather(dim, values[1].long().expand(shape))

    def place(function: Any) -> Kernel:
        return lambda op, v: function(v[0], op.axes[0], bool(op.keepdim.value.data))

    return {
        nn.ScanOp: scan, nn.ScatterOp: scatter, nn.GatherOp: gather, nn.ProdOp: _product,
        nn.ArgsortOp: lambda op, v: torch.argsort(
            v[0], dim=op.dim.value.data, descending=bool(op.descending.value.data), stable=True
        ),
        nn.AminOp: lambda op, v: torch.amin(v[0], op.axes, bool(op.keepdim.value.data)),
        nn.ArgmaxOp: place(torch.argmax),
        nn.ArgminOp: place(torch.argmin),
    }  # fmt: skip


def _product(op: nn.ProdOp, values: Values) -> Any:
    result = values[0]
    for axis in reversed(op.axes):
        result = result.prod(axis, keepdim=bool(op.keepdim.value.data), dtype=result.dtype)
    return result


def _activated(aten: Any, op: nn.BinaryFunctionOp, value: Any) -> Any:
    return value if op.activation is None else aten.clamp(value, *op.activation.bounds)
