# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What became of every op: how many multiplications it does, in integers or in floats, and why not in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.backend.marks import unmarked
from qcomp.dialects import nn
from qcomp.dialects.dim import to_plain
from qcomp.dialects.element import is_float, numpy_dtype
from qcomp.dialects.location import describe, module_path, source_line
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import DequantizeDynamicOp, DequantizeOp, QuantizeOp, encoding_of
from qcomp.transforms.coded_ops import computes_in_reals
from qcomp.transforms.coded_weights import is_coded
from qcomp.transforms.rewriting import RefusalRecord

_SILENT = (nn.ConstantOp, ReturnOp, FuncOp, ModuleOp)


def macs(op: Operation) -> int:
    """Multiplications of a convolution, linear or matmul; 0 for other ops."""
    if isinstance(op, nn.ConvTransposeOp):
        outputs, _, *kernel = shape(op.weight)
        return math.prod(shape(op.input)) * outputs // op.groups.value.data * math.prod(kernel)
    if isinstance(op, nn.WeightedOp):
        per_result = math.prod(shape(op.weight)[1:])
        return math.prod(shape(op.result)) * per_result
    if isinstance(op, nn.DynamicLinearOp):
        return math.prod(shape(op.result)) * shape(op.weight)[1]
    if isinstance(op, nn.MatmulOp):
        return math.prod(shape(op.result)) * shape(op.lhs)[-1]
    return 0


def quantized_macs(module: ModuleOp) -> int:
    """MACs of the convolutions and linears whose input and weight are quantized, fused or not."""
    found = [op for op in module.walk() if isinstance(op, nn.WeightedOp)]
    return sum(macs(op) for op in found if _is_coded(op.input) and _is_coded(op.weight))


def integer_macs(module: ModuleOp) -> int:
    """MACs of the convolutions and linears that work on codes."""
    found = [op for op in module.walk() if isinstance(op, nn.WeightedOp | nn.DynamicLinearOp)]
    return sum(macs(op) for op in found if isinstance(op, nn.DynamicLinearOp) or encoding_of(op.input.type) is not None)


def ops_report(module: ModuleOp, refusals: Sequence[RefusalRecord]) -> list[dict[str, Any]]:
    """A row for every op of the final module at tensor level but constants and their dequantization."""
    reasons: dict[tuple[str | None, str], list[str]] = {}
    for record in refusals:
        rows = reasons.setdefault((record.location, record.op), [])
        if record.reason not in rows:
            rows.append(record.reason)
    return [_row(op, reasons) for op in module.walk() if not isinstance(op, _SILENT) and not is_coded(op)]


def _row(op: Operation, reasons: dict[tuple[str | None, str], list[str]]) -> dict[str, Any]:
    compute = _compute(op)
    place = describe(op.location)
    names = [op.name, QuantizeOp.name] if any(encoding_of(value.type) for value in op.results) else [op.name]
    known = dict.fromkeys(reason for name in names for reason in reasons.get((place, name), []))
    found = list(known) if compute.startswith("f") else []
    name = module_path(op.location) or (unmarked(op.results[0]) if op.results else None) or op.name
    row: dict[str, Any] = {
        "name": name, "op": op.name, "loc": source_line(op.location), "macs": to_plain(macs(op)), "compute": compute,
        "memory": _memory(op),
    }  # fmt: skip
    return {**row, "reason": "; ".join(found) or None}


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


def _is_coded(value: SSAValue) -> bool:
    """Whether `value` holds codes, or numbers that a dequantize made of codes, moved since or not."""
    while True:
        if encoding_of(value.type) is not None:
            return True
        owner = value.owner
        if isinstance(owner, DequantizeOp | DequantizeDynamicOp):
            return True
        if not isinstance(owner, nn.MovementOp | nn.CatOp | nn.MaxPoolOp | nn.AdaptiveMaxPoolOp) or not owner.operands:
            return False
        value = owner.operands[0]
