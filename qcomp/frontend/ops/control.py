# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow: torch.cond, while_loop, scan and map, whose subgraphs become regions. Weights are read from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dims import tensor_of
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, element_of, shape_of
from qcomp.frontend.graph import Argument, Graph, Node, Ref, Subgraph
from qcomp.frontend.ops.table import op


def _arguments(node: Node, count: int) -> list[Argument]:
    values = [value for _, value in node.arguments]
    if len(values) < count:
        raise QcompError(f"{node.target} takes {count} arguments", code="malformed-graph")
    return values


def _graph(value: Argument) -> Graph:
    if not isinstance(value, Subgraph):
        raise QcompError("expected a subgraph", code="malformed-graph")
    return value.graph


def _tensors(b: Builder, value: Argument) -> list[SSAValue]:
    """Operands, all of which must be tensors."""
    parts = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(part, Ref) and not b.is_number(part) for part in parts):
        raise QcompError("numbers as operands of control flow are not supported", hint="pass them as tensors")
    return [b.plain(b.of(cast(Ref, part))) for part in parts]


def _read_only(b: Builder, value: Argument) -> list[SSAValue]:
    """Operands that subgraphs only read: sizes among them are left out, which subgraphs know by their symbols."""
    parts = value if isinstance(value, tuple) else (value,)
    return _tensors(b, tuple(part for part in parts if not (isinstance(part, Ref) and b.is_number(part))))


def _branch(b: Builder, graph: Graph, operands: Sequence[SSAValue]) -> Block:
    """A block without arguments."""
    block = Block()
    results = b.body(graph, block, operands)
    block.add_op(nn.YieldOp(results))
    return block


@op("higher_order.cond")
def cond(b: Builder, node: Node) -> Result:
    """One of two branches; a condition on sizes is decided here."""
    condition, yes, no, operands = _arguments(node, 4)[:4]
    values = _read_only(b, operands) if operands else []
    if b.is_number(condition):
        chosen = yes if b.number(Node("", node.target, (("pred", condition),), ()), "pred") else no
        return b.body(_graph(chosen), b.block, values)
    (flag,) = _tensors(b, condition)
    flag = flag if dtype_of(flag) == "bool" else b.cast(flag, "bool")
    then, orelse = _branch(b, _graph(yes), values), _branch(b, _graph(no), values)
    return _finished(b, nn.CondOp(flag, then, orelse))


def _finished(b: Builder, made: nn.CondOp | nn.WhileOp | nn.IterateOp) -> list[SSAValue]:
    b.add(made)
    return list(made.outputs)


@op("higher_order.while_loop")
def while_loop(b: Builder, node: Node) -> Result:
    """Carried values, then values that both subgraphs only read."""
    test, body, carried, *rest = _arguments(node, 3)
    inits = _tensors(b, carried)
    extra = _read_only(b, rest[0]) if rest and rest[0] else []
    blocks: list[Block] = []
    for graph in (_graph(test), _graph(body)):
        block = Block(arg_types=[value.type for value in inits])
        results = b.body(graph, block, [*block.args, *extra])
        block.add_op(nn.YieldOp(results))
        blocks.append(block)
    return _finished(b, nn.WhileOp(inits, *blocks))


@op("higher_order.scan")
def scan(b: Builder, node: Node) -> Result:
    """Carried values, values taken apart along dimension 0, then values that the subgraph only reads."""
    combine, init, inputs, *rest = _arguments(node, 3)
    inits = _tensors(b, init) if init else []
    extra = _read_only(b, rest[0]) if rest and rest[0] else []
    return _scan(b, _graph(combine), inits, _tensors(b, inputs), extra)


@op("higher_order.map_impl")
def map_(b: Builder, node: Node) -> Result:
    """A scan that carries nothing."""
    body, inputs, *rest = _arguments(node, 2)
    return _scan(b, _graph(body), [], _tensors(b, inputs), _read_only(b, rest[0]) if rest and rest[0] else [])


def _scan(
    b: Builder, graph: Graph, inits: Sequence[SSAValue], inputs: Sequence[SSAValue], extra: Sequence[SSAValue]
) -> list[SSAValue]:
    parts: list[TensorType[Attribute]] = [tensor_of(element_of(value), shape_of(value)[1:]) for value in inputs]
    block = Block(arg_types=[*(value.type for value in inits), *parts])
    results = b.body(graph, block, [*block.args, *extra])
    block.add_op(nn.YieldOp(results))
    return _finished(b, nn.IterateOp(inits, inputs, block))
