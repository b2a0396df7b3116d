# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic: the loop dialect's own, arith's and math's, on scalars, indices, tiles, and batches of them."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np
from xdsl.dialects import affine, arith, math
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation

from qcomp.dialects.loop import (
    BroadcastOp,
    ClampOp,
    ContractOp,
    ExtendOp,
    MultiplyAddOp,
    NarrowOp,
    RoundOp,
    ToFloatOp,
    tile_element,
    tile_shape,
)
from qcomp.errors import QcompError
from qcomp.interpreter.loop.runtime import element_dtype
from qcomp.interpreter.loop.writer import Writer

EXACT_FLOAT32 = 2**24
"""Integers up to here, and sums of integers that stay below, are exact in float32."""


def contract(w: Writer, op: ContractOp) -> None:
    lhs, rhs = tile_shape(op.lhs.type), tile_shape(op.rhs.type)
    if str(tile_element(op.lhs.type)) in ("f32", "f64"):
        left = f"{w.read(op.lhs)}.reshape({_batch(w.is_batched(op.lhs), *lhs[:-1], *(1,) * (len(rhs) - 1))})"
        right = f"{w.read(op.rhs)}.reshape({_batch(w.is_batched(op.rhs), *(1,) * (len(lhs) - 1), *rhs[:-1])})"
        w.assign(op.result, f"{w.read(op.acc)} + {left} * {right}")
        return
    depth = lhs[-1]
    # Exact: products of bytes are below 2^16, so BLAS sums them without rounding.
    exact = "f32" if depth * 255 * 255 < EXACT_FLOAT32 else "f64"
    left = f"{_bytes(w, op, 'lhs')}.astype({exact})"
    right = f"{_bytes(w, op, 'rhs')}.astype({exact})"
    batch = w.is_batched(op.lhs, op.rhs)
    if w.is_batched(op.rhs):
        rows = _batch(w.is_batched(op.lhs), prod(lhs[:-1]), depth)
        product = f"{left}.reshape({rows}) @ {right}.reshape(-1, {prod(rhs[:-1])}, {depth}).swapaxes(1, 2)"
    else:
        product = f"{left}.reshape(-1, {depth}) @ {right}.reshape(-1, {depth}).T"
    shape = _batch(batch, *lhs[:-1], *rhs[:-1])
    w.assign(op.result, f"{w.read(op.acc)} + ({product}).astype(i32).reshape({shape})")


def _batch(batch: bool, *shape: int) -> str:
    return str((-1, *shape) if batch else shape)


def _bytes(w: Writer, op: ContractOp | MultiplyAddOp, side: str) -> str:
    """The bytes of an operand with the sign the op gives them."""
    value = w.read(op.lhs if side == "lhs" else op.rhs)
    return f"{value}.view(u8)" if f"{side}_unsigned" in op.properties else value


def multiply_add(w: Writer, op: MultiplyAddOp) -> None:
    if str(tile_element(op.lhs.type)) in ("f32", "f64"):
        product = f"{w.read(op.lhs)} * {w.read(op.rhs)}"
    else:
        product = f"{_bytes(w, op, 'lhs')}.astype(i32) * {_bytes(w, op, 'rhs')}.astype(i32)"
    w.assign(op.result, f"{w.read(op.acc)} + {product}")


def broadcast(w: Writer, op: BroadcastOp) -> None:
    how = "spread_batch" if w.is_batched(op.input) else "spread"
    w.assign(op.result, f"{how}({w.read(op.input)}, {tile_shape(op.result.type)})")


def extend(w: Writer, op: ExtendOp) -> None:
    w.assign(op.result, f"{w.read(op.input)}{'.view(u8)' if op.unsigned else ''}.astype(i32)")


def to_float(w: Writer, op: ToFloatOp) -> None:
    w.assign(op.result, f"{w.read(op.input)}.astype({w.dtype(op.result.type)})")


def round_(w: Writer, op: RoundOp) -> None:
    if op.bounded:
        w.assign(op.result, f"round_bounded({w.read(op.input)}, {w.constant(op)})")
    else:
        w.assign(op.result, f"round_to_int({w.read(op.input)}, {w.constant(np.float32(op.nan_result))})")


def narrow(w: Writer, op: NarrowOp) -> None:
    low, high = (w.constant(np.int32(bound)) for bound in op.bounds)
    cut = ".astype(i8)" if op.bounds[0] < 0 else ".astype(u8).view(i8)"
    w.assign(op.result, f"np.minimum(np.maximum({w.read(op.input)}, {low}), {high}){cut}")


def clamp(w: Writer, op: ClampOp) -> None:
    real = element_dtype(tile_element(op.result.type)).type
    low, high = (w.constant(real(bound)) for bound in op.bounds)
    w.assign(op.result, f"clamp({w.read(op.input)}, {low}, {high})")


def constant(w: Writer, op: arith.ConstantOp) -> None:
    kind, value = op.result.type, cast(Attribute, op.value)
    if isinstance(kind, IndexType):
        w.assign(op.result, str(cast(IntegerAttr[IndexType], value).value.data))
        return
    dtype = element_dtype(tile_element(kind))
    if isinstance(value, IntegerAttr):
        held = np.array(cast(IntegerAttr[IndexType], value).value.data, np.int64).astype(dtype)[()]
    elif isinstance(value, FloatAttr):
        held = np.array(value.value.data, np.float64).astype(dtype)[()]
    elif isinstance(value, DenseIntOrFPElementsAttr):
        flat = np.array(list(value.get_values()), np.float64 if dtype.kind == "f" else np.int64).astype(dtype)
        held = np.broadcast_to(flat if flat.size == 1 else flat.reshape(tile_shape(kind)), tile_shape(kind)).copy()
    else:
        raise QcompError.at(op, f"unknown kind of constant: {value}", code="unsupported-op")
    w.assign(op.result, w.constant(held))


def apply(w: Writer, op: affine.ApplyOp) -> None:
    w.assign(op.result, w.expressions(op.map.data, op.mapOperands)[0])


def minimum(w: Writer, op: affine.MinOp) -> None:
    results = w.expressions(op.map.data, op.arguments)
    text = results[0]
    for other in results[1:]:
        text = f"np.minimum({text}, {other})" if w.is_batched(op.result) else f"min({text}, {other})"
    w.assign(op.result, text)


def index_cast(w: Writer, op: arith.IndexCastOp) -> None:
    value = w.read(op.input)
    if isinstance(op.result.type, IndexType):
        w.assign(op.result, f"{value}.astype(i64)" if w.is_batched(op.input) else f"int({value})")
    else:
        w.assign(op.result, f"np.asarray({value}, i64).astype({w.dtype(op.result.type)})[()]")


def select(w: Writer, op: arith.SelectOp) -> None:
    condition, yes, no = (w.read(value) for value in op.operands)
    ones = len(tile_shape(op.result.type)) - len(tile_shape(op.cond.type))
    if ones and w.is_batched(op.cond):
        condition += f".reshape(-1{', 1' * ones})"
    if isinstance(op.result.type, IndexType) and not w.is_batched(*op.operands):
        w.assign(op.result, f"{yes} if {condition} else {no}")
    else:
        w.assign(op.result, f"np.where({condition}, {yes}, {no})")


def _unsigned(w: Writer, op: Operation) -> list[str]:
    """The operands seen as unsigned; indices as they are."""
    unsigned = "u" + w.dtype(op.operands[0].type)[1:]
    plain = isinstance(op.operands[0].type, IndexType)
    return [w.read(value) if plain else f"{w.read(value)}.view({unsigned})" for value in op.operands]


def cmpi(w: Writer, op: arith.CmpiOp) -> None:
    predicate = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")[op.predicate.value.data]
    sides = _unsigned(w, op) if op.predicate.value.data >= 6 else [w.read(value) for value in op.operands]
    w.assign(op.result, f"{sides[0]} {predicate} {sides[1]}")


_ORDERED = ("==", ">", ">=", "<", "<=", "!=")


def cmpf(w: Writer, op: arith.CmpfOp) -> None:
    lhs, rhs = (w.read(value) for value in op.operands)
    predicate = op.predicate.value.data
    unordered = f"(np.isnan({lhs}) | np.isnan({rhs}))"
    if predicate in (0, 15):
        text = f"({lhs} == {rhs}) {'& False' if predicate == 0 else '| True'}"
    elif predicate in (7, 14):
        text = f"{'~' if predicate == 7 else ''}{unordered}"
    elif predicate < 7:
        text = f"({lhs} {_ORDERED[predicate - 1]} {rhs}) & ~{unordered}"
    else:
        text = f"({lhs} {_ORDERED[predicate - 8]} {rhs}) | {unordered}"
    w.assign(op.result, text)


def elementwise(w: Writer, op: Operation) -> None:
    """An op of `TEMPLATES`."""
    template = TEMPLATES[type(op)]
    w.assign(op.results[0], template.format(*(w.read(value) for value in op.operands), t=w.dtype(op.results[0].type)))


def extreme(w: Writer, op: Operation) -> None:
    """Integer minima and maxima. Python's own on indices: numpy would make numpy scalars of them."""
    name = op.name.removeprefix("arith.")
    which = "max" if name.startswith("max") else "min"
    if isinstance(op.results[0].type, IndexType) and not w.is_batched(*op.operands):
        w.assign(op.results[0], f"{which}({w.read(op.operands[0])}, {w.read(op.operands[1])})")
        return
    unsigned = name.endswith("ui") and not isinstance(op.results[0].type, IndexType)
    sides = _unsigned(w, op) if unsigned else [w.read(value) for value in op.operands]
    back = f".view({w.dtype(op.results[0].type)})" if unsigned else ""
    w.assign(op.results[0], f"np.{which}imum({', '.join(sides)}){back}")


def unsigned_shift(w: Writer, op: arith.ShRUIOp) -> None:
    if isinstance(op.result.type, IndexType):
        raise QcompError.at(op, "indices have no unsigned shift", code="unsupported-op")
    lhs, rhs = _unsigned(w, op)
    w.assign(op.result, f"({lhs} >> {rhs}).view({w.dtype(op.result.type)})")


def extend_unsigned(w: Writer, op: arith.ExtUIOp) -> None:
    kind = w.dtype(op.input.type)
    seen = "" if kind == "i1" else f".view(u{kind[1:]})"
    w.assign(op.result, f"{w.read(op.input)}{seen}.astype({w.dtype(op.result.type)})")


TEMPLATES: dict[type[Operation], str] = {
    arith.AddiOp: "{0} + {1}", arith.SubiOp: "{0} - {1}", arith.MuliOp: "{0} * {1}",
    arith.AddfOp: "{0} + {1}", arith.SubfOp: "{0} - {1}", arith.MulfOp: "{0} * {1}", arith.DivfOp: "{0} / {1}",
    arith.NegfOp: "-{0}", arith.AndIOp: "{0} & {1}", arith.OrIOp: "{0} | {1}", arith.XOrIOp: "{0} ^ {1}",
    arith.ShLIOp: "{0} << {1}", arith.ShRSIOp: "{0} >> {1}",
    arith.FloorDivSIOp: "{0} // {1}", arith.CeilDivSIOp: "-(-{0} // {1})",
    arith.DivSIOp: "truncated_quotient({0}, {1})", arith.RemSIOp: "truncated_remainder({0}, {1})",
    arith.MaximumfOp: "maximumf({0}, {1})", arith.MinimumfOp: "minimumf({0}, {1})",
    arith.ExtSIOp: "{0}.astype({t})", arith.TruncIOp: "{0}.astype({t})", arith.SIToFPOp: "{0}.astype({t})",
    arith.ExtFOp: "{0}.astype({t})", arith.TruncFOp: "{0}.astype({t})", arith.BitcastOp: "{0}.view({t})",
    math.AbsFOp: "np.abs({0})", math.SqrtOp: "np.sqrt({0})", math.RoundEvenOp: "np.rint({0})",
    math.FloorOp: "np.floor({0})", math.CeilOp: "np.ceil({0})", math.TruncOp: "np.trunc({0})",
    math.CopySignOp: "np.copysign({0}, {1})",
}  # fmt: skip

RULES = {
    ContractOp: contract, MultiplyAddOp: multiply_add, BroadcastOp: broadcast, ExtendOp: extend, ToFloatOp: to_float,
    RoundOp: round_, NarrowOp: narrow, ClampOp: clamp, arith.ConstantOp: constant, affine.ApplyOp: apply,
    affine.MinOp: minimum, arith.IndexCastOp: index_cast, arith.SelectOp: select, arith.CmpiOp: cmpi,
    arith.CmpfOp: cmpf, arith.ShRUIOp: unsigned_shift, arith.ExtUIOp: extend_unsigned,
    **dict.fromkeys((arith.MaxSIOp, arith.MaxUIOp, arith.MinSIOp, arith.MinUIOp), extreme),
    **dict.fromkeys(TEMPLATES, elementwise),
}  # fmt: skip
