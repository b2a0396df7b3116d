# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In-place ops become values where that is right, and are refused by name where it is not."""

from __future__ import annotations

import copy
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
from qcomp.interpreter.state import State

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

    run(through_view, X)
    run(through_base, X)


def test_slices_steps_and_overlapping_views() -> None:
    def body(m: Wrap, x: torch.Tensor, y: torch.Tensor) -> Any:
        a = x + 0
        left, right = a[:, :3], a[:, 1:]
        left += 1
        right *= y[:, 1:]
        a[:, ::3].zero_()
        a[1].copy_(y[0])
        return a, left, right, left.sum()

    run(body, X, Y)


def test_views_of_views() -> None:
    def body(m: Wrap, x: torch.Tensor, y: torch.Tensor) -> Any:
        a = torch.stack([x, y, x + y])
        part = a.transpose(0, 2)[1:3]
        flat = part.permute(2, 0, 1)[1].unsqueeze(0)
        flat.squeeze(0)[:, 1].add_(y[:, 0])
        part.select(1, 1).fill_(2.5)
        first, second = a.chunk(2, 0)
        second.neg_()
        a.view(3, 8)[:, 5].mul_(3)
        a.flatten()[7].sub_(1)
        return a, part, flat, first, second, a.unbind(1)

    run(body, X, Y)


def test_diagonals_and_scatters() -> None:
    def body(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        a.diagonal(1).add_(4)
        b = torch.diagonal_scatter(a, x[:, 0] * 2, -1 + 1)
        c = torch.slice_scatter(b, x[:, :2] + 9, 1, 0, 4, 2)
        return a, b, c, torch.select_scatter(c, x[0], 0, 1), a.diagonal(-1)

    run(body, X)


def test_the_tensor_itself_changes_its_shape() -> None:
    def body(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        b = a.view(8)
        a.unsqueeze_(0)
        a.transpose_(1, 2)
        a[0, 1].mul_(2)
        return a, b

    run(body, X)


def test_indices() -> None:
    def body(m: Wrap, x: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> Any:
        a = x + 0
        a[:, i] = x[:, :3] * 2
        a[j, i] = 7.0
        a.index_copy_(1, i, a[:, 1:] - 1)
        b = torch.stack([x, a, x]).clone()
        b[j, :, i] = a[0, :2]
        b[i - 1, :, i[:1]] = 5.0
        return a, b

    run(body, X, torch.tensor([3, 1, 0]), torch.tensor([1, -1, 0]))


def test_reshape_is_a_view_where_memory_allows() -> None:
    def body(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        b, c = a.reshape(-1), a.t().reshape(-1)
        d, e = a.contiguous(), a.t().contiguous()
        f, g = a.to(torch.float32), a.to(torch.float64)
        a.mul_(2)
        c.add_(1)
        return b, c, d, e, f, g

    run(body, X)


def test_without_strides_nothing_is_guessed() -> None:
    def body(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        b = a.reshape(-1)
        a.mul_(2)
        return b

    module = torch.export.export(Wrap(body), (X,)).module()
    for node in module.graph.nodes:
        if node.op == "call_function":
            node.meta.pop("val", None)
    with pytest.raises(QcompError, match=r"aten.mul.*writes in place to memory that reshape also shows"):
        from_torch(module)


def test_a_write_through_other_steps_is_refused() -> None:
    def body(m: Wrap, x: torch.Tensor) -> Any:
        a = x + 0
        a.unfold(1, 2, 2).mul_(2)
        return a

    refused(body, "aten.unfold", X)


def test_unread_state_is_dropped() -> None:
    def body(m: Any, x: torch.Tensor) -> Any:
        m.count.add_(1)
        return x + 1

    run(body, X)
    program = torch.export.export(Wrap(body), (X,)).run_decompositions()
    assert len(from_torch(program).body.block.first_op.body.block.args) == 1  # pyright: ignore


def test_state_is_an_argument_and_a_result() -> None:
    def body(m: Any, x: torch.Tensor) -> Any:
        m.count.add_(1)
        m.count[None].mul_(2)
        return x + m.count

    model, program = Wrap(body), torch.export.export(Wrap(body), (X,))
    modules = [from_torch(form) for form in (program, program.module(), program.run_decompositions())]
    states = [State(module) for module in modules]
    for _ in range(3):
        expected = model(X).numpy()
        for module, state in zip(modules, states, strict=True):
            (found,) = interpret(module, X.numpy(), state=state)
            assert np.array_equal(found, expected) and state["count"] == model.get_buffer("count").numpy()


def test_state_through_shared_memory() -> None:
    def body(m: Any, x: torch.Tensor) -> Any:
        m.table.add_(1)
        return x + m.row

    refused(body, "writes to buffer (table|row)|also shows", X)


def test_written_input_is_a_result() -> None:
    def body(m: Wrap, x: torch.Tensor, y: torch.Tensor) -> Any:
        before = y * 2
        y.t()[0].add_(1)
        return before + y, x

    program = torch.export.export(Wrap(body), (X, Y.clone()))
    y = Y.clone()
    total, x = body(Wrap(body), X, y)
    for form in (program, program.module()):
        module = from_torch(form)
        found = interpret(module, X.numpy(), Y.numpy())
        assert all(np.array_equal(a, b.numpy()) for a, b in zip(found, (total, x, y), strict=True))
        assert '"args_1_written", nn.written = "args_1"' in str(module)


KEPT = ("running_mean", "running_var", "num_batches_tracked")


class Tracked(nn.Module):
    """A batch norm in training mode whose running statistics are results, beside one that has none."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 5, 3)
        self.norm = nn.BatchNorm2d(5, momentum=0.3)
        self.plain = nn.BatchNorm2d(5, track_running_stats=False)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.norm(self.convolution(x))
        return y, self.plain(y), *(self.norm.get_buffer(name) + 0 for name in KEPT)


@pytest.mark.parametrize("form", ["strict", "not strict", "decomposed"])
def test_running_statistics_are_state(form: str) -> None:
    torch.manual_seed(3)
    model = Tracked().train()
    exported = torch.export.export(copy.deepcopy(model), (torch.randn(4, 3, 7, 6),), strict=form == "strict")
    module = from_torch(exported.run_decompositions() if form == "decomposed" else exported)
    state = State(module)
    for step in range(3):
        x = torch.randn(4, 3, 7, 6) * (step + 1) + step
        with torch.no_grad():
            wanted = tree_leaves(model(x))
        for have, want in zip(interpret(module, x.numpy(), state=state), wanted, strict=True):
            np.testing.assert_allclose(have, want.numpy(), rtol=2e-5, atol=2e-6)


def test_dropout_in_training_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(0.5)).train()
    with pytest.raises(QcompError, match=r"(?s)dropout in training mode.*eval\(\)"):
        from_torch(torch.export.export(model, (torch.randn(2, 3, 5, 5),)))
