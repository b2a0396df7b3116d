# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on reals, comparisons and conversions of integers in C: one unit of the result from units of operands.

`scalar` spells them in plain C99, `vector` for registers of 16 lanes. Both return None for ops they do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation

from qcomp.dialects import loop

Units = Sequence[str]
_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_QUIET = {"eq": "EQ_OQ", "ne": "NEQ_UQ", "lt": "LT_OQ", "le": "LE_OQ", "gt": "GT_OQ", "ge": "GE_OQ"}
_WHOLE = {"eq": "eq", "ne": "neq", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_SCALAR: dict[str, str] = {
    "loop.select": "{0} ? {1} : {2}",
    "loop.maximum": "{0} > {1} || {0} != {0} ? {0} : {1}",
    "loop.minimum": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "arith.negf": "-{0}",
    "arith.andi": "{0} & {1}",
    "arith.ori": "{0} | {1}",
    "arith.xori": "{0} ^ {1}",
}
_CALLS = {
    "arith.shrsi": "shift_right", "arith.floordivsi": "floor_quotient", "math.absf": "absolute",
    "math.copysign": "copy_sign", "math.sqrt": "square_root", "math.roundeven": "round_even",
    "loop.remainder": "remainder_of", "loop.scale": "scale_by",
}  # fmt: skip
"""Helper functions; those of f64 and i64 end in the type."""
_VECTOR: dict[str, str] = {
    "loop.maximum": "maximum16({0}, {1})",
    "loop.minimum": "minimum16({0}, {1})",
    "loop.scale": "_mm512_scalef_ps({0}, {1})",
    "loop.truncate": "truncate16({0})",
    "arith.negf": "_mm512_xor_ps({0}, _mm512_set1_ps(-0.0f))",
    "arith.shrsi": "_mm512_srav_epi32({0}, {1})",
    "math.absf": "_mm512_abs_ps({0})",
    "math.copysign": "copy_sign16({0}, {1})",
    "math.sqrt": "_mm512_sqrt_ps({0})",
    "math.roundeven": "_mm512_roundscale_ps({0}, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)",
}
_BITWISE = {"arith.andi": ("and", "&"), "arith.ori": ("or", "|"), "arith.xori": ("xor", "^")}


def scalar(op: Operation, units: Units, c_type: Callable[[Attribute], str]) -> str | None:
    """C99."""
    match op:
        case loop.CompareOp():
            return f"{units[0]} {_OPERATORS[op.predicate.data]} {units[1]}"
        case loop.TruncateOp():
            suffix = "_f64" if str(loop.tile_element(op.input.type)) == "f64" else ""
            return f"truncate_{loop.tile_element(op.result.type)}{suffix}({units[0]})"
        case loop.AngleOp():
            suffix = "_f64" if str(loop.tile_element(op.result.type)) == "f64" else ""
            return f"angle_{op.part.data}{suffix}({units[0]})"
        case _:
            pass
    source, target = (loop.tile_element(value.type) for value in (op.operands[0], op.results[0]))
    match op.name:
        case "arith.bitcast":
            double = "_f64" if "f64" in (str(source), str(target)) else ""
            return f"{'real_of' if str(target) in ('f32', 'f64') else 'bits_of'}{double}({units[0]})"
        case name if name in _CALLS:
            suffix = {"f64": "_f64", "i64": "_i64", "index": "_i64"}.get(str(target), "")
            return f"{_CALLS[name]}{suffix}({', '.join(units)})"
        case "arith.extsi" | "arith.trunci" | "arith.extf" | "arith.truncf" | "arith.index_cast":
            return f"({c_type(target)}){units[0]}"
        case "arith.extui":
            unsigned = "" if source == IntegerType(1) else f"(u{c_type(source)})"
            return f"({c_type(target)}){unsigned}{units[0]}"
        case name:
            return _SCALAR[name].format(*units) if name in _SCALAR else None


def vector(op: Operation, units: Units) -> str | None:
    """AVX-512; i1 is a mask register."""
    element = str(loop.tile_element(op.operands[-1].type))
    match op:
        case loop.CompareOp():
            if element == "f32":
                return f"_mm512_cmp_ps_mask({units[0]}, {units[1]}, _CMP_{_QUIET[op.predicate.data]})"
            name = f"_mm512_cmp{_WHOLE[op.predicate.data]}_epi32_mask"
            return f"{name}({units[0]}, {units[1]})" if element == "i32" else None
        case loop.SelectOp() if element in ("f32", "i32"):
            suffix = "ps" if element == "f32" else "epi32"
            return f"_mm512_mask_blend_{suffix}({units[0]}, {units[2]}, {units[1]})"
        case loop.AngleOp():
            return f"angle_{op.part.data}16({units[0]})"
        case _:
            pass
    pair = (element, str(loop.tile_element(op.results[0].type)))
    if op.name in _BITWISE and pair[1] in ("i1", "i32"):
        word, sign = _BITWISE[op.name]
        return f"_mm512_{word}_si512({units[0]}, {units[1]})" if pair[1] == "i32" else f"{units[0]} {sign} {units[1]}"
    match (op.name, *pair):
        case ("arith.bitcast", "f32", "i32"):
            return f"_mm512_castps_si512({units[0]})"
        case ("arith.bitcast", "i32", "f32"):
            return f"_mm512_castsi512_ps({units[0]})"
        case _:
            return _VECTOR[op.name].format(*units) if op.name in _VECTOR else None
