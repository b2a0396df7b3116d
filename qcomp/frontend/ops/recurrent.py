# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent nets: a linear over all steps and an op with the loop over time, per layer and direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op


@dataclass(frozen=True)
class Cell:
    """The weights of one layer in one direction. kind: lstm, gru, tanh or relu."""

    kind: str
    input_weight: SSAValue
    weight: SSAValue
    input_bias: SSAValue | None = None
    bias: SSAValue | None = None
    projection: SSAValue | None = None

    def run(self, b: Builder, value: SSAValue, state: Sequence[SSAValue], reverse: bool) -> list[SSAValue]:
        """Each part of the state after every step, [T, N, size]. value: [T, N, features]; state: [N, size] each."""
        gates = b.add(nn.LinearOp(value, self.input_weight, self.input_bias))
        if self.kind == "lstm":
            made = nn.LstmOp(gates, state[0], state[1], self.weight, self.bias, self.projection, reverse)
            both, size = b.add(made), shape_of(state[0])[1]
            end = shape_of(both)[2]
            return [b.add(nn.SliceOp(both, 2, 0, size)), b.add(nn.SliceOp(both, 2, size, end))]
        if self.kind == "gru":
            return [b.add(nn.GruOp(gates, state[0], self.weight, self.bias, reverse))]
        return [b.add(nn.RnnOp(gates, state[0], self.weight, self.bias, self.kind, reverse))]


def _kind(node: Node) -> str:
    name = node.target.split(".")[1]
    return next(kind for kind in ("lstm", "gru", "tanh", "relu") if kind in name)


def _cells(kind: str, params: Sequence[SSAValue], biases: bool, projected: bool) -> list[Cell]:
    size = 2 + 2 * biases + projected
    if len(params) % size:
        raise QcompError(f"{len(params)} weights of a recurrent net, {size} per layer", code="malformed-graph")
    cells: list[Cell] = []
    for start in range(0, len(params), size):
        weights = params[start : start + size]
        both = weights[2:4] if biases else (None, None)
        cells.append(Cell(kind, weights[0], weights[1], both[0], both[1], weights[-1] if projected else None))
    return cells


@op("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
def recurrent_net(b: Builder, node: Node) -> Result:
    """All layers and directions: the output of the last layer, then each part of the state after the last step."""
    kind, value = _kind(node), b.tensor(node, "input")
    if b.flag(node, "train") and b.real(node, "dropout", 0.0):
        raise QcompError("a recurrent net with dropout", code="training", hint="call model.eval() before exporting")
    states = b.tensors(node, "hx") if kind == "lstm" else [b.tensor(node, "hx")]
    projected = kind == "lstm" and shape_of(states[0])[2] != shape_of(states[1])[2]
    cells = _cells(kind, b.tensors(node, "params"), b.flag(node, "has_biases"), projected)
    directions = 2 if b.flag(node, "bidirectional") else 1
    if len(cells) != b.integer(node, "num_layers") * directions:
        raise QcompError(f"{len(cells)} sets of weights for a recurrent net", code="malformed-graph")
    batch_first = b.flag(node, "batch_first")
    value = permute_to(b, value, (1, 0, 2)) if batch_first else value
    last: list[list[SSAValue]] = [[] for _ in states]
    for first in range(0, len(cells), directions):
        outputs: list[SSAValue] = []
        for number in range(first, first + directions):
            initial = [_part(b, state, number) for state in states]
            parts = cells[number].run(b, value, initial, number > first)
            outputs.append(parts[0])
            for part, found in zip(parts, last, strict=True):
                time = 0 if number > first else shape_of(part)[0] - 1
                found.append(b.add(nn.SliceOp(part, 0, time, time + 1)))
        value = outputs[0] if directions == 1 else b.add(nn.CatOp(outputs, 2))
    value = permute_to(b, value, (1, 0, 2)) if batch_first else value
    return [value, *(found[0] if len(found) == 1 else b.add(nn.CatOp(found, 0)) for found in last)]


def _part(b: Builder, state: SSAValue, number: int) -> SSAValue:
    """The initial state of one layer and direction."""
    piece = state if shape_of(state)[0] == 1 else b.add(nn.SliceOp(state, 0, number, number + 1))
    return reshape_to(b, piece, shape_of(state)[1:])


@op("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data", "_pack_padded_sequence.default")
def packed(b: Builder, node: Node) -> Result:
    """Packed sequences are refused."""
    raise QcompError("packed sequences are not supported", code="unsupported-op", hint="run the net on a padded tensor")


@op("lstm_cell.default", "gru_cell.default", "rnn_tanh_cell.default", "rnn_relu_cell.default")
def cell(b: Builder, node: Node) -> Result:
    """One step of one layer."""
    kind, value = _kind(node), b.tensor(node, "input")
    weights = Cell(
        kind, b.tensor(node, "w_ih"), b.tensor(node, "w_hh"), b.optional(node, "b_ih"), b.optional(node, "b_hh")
    )
    states = b.tensors(node, "hx") if kind == "lstm" else [b.tensor(node, "hx")]
    parts = weights.run(b, reshape_to(b, value, (1, *shape_of(value))), states, False)
    parts = [reshape_to(b, part, shape_of(part)[1:]) for part in parts]
    return parts if kind == "lstm" else parts[0]
