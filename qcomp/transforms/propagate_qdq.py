# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""propagate-qdq: dequantize moves down and quantize moves up through data movement, until they meet or meet arithmetic.

    %d = quant.dequantize %q
    %1 = nn.reshape %d                      %1 = nn.reshape %q
    %2 = nn.linear %1, %w            =>     %d = quant.dequantize %1
                                            %2 = nn.linear %d, %w

    %1 = nn.conv2d %0, %w                   %1 = nn.conv2d %0, %w
    %2 = nn.reshape %1               =>     %2 = quant.quantize %1
    %q = quant.quantize %2                  %q = nn.reshape %2

    %q = quant.quantize (quant.dequantize %x)  =>  %x, or quant.requantize %x where the encodings differ

    %d = quant.dequantize %q
    %i = nn.argsort %d {dim = 1, ...}  =>  %i = nn.argsort %q {dim = 1, ...}

All of it keeps every bit: quantize and dequantize work element by element, and a larger code stands for a larger
number, so that order, places and extremes are the same among codes as among reals. That, and that quantize undoes
dequantize, is tried on every code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from qcomp.dialects.nn import (
    CatOp,
    CompareOp,
    ConstantOp,
    EmbeddingOp,
    ExpandOp,
    GatherOp,
    IndexCopyOp,
    InsertSliceOp,
    PadOp,
    PermuteOp,
    ReluOp,
    ReshapeOp,
    ScanOp,
    ScatterOp,
    SelectOp,
    SliceOp,
    TakeOp,
)
from qcomp.dialects.nn.base import UNKNOWN, Shape, ints, shape, tensor
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp, RequantizeOp, quantized_type
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.code_identities import is_identity_on_codes
from qcomp.transforms.coded_ops import same_fill
from qcomp.transforms.moved_operands import ORDERED, PLACES, exact_codes, keeps_order, moved_places, tells_places
from qcomp.transforms.qdq_pattern import activation_problem, codes_of, encoded
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant, only_user

Movement = (
    ReshapeOp | PermuteOp | SliceOp | ExpandOp | PadOp | CatOp | TakeOp | GatherOp | ScatterOp | EmbeddingOp | SelectOp
    | InsertSliceOp | IndexCopyOp
)  # fmt: skip
_PICKS = (GatherOp, ScatterOp, EmbeddingOp, SelectOp, InsertSliceOp, IndexCopyOp)
"""Movement that does not follow a quantization axis."""


class MeetDequantize(Rule[QuantizeOp, SSAValue]):
    """quantize(dequantize(x)) => x where that is the identity on all codes, else requantize(x).

    Precondition: the encodings are the same, or both are per tensor.
    """

    matches: ClassVar = QuantizeOp

    def plan(self, op: QuantizeOp) -> SSAValue | Refusal | None:
        codes = codes_of(op.input)
        if codes is None:
            return None
        source = encoded(codes)
        if source != op.encoding and not (source.per_tensor and op.encoding.per_tensor):
            return Refusal("encodings differ and are not both per tensor")
        return codes

    def apply(self, op: QuantizeOp, plan: SSAValue, rewriter: Rewriter) -> None:
        value = op.input
        if plan.type == op.result.type and is_identity_on_codes(op.encoding, op.recipe):
            rewriter.replace(op, values=[plan])
        else:
            rewriter.replace(op, RequantizeOp(plan, op.encoding, op.recipe))
        rewriter.erase_dead(value)


@dataclass(frozen=True)
class Sunk:
    """The codes that take the place of the moved operands, constants made for that, and the encoding of the result."""

    operands: Mapping[int, SSAValue]
    constants: tuple[ConstantOp, ...]
    encoding: Encoding


class SinkDequantize(Rule[Operation, Sunk]):
    """move(dequantize(x)) => dequantize(move(x)), also for extremes, and for relu unless a quantize follows.

    Precondition: all moved operands are dequantized from one encoding, or constants that are exactly codes of it; so is
    a padding value; a quantization axis can be followed through the movement; extremes need codes in order.
    """

    matches: ClassVar = (
        ReshapeOp, PermuteOp, SliceOp, PadOp, CatOp, TakeOp, ReluOp, *_PICKS, *ORDERED,
    )  # fmt: skip

    def plan(self, op: Operation) -> Sunk | Refusal | None:
        places = (0,) if isinstance(op, ReluOp) else moved_places(op)
        codes = {place: found for place in places if (found := codes_of(op.operands[place])) is not None}
        others = [place for place in places if place not in codes]
        if not codes or any(constant(op.operands[place]) is None for place in others):
            return None
        encoding = encoded(next(iter(codes.values())))
        if isinstance(op, ReluOp) and isinstance(only_user(op.result), QuantizeOp):
            return None
        if any(encoded(value) != encoding for value in codes.values()):
            return Refusal("operands have different encodings")
        made = {place: exact_codes(op.operands[place], encoding) for place in others}
        constants = {place: item for place, item in made.items() if item is not None}
        if len(constants) < len(others):
            return Refusal("a constant is not exactly codes of the encoding of the others")
        moved = _moved(op, encoding)
        if isinstance(moved, Refusal):
            return moved
        codes.update({place: item.result for place, item in constants.items()})
        return Sunk(codes, tuple(constants.values()), moved)

    def apply(self, op: Operation, plan: Sunk, rewriter: Rewriter) -> None:
        old = tuple(op.operands)
        operands = [plan.operands.get(place, value) for place, value in enumerate(old)]
        coded = _like(op, operands, quantized_type(tensor(op.results[0]), plan.encoding))
        dequantize = DequantizeOp(coded.results[0])
        rewriter.replace(op, *plan.constants, coded, dequantize)
        rewriter.erase_dead(*old)


class ReadCodes(Rule[Operation, list[SSAValue]]):
    """find(dequantize(x)) => find(x) for ops that find places, and for comparisons, also with constants.

    Precondition: per-tensor codes of up to 16 bits that express f32; places need codes in order.
    """

    matches: ClassVar = (*PLACES, ScanOp, CompareOp)

    def plan(self, op: Operation) -> list[SSAValue] | Refusal | None:
        if not isinstance(op, CompareOp) and not tells_places(op):
            return None
        codes = [codes_of(value) or value for value in op.operands]
        known = [old is not new or constant(old) is not None for old, new in zip(op.operands, codes, strict=True)]
        encodings = [encoded(new) for old, new in zip(op.operands, codes, strict=True) if old is not new]
        if not encodings or not all(known):
            return None
        for encoding in encodings:
            problem = activation_problem(encoding)
            if problem is not None:
                return Refusal(f"operand is {problem}")
            if tells_places(op) and not keeps_order(encoding):
                return Refusal("codes do not stand for numbers in their order")
        return codes

    def apply(self, op: Operation, plan: list[SSAValue], rewriter: Rewriter) -> None:
        old = tuple(op.operands)
        rewriter.replace(op, _like(op, plan, op.results[0].type))
        rewriter.erase_dead(*old)


def _moved(op: Operation, encoding: Encoding) -> Encoding | Refusal:
    """The encoding of the result when `op` moves codes of `encoding`."""
    if encoding.per_tensor:
        if isinstance(op, PadOp) and not _is_code(op.value.value.data, encoding):
            return Refusal(f"the padding value {op.value.value.data} is not exactly a code")
        if isinstance(op, ReluOp) and not is_identity_on_codes(encoding, None):
            return Refusal("quantize does not undo dequantize")
        if isinstance(op, ORDERED) and not keeps_order(encoding):
            return Refusal("codes do not stand for numbers in their order")
        return encoding
    moved = _follow_axis(op, encoding) if encoding.axis is not None else None
    if moved is None:
        return Refusal("the quantization axis cannot be followed")
    return moved if is_identity_on_codes(moved, None) else Refusal("quantize does not undo dequantize")


def _is_code(value: float, encoding: Encoding) -> bool:
    """Whether `value` is dequantized, bit for bit, from the code it is quantized to."""
    import numpy as np

    from qcomp.interpreter.reference.quantize import code_of, dequantize

    real = dequantize(np.array([code_of(value, encoding)], encoding.dtype), encoding)
    return real.tobytes() == np.array([value], real.dtype).tobytes()


def _follow_axis(op: Operation, encoding: Encoding) -> Encoding | None:
    """The per-channel encoding of the result of moving a tensor quantized along `encoding.axis`."""
    axis = cast(int, encoding.axis)
    match op:
        case PermuteOp():
            return encoding.with_axis(ints(op.dims).index(axis))
        case ReshapeOp():
            place = _same_place(shape(op.input), shape(op.result), axis)
            return _merged(op, encoding) if place is None else encoding.with_axis(place)
        case TakeOp() if op.dim.value.data != axis:
            return encoding
        case SliceOp():
            if op.dim.value.data != axis:
                return encoding
            kept = slice(*op.bounds, op.step.value.data)
            return replace(encoding, scales=encoding.scales[kept], zero_points=encoding.zero_points[kept])
        case _:
            return None


def _same_place(source: Shape, target: Shape, axis: int) -> int | None:
    """The dimension of `target` that holds exactly what dimension `axis` of `source` holds."""
    if UNKNOWN in source or UNKNOWN in target:
        return None
    before = math.prod(source[:axis])
    for place, size in enumerate(target):
        if math.prod(target[:place]) == before and size == source[axis]:
            return place
    return None


def _merged(op: ReshapeOp, encoding: Encoding) -> Encoding | None:
    """The encoding of the result when the reshape makes one dimension of the quantized one and those before it."""
    import numpy as np

    source, target = shape(op.input), shape(op.result)
    axis = cast(int, encoding.axis)
    if UNKNOWN in source or UNKNOWN in target:
        return None
    before = math.prod(source[:axis])
    for place, size in enumerate(target):
        times, rest = divmod(size, max(source[axis], 1))
        if rest == 0 and source[axis + 1 :] == target[place + 1 :] and before == times * math.prod(target[:place]):
            scales, zeros = np.tile(encoding.scales, times), np.tile(encoding.zero_points, times)
            return replace(encoding, axis=place, scales=scales, zero_points=zeros)
    return None


class HoistQuantize(Rule[QuantizeOp, Operation]):
    """quantize(move(y)) => move(quantize(y)).

    Precondition: per-tensor encoding; some y is computed (not an argument, a constant or dequantized), or a table that
    only an embedding reads; neither y nor the moved value has another use; a padding value quantizes by the same
    recipe.
    """

    matches: ClassVar = QuantizeOp

    def plan(self, op: QuantizeOp) -> Operation | Refusal | None:
        move = op.input.owner
        if not isinstance(move, Movement):
            return None
        moved = [move.operands[place] for place in moved_places(move)]
        table = isinstance(move, EmbeddingOp) and constant(move.weight) is not None and only_user(move.weight) is move
        if not table and not any(_is_computed(value) for value in moved):
            return None
        if only_user(op.input) is not op:
            return Refusal(f"the result of {move.name} has other uses")
        if not op.encoding.per_tensor:
            return Refusal("the result is quantized per channel")
        if any(_is_computed(value) and only_user(value) is not move for value in moved):
            return Refusal(f"an operand of {move.name} has other uses")
        if isinstance(move, PadOp) and not same_fill(move, op):
            return Refusal("the padding value quantizes otherwise by the recipe of the quantize")
        return move

    def apply(self, op: QuantizeOp, plan: Operation, rewriter: Rewriter) -> None:
        old, operands = op.input, list(plan.operands)
        steps: list[QuantizeOp] = []
        for place in moved_places(plan):
            owner = operands[place].owner
            steps.append(QuantizeOp(operands[place], op.encoding, op.recipe))
            steps[-1].location = owner.location if isinstance(owner, Operation) else op.location
            operands[place] = steps[-1].result
        rewriter.replace(op, *steps, _like(plan, operands, op.result.type))
        rewriter.erase_dead(old)


def _is_computed(value: SSAValue) -> bool:
    return not isinstance(value, BlockArgument) and not isinstance(value.owner, ConstantOp | DequantizeOp)


def _like(op: Operation, operands: Sequence[SSAValue], kind: Attribute) -> Operation:
    return type(op).create(
        operands=operands, result_types=[kind], properties=op.properties, attributes=op.attributes, location=op.location
    )


@dataclass(frozen=True)
class PropagateQdqPass(QcompPass):
    """Move quantize up and dequantize down through data movement, and let them meet."""

    name = "propagate-qdq"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [MeetDequantize(), SinkDequantize(), ReadCodes(), HoistQuantize()])
