# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops, pools, reductions and data movement on codes: which operands, and what it takes to be exact.

Each planner gets a float op and what its result is quantized to, and returns how to build the op on codes, or why not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.nn import (
    ActivationAttr,
    AdaptiveAvgPoolOp,
    AvgPoolOp,
    BinaryOp,
    CastOp,
    CatOp,
    ExpandOp,
    LayerNormOp,
    MeanOp,
    PadOp,
    ProdOp,
    ResampleOp,
    ScanOp,
    SelectOp,
    SoftmaxOp,
    SumOp,
    UnaryOp,
)
from qcomp.dialects.nn.base import UNKNOWN, shape, tensor
from qcomp.dialects.quant import QuantizeOp, Recipe, RequantizeOp, default_recipe, encoding_of, quantized_type
from qcomp.transforms.code_identities import is_identity_on_codes
from qcomp.transforms.moved_operands import moved_places
from qcomp.transforms.qdq_pattern import activation_codes_of, encoded, is_float32
from qcomp.transforms.rewriting import Refusal, constant


def codes_of_operands(
    op: Operation, places: Sequence[int] | None = None, constants: bool = False
) -> list[SSAValue] | Refusal:
    """The per-tensor codes behind all operands of `op`, or those at `places`.

    constants: constants in f32 stay as they are, but one operand has to be dequantized.
    """
    operands = [op.operands[place] for place in (range(len(op.operands)) if places is None else places)]
    if not is_float32(*operands, *op.results):
        return Refusal(f"{op.name} does not compute in f32")
    found: list[SSAValue] = []
    for index, operand in enumerate(operands):
        if constants and constant(operand) is not None:
            found.append(operand)
            continue
        codes = activation_codes_of(operand, f"operand {index}" if len(operands) > 1 else "operand")
        if isinstance(codes, Refusal):
            return codes
        found.append(codes)
    if found == operands:
        return Refusal("no operand is dequantized")
    return found


@dataclass(frozen=True)
class Coded:
    """The same op on codes; the op requantizes."""

    op: Operation
    operands: tuple[SSAValue, ...]
    activation: ActivationAttr | None = None

    def build(self, quantize: QuantizeOp) -> list[Operation]:
        """The op that takes the place of `quantize`."""
        properties: dict[str, Attribute] = dict(self.op.properties)
        if self.activation is not None:
            properties["activation"] = self.activation
        if quantize.recipe is not None and isinstance(self.op, UnaryOp | BinaryOp):
            properties["recipe"] = quantize.recipe
        return [_like(self.op, self.operands, quantize.result.type, properties)]


def elementwise(op: UnaryOp | BinaryOp, activation: ActivationAttr | None) -> Coded | Refusal:
    """Exact whatever the encodings are: on codes these ops mean quantize(op(dequantize(...)))."""
    if isinstance(op, CastOp):
        return Refusal("nn.cast changes the element type")
    codes = codes_of_operands(op, constants=True)
    return codes if isinstance(codes, Refusal) else Coded(op, tuple(codes), activation)


def average_pool(op: AvgPoolOp | AdaptiveAvgPoolOp, quantize: QuantizeOp) -> Coded | Refusal:
    """Exact as elementwise ops are, but the op knows no recipe: it quantizes by the default one."""
    codes = codes_of_operands(op)
    if isinstance(codes, Refusal):
        return codes
    if quantize.reciprocal != default_recipe(quantize.encoding):
        return Refusal(f"{op.name} quantizes by the default recipe only")
    return Coded(op, tuple(codes))


def reduction(op: MeanOp | SumOp) -> Coded | Refusal:
    """An exact integer sum times one factor; where its size is known it must fit int32."""
    codes = codes_of_operands(op)
    if isinstance(codes, Refusal):
        return codes
    sizes = [shape(op.input)[axis] for axis in op.axes]
    if UNKNOWN in sizes:
        return Refusal("the number of elements to sum up is not known")
    encoding = encoded(codes[0])
    reach = max(encoding.qmax - encoding.zero_point, encoding.zero_point - encoding.qmin)
    largest = math.prod(sizes) * reach
    if not is_symbolic(largest) and largest >= 2**31:
        return Refusal(f"int32 accumulator overflows: a sum can reach {largest}")
    return Coded(op, tuple(codes))


IN_REALS = (SoftmaxOp, LayerNormOp, ProdOp, ResampleOp, ScanOp)
"""Ops that compute in float32 whatever holds their operands and result, but for scans that look for extremes."""


def computes_in_reals(op: Operation) -> bool:
    """Whether `op` is one of those."""
    total = not isinstance(op, ScanOp) or op.kind.data in ("add", "mul", "logaddexp")
    return isinstance(op, IN_REALS) and total


@dataclass(frozen=True)
class Ends:
    """An op that computes in reals, with codes for operands or result."""

    op: Operation
    operands: tuple[SSAValue, ...]
    activation: ActivationAttr | None = None
    recipe: Recipe | None = None

    def build(self, result_type: Attribute) -> Operation:
        """The op itself."""
        given = {"activation": self.activation, "recipe": self.recipe}
        properties = {**self.op.properties, **{name: value for name, value in given.items() if value is not None}}
        return _like(self.op, self.operands, result_type, properties)


def has_ends(op: Operation) -> bool:
    """Whether `op` may have codes on one side and reals on the other, and means the same then."""
    elementwise = isinstance(op, UnaryOp | BinaryOp | SelectOp) and not isinstance(op, CastOp)
    return elementwise or isinstance(op, MeanOp | SumOp) or computes_in_reals(op)


def ends(
    op: Operation, quantize: QuantizeOp | None, activation: ActivationAttr | None = None
) -> Ends | Refusal:  # fmt: skip
    """Exact: on codes these ops mean quantize(op(dequantize(...))); but means and sums of codes are integers.

    Operands that are not dequantized stay as they are; without a quantize there has to be one that is.
    """
    if not is_float32(*op.results):
        return Refusal(f"{op.name} does not compute in f32")
    recipe = None if quantize is None else quantize.recipe
    knows = isinstance(op, UnaryOp | BinaryOp)
    if quantize is not None and not knows and quantize.reciprocal != default_recipe(quantize.encoding):
        return Refusal(f"{op.name} quantizes by the default recipe only")
    found = list(op.operands)
    for place, operand in enumerate(op.operands if not isinstance(op, MeanOp | SumOp) else ()):
        codes = activation_codes_of(operand, "operand")
        found[place] = operand if isinstance(codes, Refusal) else codes
    if quantize is None and found == list(op.operands):
        return Refusal("no operand is dequantized per tensor")
    return Ends(op, tuple(found), activation, recipe if knows else None)


@dataclass(frozen=True)
class Moved:
    """Data movement on codes, with requantizes in front of it or behind it where encodings differ."""

    op: Operation
    operands: Mapping[int, SSAValue]
    """The codes, or a constant, by the place of the moved operand."""
    requantize: Mapping[int, bool]
    """Which of them are requantized first; constants are quantized."""
    after: bool
    """Whether the result is requantized."""

    def build(self, quantize: QuantizeOp) -> list[Operation]:
        """The ops that take the place of `quantize`."""
        new: list[Operation] = []
        operands = list(self.op.operands)
        for place, value in self.operands.items():
            if self.requantize[place]:
                make = QuantizeOp if encoding_of(value.type) is None else RequantizeOp
                step = make(value, quantize.encoding, quantize.recipe)
                step.location = quantize.location
                new.append(step)
                value = step.result
            operands[place] = value
        kind = quantized_type(tensor(self.op.results[0]), encoded(operands[next(iter(self.operands))]))
        new.append(_like(self.op, operands, kind, self.op.properties))
        if self.after:
            step = RequantizeOp(new[-1].results[0], quantize.encoding, quantize.recipe)
            step.location = quantize.location
            new.append(step)
        return new


def movement(op: Operation, quantize: QuantizeOp) -> Moved | Refusal:
    """Exact: quantize commutes with movement, and with extremes, as scales are positive.

    Expand, pad and ops that move several operands requantize first: afterwards there would be more codes, padding would
    be rounded twice, operands would not share an encoding. Constants among those operands are quantized.
    """
    places = moved_places(op)
    codes = codes_of_operands(op, places, constants=len(places) > 1)
    if isinstance(codes, Refusal):
        return codes
    found = dict(zip(places, codes, strict=True))
    target, recipe = quantize.encoding, quantize.recipe
    if isinstance(op, PadOp) and not same_fill(op, quantize):
        return Refusal("the padding value quantizes otherwise by the recipe of the quantize")
    same = is_identity_on_codes(target, recipe)
    unlike = {place: not (same and encoding_of(value.type) == target) for place, value in found.items()}
    first = isinstance(op, ExpandOp | PadOp | CatOp) or len(places) > 1
    before = {place: first and item for place, item in unlike.items()}
    return Moved(op, found, before, not first and any(unlike.values()))


def same_fill(op: PadOp, quantize: QuantizeOp) -> bool:
    """Whether padding codes, which knows no recipe, fills in the code that `quantize` makes of the padding value."""
    from qcomp.interpreter.reference.quantize import code_of

    value, encoding = op.value.value.data, quantize.encoding
    return code_of(value, encoding) == code_of(value, encoding, quantize.recipe)


def _like(
    op: Operation, operands: Sequence[SSAValue], kind: Attribute, properties: Mapping[str, Attribute]
) -> Operation:
    return type(op).create(
        operands=operands, result_types=[kind], properties=properties, attributes=op.attributes, location=op.location
    )
