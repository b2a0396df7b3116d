# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Between f32 and the 16-bit floats, which lie in memory and registers as i16 patterns."""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, IntegerType, f32
from xdsl.ir import Attribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.loop.compute import tile_element, tile_like, tile_shape

i16 = IntegerType(16)


class _HalfOp(IRDLOperation):
    input = operand_def()
    result = result_def()
    half = prop_def(TypeAttribute)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `as` $half attr-dict `:` type($input) `->` type($result)"

    def _check(self, source: Attribute, target: Attribute) -> None:
        if not isinstance(self.half, Float16Type | BFloat16Type):
            raise VerifyException("the format must be f16 or bf16")
        if tile_shape(self.input.type) != tile_shape(self.result.type):
            raise VerifyException("shapes differ")
        if (tile_element(self.input.type), tile_element(self.result.type)) != (source, target):
            raise VerifyException(f"turns {source} into {target}")


@irdl_op_definition
class WidenHalfOp(_HalfOp):
    """i16 patterns of f16 or bf16 as f32, exactly."""

    name = "loop.widen_half"

    def __init__(self, value: SSAValue, half: Attribute):
        super().__init__(operands=[value], result_types=[tile_like(value.type, f32)], properties={"half": half})

    def verify_(self) -> None:
        self._check(i16, f32)


@irdl_op_definition
class NarrowHalfOp(_HalfOp):
    """f32 rounded half to even to f16 or bf16, as i16 patterns; NaN becomes a quiet one."""

    name = "loop.narrow_half"

    def __init__(self, value: SSAValue, half: Attribute):
        super().__init__(operands=[value], result_types=[tile_like(value.type, i16)], properties={"half": half})

    def verify_(self) -> None:
        self._check(f32, i16)
