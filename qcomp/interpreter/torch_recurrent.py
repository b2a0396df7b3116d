# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn's recurrent layers by torch's own, one step at a time, since torch does not give the cell state of every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qcomp.dialects import nn


def recurrent(torch: Any, op: nn.RecurrentOp, values: Sequence[Any]) -> Any:
    """The state after every step: torch's layer with the identity as weight of the input."""
    aten, x, rest = torch.ops.aten, values[0], list(values[1:])
    state = [part[None] for part in (rest.pop(0) for _ in range(2 if isinstance(op, nn.LstmOp) else 1))]
    weight = rest.pop(0)
    bias = rest.pop(0) if rest and rest[0].dim() == 1 else x.new_zeros(len(weight))
    params = [torch.eye(len(weight), dtype=x.dtype), weight, x.new_zeros(len(weight)), bias, *rest]
    options = (params, True, 1, 0.0, False, False, False)
    found: dict[int, Any] = {}
    for time in range(len(x))[:: -1 if op.reverse.value.data else 1]:
        match op:
            case nn.LstmOp():
                _, *state = aten.lstm(x[time : time + 1], state, *options)
            case nn.GruOp():
                _, *state = aten.gru(x[time : time + 1], state[0], *options)
            case nn.RnnOp():
                layer = aten.rnn_tanh if op.nonlinearity.data == "tanh" else aten.rnn_relu
                _, *state = layer(x[time : time + 1], state[0], *options)
            case _:
                raise TypeError(op.name)
        found[time] = torch.cat(state, 2)[0]
    return torch.stack([found[time] for time in range(len(x))]) if found else x.new_zeros(op.infer_shape())
