# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers: one layer in one direction, the loop over time inside the op.

`input` [T, N, gates * H] is what the layer's input contributes to the gates of all steps (a linear in front of the op);
`weight` [gates * H, P] is for the hidden state [N, P] of the step before, P = H but for a projection; `bias` is added
with it. With `reverse` time runs backwards; element t of the result belongs to element t of the input all the same.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, StringAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import RoleOp, Shape, require, require_one_element, same_shape, shape, tensor


class RecurrentOp(RoleOp):
    """The result has the hidden state after each step."""

    input = operand_def(TensorType)
    hidden = operand_def(TensorType)
    weight = operand_def(TensorType)
    reverse = prop_def(BoolAttr)
    traits = traits_def(Pure())
    GATES: ClassVar[int]

    @property
    def units(self) -> int:
        """H."""
        return shape(self.input)[-1] // self.GATES

    def operand_shapes(self, batch: int, rows: int, state: int) -> list[tuple[SSAValue | None, Shape]]:
        """What each operand must look like. rows: gates * H; state: P."""
        return [(self.hidden, (batch, state)), (self.weight, (rows, state))]

    def infer_shape(self) -> Shape:
        value, state = shape(self.input), shape(self.hidden)
        require(len(value) == 3 and value[2] % self.GATES == 0, f"input must be [T, N, {self.GATES} * H]")
        require(len(state) == 2, "hidden must be [N, P]")
        for operand, expected in self.operand_shapes(value[1], value[2], state[1]):
            require(
                operand is None or same_shape(shape(operand), expected),
                f"an operand should have shape {list(expected)}",
            )
        require_one_element(*self.operands)
        return (value[0], value[1], self.result_size(state[1]))

    def result_size(self, state: int) -> int:
        """The last dimension of the result."""
        require(state == self.units, "without a projection the hidden state has H elements")
        return state


@irdl_op_definition
class LstmOp(RecurrentOp):
    """Gates i, f, g, o: c = sigmoid(f) * c + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c), times `projection` [P, H].

    The result [T, N, P + H] has h of each step, then c.
    """

    name = "nn.lstm"
    input = operand_def(TensorType)
    hidden = operand_def(TensorType)
    cell = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    projection = opt_operand_def(TensorType)
    result = result_def(TensorType)
    GATES: ClassVar[int] = 4
    REQUIRED: ClassVar = ("input", "hidden", "cell", "weight")
    OPTIONAL: ClassVar = ("bias", "projection")

    def __init__(
        self, value: SSAValue, hidden: SSAValue, cell: SSAValue, weight: SSAValue, bias: SSAValue | None,
        projection: SSAValue | None, reverse: bool = False,
    ):  # fmt: skip
        sizes = (*shape(value)[:2], shape(hidden)[-1] + shape(cell)[-1])
        super().__init__(
            operands=[value, hidden, cell, weight, bias, projection],
            result_types=[tensor_of(tensor(value).element_type, sizes)],
            properties={"reverse": BoolAttr.from_bool(reverse)},
        )

    def operand_shapes(self, batch: int, rows: int, state: int) -> list[tuple[SSAValue | None, Shape]]:
        extra: list[tuple[SSAValue | None, Shape]] = [(self.cell, (batch, self.units)), (self.bias, (rows,))]
        return [*super().operand_shapes(batch, rows, state), *extra, (self.projection, (state, self.units))]

    def result_size(self, state: int) -> int:
        if self.projection is None:
            super().result_size(state)
        return state + self.units


class PlainRecurrentOp(RecurrentOp):
    """The hidden state is all that one step hands to the next: the result is [T, N, H]."""

    input = operand_def(TensorType)
    hidden = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    result = result_def(TensorType)
    REQUIRED: ClassVar = ("input", "hidden", "weight")
    OPTIONAL: ClassVar = ("bias",)

    def operand_shapes(self, batch: int, rows: int, state: int) -> list[tuple[SSAValue | None, Shape]]:
        return [*super().operand_shapes(batch, rows, state), (self.bias, (rows,))]


@irdl_op_definition
class GruOp(PlainRecurrentOp):
    """Gates r, z, n: n = tanh(input_n + sigmoid(r) * hidden_n), h = n + sigmoid(z) * (h - n)."""

    name = "nn.gru"
    GATES: ClassVar[int] = 3

    def __init__(
        self, value: SSAValue, hidden: SSAValue, weight: SSAValue, bias: SSAValue | None, reverse: bool = False
    ):
        super().__init__(
            operands=[value, hidden, weight, bias],
            result_types=[tensor_of(tensor(value).element_type, (*shape(value)[:2], shape(hidden)[-1]))],
            properties={"reverse": BoolAttr.from_bool(reverse)},
        )


@irdl_op_definition
class RnnOp(PlainRecurrentOp):
    """h = tanh(input + hidden), or relu of it."""

    name = "nn.rnn"
    nonlinearity = prop_def(StringAttr)
    GATES: ClassVar[int] = 1

    def __init__(
        self, value: SSAValue, hidden: SSAValue, weight: SSAValue, bias: SSAValue | None, nonlinearity: str,
        reverse: bool = False,
    ):  # fmt: skip
        super().__init__(
            operands=[value, hidden, weight, bias],
            result_types=[tensor_of(tensor(value).element_type, (*shape(value)[:2], shape(hidden)[-1]))],
            properties={"reverse": BoolAttr.from_bool(reverse), "nonlinearity": StringAttr(nonlinearity)},
        )

    def infer_shape(self) -> Shape:
        require(self.nonlinearity.data in ("tanh", "relu"), 'nonlinearity must be "tanh" or "relu"')
        return super().infer_shape()


RECURRENT = (LstmOp, GruOp, RnnOp)
