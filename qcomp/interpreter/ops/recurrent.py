# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers."""

from __future__ import annotations

from qcomp.dialects import nn
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import recurrent
from qcomp.interpreter.reference.array import Array


@meaning(nn.LstmOp)
def _lstm(op: nn.LstmOp, arrays: Arrays) -> Array:
    value, hidden, cell, weight, *rest = arrays
    bias = rest.pop(0) if op.bias is not None else None
    step = recurrent.lstm_step(rest.pop(0) if op.projection is not None else None)
    return recurrent.run(value, (hidden, cell), weight, bias, bool(op.reverse.value.data), step)


@meaning(nn.GruOp, nn.RnnOp)
def _plain(op: nn.GruOp | nn.RnnOp, arrays: Arrays) -> Array:
    value, hidden, weight, *rest = arrays
    step = recurrent.gru_step if isinstance(op, nn.GruOp) else recurrent.rnn_step(op.nonlinearity.data)
    return recurrent.run(value, (hidden,), weight, rest[0] if rest else None, bool(op.reverse.value.data), step)
