# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of control flow: regions become blocks of loop.if, loop.while and loop.for around their own calls.

Carried values live in buffers that are the op's results; a body leaves the new values there when all are computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, IndexType, LocationAttr, i8
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from qcomp.dialects import loop, nn
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.dialects.quant import encoding_of
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout, static_shape, storage_element
from qcomp.transforms.lower_to_loop.driver import Lowering, root_of
from qcomp.transforms.lower_to_loop.movement import convert, copy
from qcomp.transforms.lower_to_loop.registry import ALL, lowers

_SYMBOL = AffineMap(0, 1, (AffineExpr.symbol(0),))


def _flag(lowering: Lowering, value: SSAValue, where: LocationAttr) -> SSAValue:
    """The byte of a condition."""
    buffer = lowering.row_major(value, where)
    view = lowering.view(buffer, memref_of(buffer.element, ()))
    properties = loop.access_properties(AffineMap(0, 0, ()), (), None, None)
    op = loop.LoadOp.build(operands=[view, []], result_types=[i8], properties=properties)
    assert isinstance(properties["map"], AffineMapAttr)
    lowering.block.add_op(op)
    return op.result


def _plain(memref: SSAValue, value: SSAValue) -> Buffer:
    """`memref` as the row-major buffer of `value`."""
    return Buffer(memref, static_shape(value), Layout(False), encoding_of(value.type), storage_element(value))


def _places(lowering: Lowering, results: Sequence[SSAValue], where: LocationAttr) -> list[Buffer]:
    """Buffers of the results, which are theirs only when the regions are done."""
    places = [lowering.define(value, where, Layout(False)) for value in results]
    for value, place in zip(results, places, strict=True):
        lowering.own.add(root_of(place.value))
        del lowering.buffers[value]
    return places


@lowers(nn.CondOp, elements=ALL, symbolic=True)
def lower_cond(lowering: Lowering, op: nn.CondOp) -> None:
    """Both branches write the results' buffers."""
    where = op.location
    places = _places(lowering, op.outputs, where)
    flag = _flag(lowering, op.condition, where)
    blocks: list[Block] = []
    for region in (op.then, op.orelse):
        values = nn.yielded(region)

        def end(values: Sequence[SSAValue] = values) -> None:
            for value, place in zip(values, places, strict=True):
                source = lowering.operand(value)
                if source.value is not place.value:
                    copy(lowering, source, place, where)
            lowering.block.add_op(loop.YieldOp())

        blocks.append(lowering.region(region.block, end))
    lowering.block.add_op(loop.IfOp(flag, *blocks))
    lowering.buffers.update(zip(op.outputs, places, strict=True))


def _advance(lowering: Lowering, values: Sequence[SSAValue], places: Sequence[Buffer], where: LocationAttr) -> None:
    """Leave the next carried values in their buffers, all of them read before any is written."""
    roots = {root_of(place.value) for place in places}
    moves: list[tuple[Buffer, Buffer]] = []
    for value, place in zip(values, places, strict=True):
        source = lowering.operand(value)
        root = root_of(source.value)
        if root is root_of(place.value) and source.row_major:
            continue
        if root in roots:
            source = convert(lowering, source, Layout(False), where)
        moves.append((source, place))
    for source, place in moves:
        copy(lowering, source, place, where)


def _carry(lowering: Lowering, inits: Sequence[SSAValue], places: Sequence[Buffer], where: LocationAttr) -> None:
    for init, place in zip(inits, places, strict=True):
        copy(lowering, lowering.operand(init), place, where)


def _bind(lowering: Lowering, arguments: Sequence[SSAValue], places: Sequence[Buffer]) -> None:
    for argument, place in zip(arguments, places, strict=True):
        lowering.buffers[argument] = _plain(place.value, argument)


def _unbind(lowering: Lowering, arguments: Sequence[SSAValue]) -> None:
    for argument in arguments:
        lowering.buffers.pop(argument, None)


@lowers(nn.WhileOp, elements=ALL, symbolic=True)
def lower_while(lowering: Lowering, op: nn.WhileOp) -> None:
    """The test and the body see the same buffers."""
    where = op.location
    places = _places(lowering, op.outputs, where)
    _carry(lowering, op.inits, places, where)

    def decide() -> None:
        lowering.block.add_op(loop.YieldOp(_flag(lowering, nn.yielded(op.test)[0], where)))

    def advance() -> None:
        _advance(lowering, nn.yielded(op.body), places, where)
        lowering.block.add_op(loop.YieldOp())

    blocks: list[Block] = []
    for region, end in ((op.test, decide), (op.body, advance)):
        _bind(lowering, region.block.args, places)
        blocks.append(lowering.region(region.block, end))
        _unbind(lowering, region.block.args)
    lowering.block.add_op(loop.WhileOp(*blocks))
    lowering.buffers.update(zip(op.outputs, places, strict=True))


@lowers(nn.IterateOp, elements=ALL, symbolic=True)
def lower_scan(lowering: Lowering, op: nn.IterateOp) -> None:
    """A loop over the parts of the inputs' buffers and of the outputs'."""
    where, count = op.location, len(op.inits)
    places = _places(lowering, op.outputs, where)
    _carry(lowering, op.inits, places[:count], where)
    inputs = [lowering.row_major(value, where) for value in op.inputs]
    inputs = [_plain(lowering.view(buffer, memref_of(buffer.element, buffer.sizes)), value)
              for buffer, value in zip(inputs, op.inputs, strict=True)]  # fmt: skip
    length = inputs[0].sizes[0]
    index = Block(arg_types=[IndexType()])
    arguments, results = op.body.block.args, nn.yielded(op.body)
    heads = [loop.PartOp(buffer.value, index.args[0]) for buffer in (*inputs, *places[count:])]
    _bind(lowering, arguments[:count], places[:count])
    for argument, head in zip(arguments[count:], heads, strict=False):
        lowering.buffers[argument] = _plain(head.result, argument)

    def end() -> None:
        for value, head in zip(results[count:], heads[len(inputs) :], strict=True):
            copy(lowering, lowering.operand(value), _plain(head.result, value), where)
        _advance(lowering, results[:count], places[:count], where)
        lowering.block.add_op(loop.YieldOp())

    body = lowering.region(op.body.block, end, index, heads)
    _unbind(lowering, arguments)
    end_map, operands = loop.constant_map(length) if not is_symbolic(length) else _SYMBOL, list[SSAValue]()
    if is_symbolic(length):
        operands.append(lowering.main.size(length))
    lowering.block.add_op(loop.ForOp(loop.constant_map(0), [], end_map, operands, 1, [], body))
    lowering.buffers.update(zip(op.outputs, places, strict=True))
