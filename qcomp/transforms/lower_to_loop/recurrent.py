# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of recurrent layers: a loop over time; units lie in the lanes, the gates of a register are summed together.

The weight is packed [state, gates, units]: for each element of the hidden state a row of units per gate. The first
step reads the initial state, every later one the result of the step before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import LocationAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import numpy_dtype
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.buffers import Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel, real_type
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import REALS, lowers
from qcomp.transforms.lower_to_loop.through_reals import real_result, reals_of
from qcomp.transforms.lower_to_loop.transcendental import sigmoid, tanh


@dataclass(frozen=True)
class RecurrentKernel:
    """All that the code depends on. kind: lstm, gru, tanh or relu; state: elements of the hidden state."""

    kind: str
    time: int
    batch: int
    units: int
    state: int
    gates: int
    reverse: bool
    projected: bool
    lanes: int

    @property
    def padded(self) -> int:
        """Units rounded up to whole registers."""
        return -(-self.units // self.lanes) * self.lanes

    @property
    def padded_state(self) -> int:
        """The hidden state rounded up to whole registers."""
        return -(-self.state // self.lanes) * self.lanes

    @property
    def width(self) -> int:
        """Elements of the result per step and sample."""
        return self.state + (self.units if self.kind == "lstm" else 0)


@lowers(nn.LstmOp, elements=REALS, symbolic=True)
def lower_lstm(lowering: Lowering, op: nn.LstmOp) -> None:
    """Hidden and cell state side by side in the result."""
    held = None if op.projection is None else _constant(lowering, op.projection)
    _lower(lowering, op, "lstm", [op.hidden, op.cell], held)


@lowers(nn.GruOp, elements=REALS, symbolic=True)
def lower_gru(lowering: Lowering, op: nn.GruOp) -> None:
    """The gates of the input and of the hidden state are kept apart."""
    _lower(lowering, op, "gru", [op.hidden], None)


@lowers(nn.RnnOp, elements=REALS, symbolic=True)
def lower_rnn(lowering: Lowering, op: nn.RnnOp) -> None:
    """One gate."""
    _lower(lowering, op, op.nonlinearity.data, [op.hidden], None)


def _lower(
    lowering: Lowering, op: nn.LstmOp | nn.GruOp | nn.RnnOp, kind: str, state: Sequence[SSAValue],
    projection: Array | None,
) -> None:  # fmt: skip
    where = op.location
    x, *initial = (reals_of(lowering, lowering.row_major(value, where), where) for value in (op.input, *state))
    weight = _constant(lowering, op.weight)
    bias = np.zeros(len(weight), np.float32) if op.bias is None else _constant(lowering, op.bias)
    time, batch, _ = x.sizes
    spec = RecurrentKernel(
        kind, time, batch, op.units, weight.shape[1], op.GATES, bool(op.reverse.value.data), projection is not None,
        lowering.target.lanes,
    )  # fmt: skip
    arguments = [x.value, *(buffer.value for buffer in initial)]
    arguments += [lowering.constant(_packed(spec, weight), f32), lowering.constant(_spread(spec, bias), f32)]
    if projection is not None:
        wide = np.zeros((spec.units, spec.padded_state), projection.dtype)
        wide[:, : spec.state] = projection.T
        arguments += [lowering.constant(wide, f32), lowering.allocate(memref_of(f32, (batch, spec.units)), where)]
    with real_result(lowering, op.result, where, Layout(False)) as target:
        short = op.name.removeprefix("nn.")
        lowering.call(spec, short, lambda name: _build(spec, name, where), [*arguments, target.value], where)


def _constant(lowering: Lowering, value: SSAValue) -> Array:
    array = lowering.array(value)
    if array is None or array.dtype != numpy_dtype(real_type()):
        raise QcompError(
            "weights of recurrent layers must be constants of their own type to be lowered to loops", code="lower",
            hint="run fold-constants first",
        )  # fmt: skip
    return array


def _packed(spec: RecurrentKernel, weight: Array) -> Array:
    wide = np.zeros((spec.state, spec.gates, spec.padded), weight.dtype)
    wide[:, :, : spec.units] = weight.T.reshape(spec.state, spec.gates, spec.units)
    return wide


def _spread(spec: RecurrentKernel, bias: Array) -> Array:
    wide = np.zeros((spec.gates, spec.padded), bias.dtype)
    wide[:, : spec.units] = bias.reshape(spec.gates, spec.units)
    return wide


def _build(spec: RecurrentKernel, name: str, where: LocationAttr) -> FuncOp:
    arguments = [
        ("x", memref_of(f32, (spec.time, spec.batch, spec.gates * spec.units))),
        ("hidden", memref_of(f32, (spec.batch, spec.state))),
    ]
    if spec.kind == "lstm":
        arguments.append(("cell", memref_of(f32, (spec.batch, spec.units))))
    arguments.append(("weight", memref_of(f32, (spec.state, spec.gates, spec.padded))))
    arguments.append(("bias", memref_of(f32, (spec.gates, spec.padded))))
    if spec.projected:
        arguments.append(("projection", memref_of(f32, (spec.units, spec.padded_state))))
        arguments.append(("scratch", memref_of(f32, (spec.batch, spec.units))))
    arguments.append(("y", memref_of(f32, (spec.time, spec.batch, spec.width))))
    func, b, values = kernel(name, arguments, where)
    layer = _Layer(spec, b, dict(zip([hint for hint, _ in arguments], values, strict=True)))
    with b.unless_empty(spec.time):
        layer.step(Index.of(spec.time - 1 if spec.reverse else 0), None)
    if spec.time != 1:
        with b.loop(1, spec.time) as nest:
            now = nest.index * -1 + (spec.time - 1) if spec.reverse else nest.index
            layer.step(now, now + (1 if spec.reverse else -1))
    return finish(func)


def _paired(parts: Sequence[Chunk]) -> list[Chunk]:
    """Full registers two at a time, so that more sums are under way than one depends on."""
    found: list[Chunk] = []
    for part in parts:
        width = part.step
        pairs = (part.stop - part.start) // (2 * width) if part.shape and part.valid is None else 0
        middle = part.start + pairs * 2 * width
        if pairs:
            found.append(Chunk(part.start, middle, 2 * width, (2, width)))
        if middle < part.stop:
            found.append(Chunk(middle, part.stop, part.step, part.shape, part.valid))
    return found


def _over(where: Sequence[Index | int], part: Chunk) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Along which dimension a tile lies, and in which steps: the last one."""
    last = len(where) - 1
    if len(part.shape) == 2:
        return (last, last), (part.shape[1], 1)
    return ((last,) if part.shape else ()), None


class _Layer:
    """Steps of one layer."""

    def __init__(self, spec: RecurrentKernel, b: Builder, use: dict[str, SSAValue]):
        self.spec, self.b, self.use = spec, b, use

    def step(self, now: Index, before: Index | None) -> None:
        """One step at time `now`, from the state at `before`; None: the initial one."""
        spec, b = self.spec, self.b
        with ExitStack() as stack:
            row = stack.enter_context(b.loop(0, spec.batch, kind="parallel")).index if spec.batch != 1 else Index()
            for part in _paired(chunks(spec.units, f32, spec.lanes)):
                with b.loop(part.start, part.stop, part.step) as unit:
                    self._units(now, before, row, unit.index, part)
            if spec.projected:
                for part in chunks(spec.state, f32, spec.lanes):
                    with b.loop(part.start, part.stop, part.step) as unit:
                        self._projection(now, row, unit.index, part)

    def _hidden(self, before: Index | None, row: Index, place: Index, part: Chunk | None = None) -> SSAValue:
        if before is None:
            return self._load("hidden", [row, place], part)
        return self._load("y", [before, row, place], part)

    def _load(self, name: str, where: Sequence[Index | int], part: Chunk | None) -> SSAValue:
        if part is None or not part.shape:
            return self.b.load(self.use[name], where)
        return self.b.load(self.use[name], where, part.shape, *_over(where, part), part.valid)

    def _whole(self, name: str, where: Sequence[Index | int], part: Chunk) -> SSAValue:
        """From a constant, which is padded to whole registers."""
        return self.b.load(self.use[name], where, part.shape, *_over(where, part))

    def _store(self, value: SSAValue, name: str, where: Sequence[Index | int], part: Chunk) -> None:
        self.b.store(value, self.use[name], where, *_over(where, part), part.valid)

    def _units(self, now: Index, before: Index | None, row: Index, unit: Index, part: Chunk) -> None:
        spec, b = self.spec, self.b
        gates = range(spec.gates)
        start = [self._whole("bias", [gate, unit], part) for gate in gates]
        with b.loop(0, spec.state, carry=start) as nest:
            left = self._hidden(before, row, nest.index)
            left = b.broadcast(left, part.shape) if part.shape else left
            found: list[SSAValue] = []
            for gate in gates:
                right = self._whole("weight", [nest.index, gate, unit], part)
                found.append(b.add(loop.MultiplyAddOp(nest.carried[gate], left, right)))
            nest.carry(*found)
        inner = list(nest.results)
        x = [self._load("x", [now, row, unit + gate * spec.units], part) for gate in gates]
        m = Reals(b, part.shape)
        if spec.kind == "lstm":
            self._lstm(
                m, [m.add(one, other) for one, other in zip(x, inner, strict=True)], (now, before, row, unit), part
            )
        elif spec.kind == "gru":
            reset, update = (sigmoid(m, m.add(x[gate], inner[gate])) for gate in (0, 1))
            new = tanh(m, m.add(x[2], m.multiply(reset, inner[2])))
            old = self._hidden(before, row, unit, part)
            self._store(m.add(new, m.multiply(update, m.subtract(old, new))), "y", [now, row, unit], part)
        else:
            total = m.add(x[0], inner[0])
            value = tanh(m, total) if spec.kind == "tanh" else m.clamp(total, 0.0, float("inf"))
            self._store(value, "y", [now, row, unit], part)

    def _lstm(
        self, m: Reals, gates: Sequence[SSAValue], place: tuple[Index, Index | None, Index, Index], part: Chunk
    ) -> None:
        spec, (now, before, row, unit) = self.spec, place
        first, forget, output = (sigmoid(m, gates[gate]) for gate in (0, 1, 3))
        if before is None:
            cell = self._load("cell", [row, unit], part)
        else:
            cell = self._load("y", [before, row, unit + spec.state], part)
        cell = m.add(m.multiply(forget, cell), m.multiply(first, tanh(m, gates[2])))
        self._store(cell, "y", [now, row, unit + spec.state], part)
        hidden = m.multiply(output, tanh(m, cell))
        if spec.projected:
            self._store(hidden, "scratch", [row, unit], part)
        else:
            self._store(hidden, "y", [now, row, unit], part)

    def _projection(self, now: Index, row: Index, unit: Index, part: Chunk) -> None:
        b = self.b
        with b.loop(0, self.spec.units, carry=[b.real(0.0, part.shape)]) as nest:
            left = b.load(self.use["scratch"], [row, nest.index])
            left = b.broadcast(left, part.shape) if part.shape else left
            right = self._whole("projection", [nest.index, unit], part)
            nest.carry(b.add(loop.MultiplyAddOp(nest.carried[0], left, right)))
        self._store(nest.results[0], "y", [now, row, unit], part)
