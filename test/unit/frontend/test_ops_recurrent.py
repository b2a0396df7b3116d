# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent nets against eager torch: layers, directions, projections, single cells; in the interpreter and in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from eager import r
from torch import nn
from torch.utils._pytree import tree_leaves

import qcomp
from qcomp.errors import QcompError
from qcomp.frontend.ops import HANDLERS

NETS: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "lstm": (nn.LSTM(5, 19, 2, bidirectional=True, batch_first=True), (r(3, 7, 5),)),
    "lstm projected": (nn.LSTM(5, 18, proj_size=3), (r(4, 2, 5),)),
    "lstm unbatched": (nn.LSTM(5, 4, bias=False), (r(6, 5),)),
    "gru": (nn.GRU(5, 17, 2, bidirectional=True, dropout=0.5), (r(4, 3, 5),)),
    "gru one step": (nn.GRU(5, 4, bias=False, batch_first=True), (r(2, 1, 5),)),
    "rnn": (nn.RNN(5, 6, bidirectional=True), (r(4, 3, 5),)),
    "rnn relu": (nn.RNN(5, 16, 2, nonlinearity="relu"), (r(4, 1, 5),)),
    "lstm cell": (nn.LSTMCell(5, 6), (r(3, 5),)),
    "gru cell": (nn.GRUCell(5, 6, bias=False), (r(5),)),
    "rnn cell": (nn.RNNCell(5, 6, nonlinearity="relu"), (r(3, 5),)),
}


@pytest.mark.parametrize("name", NETS)
def test_nets(name: str) -> None:
    net, inputs = NETS[name]
    net.eval().requires_grad_(False)
    expected = tree_leaves(net(*inputs))
    program = torch.export.export(net, inputs)
    arrays = [value.numpy() for value in inputs]
    for found in (qcomp.interpret(qcomp.from_torch(program), *arrays), tree_leaves(qcomp.compile(program)(*arrays))):
        for left, right in zip(found, expected, strict=True):
            assert np.allclose(left, right.numpy(), 1e-5, 1e-6)


class WithState(nn.Module):
    """An initial state as input."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> Any:
        return self.net(x, (hidden, cell))


def test_initial_state_and_torch_evaluator() -> None:
    torch.manual_seed(1)
    net, inputs = WithState().eval().requires_grad_(False), (r(5, 2, 4), r(4, 2, 2), r(4, 2, 3, seed=1))
    module = qcomp.from_torch(torch.export.export(net, inputs))
    for evaluator in ("numpy", "torch"):
        found = qcomp.interpret(module, *(value.numpy() for value in inputs), evaluator=evaluator)
        for left, right in zip(found, tree_leaves(net(*inputs)), strict=True):
            assert np.allclose(left, right.numpy(), 1e-5, 1e-6)


def test_packed_sequences_are_refused() -> None:
    """torch exports no such net, but files may hold the op."""
    nothing: Any = None
    with pytest.raises(QcompError, match=r"packed sequences are not supported"):
        HANDLERS["aten.gru.data"](nothing, nothing)
