# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""x86-64 with AVX-512 and VNNI, spelled as intrinsics.

Units are registers: 16 lanes of i32, f32 or i16; 16, 32 or 64 bytes; for `loop.contract` one broadcast group (left)
and 16 groups (right). Additions of floats carry an explicit rounding mode: compilers do not contract those into
fused multiply-adds, whatever flags they are given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.backend.emit_c.isa import Isa, float_literal, int_literal, is_tile, number_literal
from qcomp.backend.emit_c.reals import vector
from qcomp.dialects import loop
from qcomp.errors import QcompError

_ROUND = "_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC"
_REGISTERS = {16: "__m128i", 32: "__m256i", 64: "__m512i"}
_PREFIX = {16: "_mm_", 32: "_mm256_", 64: "_mm512_"}
_BITS = {16: "si128", 32: "si256", 64: "si512"}


def contract_role(value: SSAValue) -> str | None:
    """Whether `value`, or what it is widened to, is the left or right operand of a contraction, else None."""
    for use in value.uses:
        if isinstance(use.operation, loop.WidenHalfOp):
            return contract_role(use.operation.result)
        if isinstance(use.operation, loop.ContractOp) and use.index in (1, 2):
            return "left" if use.index == 1 else "right"
    return None


def _element(value: SSAValue) -> str:
    return str(loop.tile_element(value.type))


class Avx512(Isa):
    """AVX-512 F, BW, DQ, VL and VNNI."""

    includes: Sequence[str] = ("immintrin.h",)

    def unit_shape(self, value: SSAValue) -> tuple[int, ...]:
        if not is_tile(value):
            return ()
        shape = loop.tile_shape(value.type)
        role = contract_role(value)
        if role is not None:
            return shape[-1:] if role == "left" else shape[-2:]
        return shape[-2:] if shape[-2:] == (16, 1) else shape[-1:]

    def unit_type(self, value: SSAValue) -> str:
        if not is_tile(value):
            return super().unit_type(value)
        if _element(value) in ("f32", "i1"):
            return "__m512" if _element(value) == "f32" else "__mmask16"
        if _element(value) == "i16":
            return "__m256i"
        if _element(value) == "i32" or contract_role(value) is not None:
            return "__m512i"
        return _REGISTERS[self._bytes(value)]

    def _bytes(self, value: SSAValue) -> int:
        size = math.prod(self.unit_shape(value))
        if _element(value) != "i8" or size not in _REGISTERS:
            raise QcompError(f"no register holds {size} elements of {_element(value)}", code="emit")
        return size

    def load(self, value: SSAValue, address: str, strides: Sequence[int | str], valid: int | str | None) -> str:
        if not is_tile(value):
            return super().load(value, address, strides, valid)
        if contract_role(value) == "left":
            return f"_mm512_set1_ps(*({address}))" if _element(value) == "f32" else f"broadcast4({address})"
        count = math.prod(self.unit_shape(value))
        if strides[-1] == 0 and count > 1 and contract_role(value) is None:
            return self.splat(value, f"*({address})")
        if strides[-1] != 1 and count > 1 and contract_role(value) is None:
            return f"gather_{_element(value)}({address}, {strides[-1]}, {valid or count})"
        if _element(value) == "f32":
            return f"_mm512_maskz_loadu_ps({_mask(valid)}, {address})" if valid else f"_mm512_loadu_ps({address})"
        if _element(value) == "i32":
            return f"_mm512_maskz_loadu_epi32({_mask(valid)}, {address})" if valid else f"_mm512_loadu_si512({address})"
        if _element(value) == "i16":
            call = f"_mm256_maskz_loadu_epi16({_mask(valid)}, {address})"
            return call if valid else f"_mm256_loadu_si256((const void *)({address}))"
        size = 64 if contract_role(value) == "right" else self._bytes(value)
        if valid:
            return f"{_PREFIX[size]}maskz_loadu_epi8({_mask(valid)}, {address})"
        return f"{_PREFIX[size]}loadu_{_BITS[size]}((const void *)({address}))"

    def store(
        self, value: SSAValue, unit: str, address: str, strides: Sequence[int | str], valid: int | str | None
    ) -> str:
        if not is_tile(value):
            return super().store(value, unit, address, strides, valid)
        count = loop.tile_shape(value.type)[-1]
        if strides[-1] != 1 and count > 1:
            return f"scatter_{_element(value)}({address}, {strides[-1]}, {valid or count}, {unit});"
        if _element(value) == "f32":
            call = f"_mm512_mask_storeu_ps({address}, {_mask(valid)}, {unit});"
            return call if valid else f"_mm512_storeu_ps({address}, {unit});"
        if _element(value) == "i32":
            call = f"_mm512_mask_storeu_epi32({address}, {_mask(valid)}, {unit});"
            return call if valid else f"_mm512_storeu_si512({address}, {unit});"
        if _element(value) == "i16":
            call = f"_mm256_mask_storeu_epi16({address}, {_mask(valid)}, {unit});"
            return call if valid else f"_mm256_storeu_si256((void *)({address}), {unit});"
        size = self._bytes(value)
        if valid:
            return f"{_PREFIX[size]}mask_storeu_epi8({address}, {_mask(valid)}, {unit});"
        return f"{_PREFIX[size]}storeu_{_BITS[size]}((void *)({address}), {unit});"

    def splat(self, value: SSAValue, scalar: str) -> str:
        if not is_tile(value):
            return scalar
        if _element(value) == "f32":
            return f"_mm512_set1_ps({scalar})"
        if _element(value) == "i32":
            return f"_mm512_set1_epi32({scalar})"
        if _element(value) == "i16":
            return f"_mm256_set1_epi16({scalar})"
        return f"{_PREFIX[self._bytes(value)]}set1_epi8({scalar})"

    def contract(self, op: loop.ContractOp, acc: str, lhs: str, rhs: str) -> str:
        if _element(op.acc) == "f32":
            return f"_mm512_fmadd_ps({lhs}, {rhs}, {acc})"
        if op.lhs_unsigned is None or op.rhs_unsigned is not None:
            raise QcompError.at(
                op,
                "the dot instruction takes unsigned times signed bytes",
                code="emit",
                hint="run unsigned-activations",
            )
        return f"_mm512_dpbusd_epi32({acc}, {lhs}, {rhs})"

    def multiply_add(self, op: loop.ContractOp | loop.MultiplyAddOp, acc: str, lhs: str, rhs: str) -> str:
        if not is_tile(op.acc):
            return super().multiply_add(op, acc, lhs, rhs)
        if _element(op.acc) == "f32":
            return f"_mm512_fmadd_ps({lhs}, {rhs}, {acc})"
        left, right = (
            f"_mm512_cvtep{'u' if unsigned is not None else 'i'}8_epi32({unit})"
            for unit, unsigned in ((lhs, op.lhs_unsigned), (rhs, op.rhs_unsigned))
        )
        # A zero-extended byte has an upper half of 0, so the pairwise 16-bit multiply-add is the product itself.
        product = "madd_epi16" if op.lhs_unsigned is not None else "mullo_epi32"
        return f"_mm512_add_epi32({acc}, _mm512_{product}({left}, {right}))"

    def elementwise(self, op: Operation, units: Sequence[str]) -> str:
        if not is_tile(op.operands[0]):
            return super().elementwise(op, units)
        text = vector(op, units)
        if text is not None:
            return text
        return self.unary(op, *units) if len(units) == 1 else self.binary(op, *units[:2])

    def reduce(self, op: loop.ReduceOp, unit: str) -> str:
        if loop.tile_shape(op.input.type) != (16,):
            raise QcompError.at(op, "registers of 16 lanes are reduced", code="emit")
        kind = "" if _element(op.input) == "f32" else "_i32"
        return f"reduce_{op.kind.data}16{kind}({unit})"

    def fill(self, op: loop.FillOp, unit: str, kept: int | str | None) -> str:
        mask, number = _mask(kept), self.splat(op.result, number_literal(op.number))
        return f"_mm512_mask_mov_{'ps' if _element(op.result) == 'f32' else 'epi32'}({number}, {mask}, {unit})"

    def unary(self, op: Operation, unit: str) -> str:
        if not is_tile(op.operands[0]):
            return super().unary(op, unit)
        match op:
            case loop.ExtendOp():
                return f"_mm512_cvtep{'u' if op.unsigned is not None else 'i'}8_epi32({unit})"
            case loop.WidenHalfOp():
                return f"widen_{op.half}_16({unit})"
            case loop.NarrowHalfOp():
                return f"narrow_{op.half}_16({unit})"
            case loop.ToFloatOp():
                return f"_mm512_cvtepi32_ps({unit})"
            case loop.RoundOp():
                bounded = op.bounded is not None
                return f"_mm512_cvtps_epi32({unit})" if bounded else f"round_saturated16({unit}, {op.nan_result})"
            case loop.NarrowOp():
                return _narrow(*op.bounds, unit)
            case loop.ClampOp():
                low, high = op.bounds
                if low > -math.inf:
                    unit = f"_mm512_max_ps(_mm512_set1_ps({float_literal(low)}), {unit})"
                if high < math.inf:
                    unit = f"_mm512_min_ps(_mm512_set1_ps({float_literal(high)}), {unit})"
                return unit
            case _:
                return super().unary(op, unit)

    def lookup(self, op: loop.LookupOp, table: str, unit: str) -> str:
        if not is_tile(op.input):
            return super().lookup(op, table, unit)
        if (_element(op.input), _element(op.result)) == ("i32", "f32"):
            return f"_mm512_permutexvar_ps({unit}, _mm512_loadu_ps({table}))"
        if _element(op.result) != "i8":
            raise QcompError.at(op, "registers of bytes are looked up in tables of bytes", code="emit")
        return f"lookup{self._bytes(op.input)}({table}, {unit})"

    def binary(self, op: Operation, lhs: str, rhs: str) -> str:
        result = op.results[0]
        if not is_tile(result):
            return super().binary(op, lhs, rhs)
        if op.name in ("arith.addf", "arith.subf"):
            return f"_mm512_{op.name[6:9]}_round_ps({lhs}, {rhs}, {_ROUND})"
        call = _binary_call(op.name, result.type, self._bytes(result) if _element(result) == "i8" else 64)
        if call is None:
            raise QcompError.at(op, "is not emitted for AVX-512", code="emit")
        return f"{call}({lhs}, {rhs})"


def _binary_call(name: str, kind: Attribute, size: int) -> str | None:
    element = str(loop.tile_element(kind))
    if element == "i8":
        suffix = {"maxsi": "max_epi8", "minsi": "min_epi8", "maxui": "max_epu8", "minui": "min_epu8"}
        return _PREFIX[size] + suffix[name[6:]] if name[6:] in suffix else None
    table = {
        "addi": "add_epi32", "subi": "sub_epi32", "muli": "mullo_epi32", "maxsi": "max_epi32", "minsi": "min_epi32",
        "shli": "sllv_epi32", "mulf": "mul_ps", "divf": "div_ps",
    }  # fmt: skip
    return "_mm512_" + table[name[6:]] if name[6:] in table else None


def _narrow(low: int, high: int, unit: str) -> str:
    if (low, high) == (-128, 127):
        return f"_mm512_cvtsepi32_epi8({unit})"
    unit = f"_mm512_max_epi32({unit}, _mm512_set1_epi32({int_literal(low)}))"
    if high == 255:
        return f"_mm512_cvtusepi32_epi8({unit})"
    if high == 127:
        return f"_mm512_cvtsepi32_epi8({unit})"
    return f"_mm512_cvtepi32_epi8(_mm512_min_epi32({unit}, _mm512_set1_epi32({int_literal(high)})))"


def _mask(valid: int | str | None) -> str:
    if isinstance(valid, str):
        return f"first_lanes({valid})"
    return f"0x{(1 << (valid or 0)) - 1:X}u" + ("ll" if (valid or 0) > 32 else "")
