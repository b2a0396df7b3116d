# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In-place ops become values where that is right, and are refused by name where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

Body = Callable[..., Any]


class Wrap(nn.Module):
    """A module around a function, with some buffers."""

    table: torch.Tensor

    def __init__(self, body: Body):
        super().__init__()
        self.body = body
        self.register_buffer("count", torch.tensor(3.0))
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4))
        self.register_buffer("row", self.table[1])

    def forward(self, *args: torch.Tensor) -> Any:
        return self.body(self, *args)


def run(body: Body, *inputs: torch.Tensor) -> None:
    """Export `body`, import it, and compare with eager. The outputs must be equal in bits."""
    expected = Wrap(body)(*(value.clone() for value in inputs))
    program = torch.export.export(Wrap(body), inputs)
    for form in (program, program.module()):
        found = interpret(from_torch(form), *(value.numpy() for value in inputs))
        leaves = tree_leaves(expected)
        for left, right in zip(found, leaves, strict=True):
            assert left.dtype == right.numpy().dtype and np.array_equal(left, right.numpy())


def refused(body: Body, match: str, *inputs: torch.Tensor) -> None:
    with pytest.raises(QcompError, match=match):
        from_torch(torch.export.export(Wrap(body), inputs))


X = torch.tensor([[1.5, -2.0, 0.25, 3.0], [0.5, -1.0, 4.0, -0.125]])
Y = torch.tensor([[-1.0, 2.5, 1.0, -3.0], [8.0, -2.0, 0.5, 1.0]])


def test_other_names_see_the_write() -> None:
    def body(m: Wrap, x: torch.Tensor, y: torch.Tensor) -> Any:
        a = x * 2
        b = a.detach()
        c = a.add_(y)
        d = a + 1
        c.mul_(3)
        return a, b, c, d, x

    run(body, X, Y)


def test_chain_and_old_values() -> None:
    def body(m: Wrap, x: torch.Tensor, y: torch.Tensor) -> Any:
        a = x + y
        before = a * 2
        a += x
        nn.functional.relu_(a)
        nn.functional.hardtanh_(a, -1.0, 2.0)
        return before, a

    run(body, X, Y)


def test_type_of_the_written_tensor_stays() -> None:
    def body(m: Wrap, x: torch.Tensor, i: torch.Tensor) -> Any:
        a = i + 0
        a.add_(2)
        b = x + 0
        b.add_(i)
        b.mul_(torch.tensor(0.1, dtype=torch.float64))
        return a, b

    run(body, X, torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]], dtype=torch.int32))


def test_copy_and_dead_view() -> None:
    def body(m: Wrap, x: torch.Tensor, y: torch.Tensor) -> Any:
        a = x + 0
        a.copy_(y[0])
        b = (x + y).view(4, 2)
        b.relu_()
        return a, b

    run(body, X, Y)


def test_dropout_in_place() -> None:
    run(lambda m, x: nn.functional.dropout(x + 1, 0.5, training=False, inplace=True), X)


def test_view_that_is_read_later() -> None:
    def through_view(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        a[:, 1].add_(1)
        return a

    def through_base(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        b = a.view(4, 2)
        a.mul_(2)
        return b

    refused(through_view, r"aten.*_.* writes in place to memory that \w+ also shows; at test_functional.py:\d+", X)
    refused(through_base, "aten.mul.*writes in place to memory that view also shows", X)


def test_reshape_may_be_a_view() -> None:
    def body(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        b = a.reshape(-1)
        a.mul_(2)
        return b

    refused(body, "also shows", X)


def test_unread_state_is_dropped() -> None:
    def body(m: Any, x: torch.Tensor) -> Any:
        m.count.add_(1)
        return x + 1

    run(body, X)
    program = torch.export.export(Wrap(body), (X,)).run_decompositions()
    assert len(from_torch(program).body.block.first_op.body.block.args) == 1  # pyright: ignore


def test_state_is_refused_by_name() -> None:
    def body(m: Any, x: torch.Tensor) -> Any:
        m.count.add_(1)
        return x + m.count

    refused(body, "add_.Tensor x1: writes to buffer count, which the program also reads", X)
    program = torch.export.export(Wrap(body), (X,)).run_decompositions()
    with pytest.raises(QcompError, match="writes to buffer count"):
        from_torch(program)


def test_state_through_shared_memory() -> None:
    def body(m: Any, x: torch.Tensor) -> Any:
        m.table.add_(1)
        return x + m.row

    refused(body, "writes to buffer (table|row)|also shows", X)


def test_written_input_is_refused() -> None:
    refused(lambda m, x: x.add_(1), "writes to input args_0", X)
    with pytest.raises(QcompError, match="writes to input"):
        from_torch(torch.export.export(Wrap(lambda m, x: x.add_(1)), (X,)).run_decompositions())


def test_training_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5)).train()
    with pytest.raises(QcompError, match=r"(?s)batch_norm in training mode.*eval\(\).*dropout in training mode"):
        from_torch(torch.export.export(model, (torch.randn(2, 3, 5, 5),)))
