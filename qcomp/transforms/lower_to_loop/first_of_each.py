# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lowering that finds what is refused, in a fraction of the time: of ops that are alike, the first is lowered."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.backend.target import Target
from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.registry import Entry


class FirstOfEach(Lowering):
    """Lowers the first of the ops with the same attributes, types, layouts and, where its lowering looks at them,
    constants.

    The results of the others are those of the first: the functions are for looking at, not for running. An op that is
    like a refused one is lowered, and refused, itself.
    """

    def __init__(self, module: ModuleOp, target: Target):
        self._asked: set[SSAValue] = set()  # Before the base class, which asks for constants.
        super().__init__(module, target)
        self._lowered: dict[Hashable, list[Buffer]] = {}
        self._inspected: dict[Hashable, tuple[int, ...]] = {}
        """The operands whose contents decide how an op of that kind is lowered."""

    def array(self, value: SSAValue) -> Array | None:
        self._asked.add(value)
        return super().array(value)

    def coded(self, value: SSAValue) -> CodedWeight | None:
        self._asked.add(value)
        return super().coded(value)

    def operand(self, value: SSAValue) -> Buffer:
        asked, self._asked = self._asked, set()
        try:
            return super().operand(value)
        finally:
            self._asked = asked

    def _lower(self, entry: Entry, op: Operation) -> None:
        if nn.is_control(op) or any(map(self.is_result, op.results)):
            super()._lower(entry, op)
            return
        kind = self._kind(op)
        inspected = self._inspected.get(kind)
        found = None if inspected is None else self._lowered.get((kind, _contents(op, inspected)))
        if found is not None:
            self.buffers.update(zip(op.results, found, strict=True))
            return
        self._asked = set()
        super()._lower(entry, op)
        asked = {index for index, value in enumerate(op.operands) if value in self._asked}
        self._inspected[kind] = tuple(sorted(asked.union(inspected or ())))
        self._lowered[kind, _contents(op, self._inspected[kind])] = [self.buffers[value] for value in op.results]

    def _kind(self, op: Operation) -> Hashable:
        """What the lowering of `op` depends on beside the contents of constants."""
        attributes = frozenset((*op.attributes.items(), *op.properties.items()))
        operands = tuple([self._operand_kind(op, index) for index in range(len(op.operands))])
        results = tuple([(value.type, self.layouts.layout(value)) for value in op.results])
        return type(op), self.block, attributes, operands, results

    def _operand_kind(self, op: Operation, index: int) -> Hashable:
        value = op.operands[index]
        first = op.operands.index(value)
        if first < index:
            return first
        constant = isinstance(value.owner, Operation) and value not in self.buffers
        if constant or isinstance(value.owner, nn.ConstantOp):
            return value.type, _source(value)
        return value.type, self.buffers[value].layout, self.layouts.channels_last(value)


def _source(value: SSAValue) -> Hashable:
    """The kinds of ops that make a constant."""
    owner = value.owner
    assert isinstance(owner, Operation)
    return type(owner), tuple([_source(operand) for operand in owner.operands])


def _contents(op: Operation, positions: tuple[int, ...]) -> Hashable:
    """The contents of operands: a constant is its array, what stands for one itself."""
    values = [op.operands[index] for index in positions]
    return tuple([id(v.owner.array) if isinstance(v.owner, nn.ConstantOp) else v for v in values])
