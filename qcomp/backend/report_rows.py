# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rows of a report: multiply-adds of each op, its numbers, and why they are not integers."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation

from qcomp.backend.macs import macs
from qcomp.backend.marks import unmarked
from qcomp.backend.reasons import Reasons
from qcomp.backend.report import OpRow
from qcomp.dialects import nn
from qcomp.dialects.dim_json import to_plain
from qcomp.dialects.element import is_float, numpy_dtype
from qcomp.dialects.location import module_path, source_line
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import DequantizeOp, QuantizeOp, encoding_of
from qcomp.transforms.coded_ops import computes_in_reals
from qcomp.transforms.coded_weights import is_coded

_SILENT = (nn.ConstantOp, ReturnOp, FuncOp, ModuleOp)


def ops_report(module: ModuleOp, reasons: Reasons | None) -> list[OpRow]:
    """Return a row for every op of the final module at tensor level but constants and their dequantization.

    reasons: for the ops of a quantized program that compute in floats.
    """
    return [_row(op, reasons) for op in module.walk() if not isinstance(op, _SILENT) and not is_coded(op)]


def _row(op: Operation, reasons: Reasons | None) -> OpRow:
    compute = _compute(op)
    in_float = is_float_name(compute)
    name = module_path(op.location) or (unmarked(op.results[0]) if op.results else None) or op.name
    work: Any = to_plain(macs(op))  # an expression of symbols in the manifest, a number in a report
    return {
        "name": name, "op": op.name, "loc": source_line(op.location), "macs": work, "compute": compute,
        "memory": _memory(op), "reason": reasons.of(op) if reasons is not None and in_float else None,
    }  # fmt: skip


def is_float_name(kind: str) -> bool:
    """Return whether `kind`, of `compute` or `memory`, is a floating-point type."""
    return kind.startswith(("f", "bf"))


def _compute(op: Operation) -> str:
    """The numbers an op computes with: "i8" and "i16" are codes."""
    if computes_in_reals(op):
        return "f32" if encoding_of(op.operands[0].type) is not None else _kind(op)
    values = [*op.operands, *op.results]
    # A bias in 32 bits is added to sums of products of what the others hold.
    bias = op.bias if isinstance(op, nn.WeightedOp) else None
    coded = [encoding for value in values if value is not bias and (encoding := encoding_of(value.type)) is not None]
    beside = isinstance(op, nn.UnaryOp | nn.BinaryOp | nn.SelectOp | nn.ReduceOp) and _reads_or_makes_floats(op)
    if coded and not beside and not isinstance(op, QuantizeOp | DequantizeOp):
        return f"i{max(encoding.width for encoding in coded)}"
    return _kind(op)


def _reads_or_makes_floats(op: Operation) -> bool:
    """Whether floats that are no constants stand beside codes; but reductions of codes are integer sums."""
    values = op.operands[:1] if isinstance(op, nn.ReduceOp) else (*op.operands, *op.results)
    return any(is_float(tensor(value).element_type) and not isinstance(value.owner, nn.ConstantOp) for value in values)


def _kind(op: Operation) -> str:
    """The element type of what is not quantized: of floats if there are any, of the last value."""
    values = [v for v in (*op.operands, *op.results) if encoding_of(v.type) is None]
    kinds = [str(cast(TensorType[Attribute], v.type).element_type) for v in values]
    floats = [kind for kind in kinds if kind.startswith(("f", "bf"))]
    return (floats or kinds or [op.name])[-1]


def _memory(op: Operation) -> str:
    """The widest of what lies in memory for `op`, constants, indices and truth values aside; "-" for none."""
    found: list[tuple[int, str]] = []
    for value in (*op.operands, *op.results):
        encoding, kind = encoding_of(value.type), tensor(value).element_type
        if encoding is not None:
            found.append((encoding.width, f"i{encoding.width}"))
        elif is_float(kind) and not isinstance(value.owner, nn.ConstantOp):
            found.append((8 * numpy_dtype(kind).itemsize, str(kind)))
    return max(found, default=(0, "-"))[1]
