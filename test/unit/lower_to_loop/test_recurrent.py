# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers at all levels: backwards, projected, of one step, from codes and to codes."""

from __future__ import annotations

import three_way
from layers import Program, activation, kind
from xdsl.ir import SSAValue

from qcomp.dialects import nn

A = activation(0.021, 113)


def test_layers() -> None:
    p = Program(3)
    time, batch, units, state = 5, 3, 19, 18
    results: list[SSAValue] = []
    for reverse in (False, True):
        gates, hidden, cell = p.input((time, batch, 4 * units), A), p.input((batch, state)), p.input((batch, units))
        weight, bias, projection = p.reals((4 * units, state), 0.2), p.reals((4 * units,)), p.reals((state, units), 0.3)
        results.append(p.add(nn.LstmOp(gates, hidden, cell, weight, bias, projection, reverse)))
        x, start = p.input((time, 1, 3 * units)), p.input((1, units))
        results.append(p.add(nn.GruOp(x, start, p.reals((3 * units, units), 0.2), p.reals((3 * units,)), reverse)))
        flat = p.input((time, batch, units))
        hidden = p.input((batch, units))
        for function in ("tanh", "relu"):
            results.append(p.add(nn.RnnOp(flat, hidden, p.reals((units, units), 0.2), None, function, reverse)))
    three_way.check(p.module(*results), *p.arrays, relative=1e-5)


def test_one_step_without_bias() -> None:
    p = Program(4)
    gates, state, cell = p.input((1, 2, 4 * 16)), p.input((2, 16)), p.input((2, 16))
    results = [p.add(nn.LstmOp(gates, state, cell, p.reals((64, 16), 0.2), None, None))]
    results.append(p.add(nn.RnnOp(p.input((0, 2, 16)), state, p.reals((16, 16)), None, "tanh")))
    assert kind((0, 2, 16)) == results[-1].type
    three_way.check(p.module(*results), *p.arrays, relative=1e-5)
