# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why an op of a quantized model computes in floats: one short sentence for each.

What a pass refused comes first. Most ops were never asked, since nothing around them is quantized: their sentence says
which of their operands and results are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from qcomp.backend.macs import holds_codes
from qcomp.dialects import nn
from qcomp.dialects.element import is_float
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import (
    ChooseScaleOp,
    ChooseZeroPointOp,
    DequantizeDynamicOp,
    DequantizeOp,
    QuantizeDynamicOp,
    QuantizeOp,
    encoding_of,
)
from qcomp.transforms.coded_ops import computes_in_reals
from qcomp.transforms.rewriting import RefusalRecord

CONVERSIONS: Mapping[type[Operation], str] = {
    QuantizeOp: "turns floats into codes",
    DequantizeOp: "turns codes into floats",
    QuantizeDynamicOp: "turns floats into codes whose scale is found at run time",
    DequantizeDynamicOp: "turns codes whose scale is found at run time into floats",
    ChooseScaleOp: "finds the scale of codes at run time",
    ChooseZeroPointOp: "finds the zero point of codes at run time",
}
"""Ops that stand between floats and codes: they are no loss of integer work."""
CONVERSION_NAMES = frozenset(kind.name for kind in CONVERSIONS)

_INTEGER_RULES = ("FuseWithQuantize", "FuseWithFloatResult", "OnCodes", "ReadCodes")
"""The rules that make ops on codes, the most telling first."""


class Reasons:
    """The reasons of a module, out of the refusals that were logged while it was made.

    integer: whether the passes that make ops on codes ran at all.
    """

    def __init__(self, refusals: Iterable[RefusalRecord], integer: bool = True):
        self._integer = integer
        self._logged: dict[str, list[RefusalRecord]] = {}
        for record in refusals:
            if record.rule in _INTEGER_RULES:
                for value in record.values:
                    self._logged.setdefault(value, []).append(record)

    def of(self, op: Operation) -> str:
        """Return why `op`, which computes in floats, does not compute in integers."""
        if type(op) in CONVERSIONS:
            return CONVERSIONS[type(op)]
        if not self._integer:
            return "opt_level 0 computes in floats between codes"
        readers = [use.operation for result in op.results for use in result.uses]
        marked = [*op.results, *(reader.results[0] for reader in readers if isinstance(reader, QuantizeOp))]
        logged = [record for value in marked for record in self._logged.get(value.name_hint or "", [])]
        # The last refusal of a rule was made when everything in front of the op had its final form.
        latest = {record.rule: record for record in logged}
        for rule in _INTEGER_RULES:
            if rule in latest:
                return latest[rule].reason
        return _by_operands(op)


def _by_operands(op: Operation) -> str:
    others = [value for value in (*op.operands, *op.results) if is_float(tensor(value).element_type)]
    wide = [tensor(value).element_type for value in others if not isinstance(tensor(value).element_type, Float32Type)]
    if wide:
        return f"computes in {wide[0]}, integers replace f32 only"
    if computes_in_reals(op):
        return "has no integer form"
    operands = [value for value in op.operands if not isinstance(value.owner, nn.ConstantOp)]
    coded = [holds_codes(value) for value in operands]
    result = any(encoding_of(value.type) is not None or _is_rounded(value) for value in op.results)
    if isinstance(op, nn.WeightedOp | nn.MatmulOp) and len(op.operands) > 1 and coded[:1] == [False]:
        return _of_contraction(op, result)
    if not any(coded):
        return "its inputs are not quantized" if result else "nothing around it is quantized"
    if not all(coded):
        return f"its input {coded.index(False)} is not quantized" if len(coded) > 1 else "its input is not quantized"
    return "has no integer form" if result else "its result is not quantized"


def _of_contraction(op: Operation, result: bool) -> str:
    if holds_codes(op.operands[1]):
        return "only its weight is quantized"
    return "its inputs are not quantized" if result else "nothing around it is quantized"


def _is_rounded(value: SSAValue) -> bool:
    """Return whether `value` is quantized by who reads it."""
    return any(isinstance(use.operation, QuantizeOp | QuantizeDynamicOp) for use in value.uses)
