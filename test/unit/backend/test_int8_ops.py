# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops between dequantize and quantize that work on codes: the bits of torch, and no float in the report."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # pyright: ignore[reportUnusedImport]

import qcomp
from qcomp.backend.target import AVX512VNNI, GENERIC, runs_here

TARGETS = [target.name for target in (GENERIC, AVX512VNNI) if runs_here(target)]
Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor | tuple[torch.Tensor, ...]]
SIGNED, UNSIGNED = (-128, 127, torch.int8), (0, 255, torch.uint8)


def rounded(x: torch.Tensor, scale: float, zero: int, unsigned: bool = False) -> torch.Tensor:
    """`x` in codes and back; indices and truth values as they are."""
    if x.dtype != torch.float32:
        return x
    ops, limits = torch.ops.quantized_decomposed, UNSIGNED if unsigned else SIGNED
    return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, scale, zero, *limits), scale, zero, *limits)


class Between(torch.nn.Module):
    """A function of two rounded values, its results rounded."""

    def __init__(self, function: Function, second: tuple[float, int, bool]):
        super().__init__()
        self.function, self.second = function, second

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.function(rounded(x, 0.02, 3), rounded(y, *self.second))
        results = found if isinstance(found, tuple) else (found,)
        return tuple(rounded(value, 0.05, 70, True) for value in results)


ROWS = torch.tensor([2, 0, 1])
MASK = torch.arange(35).reshape(5, 7) % 3 == 0
PICKS: dict[str, Function] = {
    "index": lambda a, b: a[:, ROWS],
    "index_tensors": lambda a, b: a[ROWS, ROWS],
    "gather": lambda a, b: torch.gather(a, 1, ROWS.expand(5, 3)),
    "flip": lambda a, b: a.flip(1, 0),
    "roll": lambda a, b: a.roll(2, 1),
    "index_select": lambda a, b: torch.index_select(a, 0, ROWS),
    "take": lambda a, b: torch.take(a, ROWS + 17),
    "embedding": lambda a, b: torch.nn.functional.embedding(ROWS, a),
    "where": lambda a, b: torch.where(MASK, a, b),
    "where_compared": lambda a, b: torch.where(a > 0.5, a, b),
    "where_number": lambda a, b: torch.where(b >= a, a, 0.25),
    "masked_fill": lambda a, b: a.masked_fill(MASK, 0.0),
    "masked_fill_infinite": lambda a, b: a.masked_fill(MASK, -float("inf")),
    "tril": lambda a, b: a.tril(1),
    "slice_scatter": lambda a, b: torch.slice_scatter(a, b[:2], 0, 1, 3),
    "select_scatter": lambda a, b: torch.select_scatter(a, b[1], 0, 3),
    "index_copy": lambda a, b: a.index_copy(0, ROWS, b[:3]),
    "scatter": lambda a, b: a.scatter(1, ROWS.expand(5, 3), b),
    "scatter_number": lambda a, b: a.scatter(1, ROWS.expand(5, 3), 1.1),
    "index_fill": lambda a, b: a.index_fill(0, ROWS, 0.37),
    "cat": lambda a, b: torch.cat([a, b], 1),
    "stack": lambda a, b: torch.stack([a, b], 1),
    "pad": lambda a, b: torch.nn.functional.pad(a, (1, 2), value=0.7),
    "repeat": lambda a, b: a.repeat(2, 3),
    "nearest": lambda a, b: torch.nn.functional.interpolate(a[None, None], scale_factor=2, mode="nearest"),
}
ORDERS: dict[str, Function] = {
    "topk": lambda a, b: torch.topk(a, 3)[0],
    "topk_smallest": lambda a, b: torch.topk(a, 2, 0, False)[0],
    "sort": lambda a, b: torch.sort(a, dim=1, stable=True),
    "sort_descending": lambda a, b: torch.sort(a, dim=0, descending=True, stable=True),
    "max": lambda a, b: a.max(1),
    "min": lambda a, b: a.min(0),
    "argmax": lambda a, b: a.argmax(1),
    "amin": lambda a, b: a.amin((0, 1)),
    "aminmax": lambda a, b: torch.aminmax(a, dim=1),
    "cummax": lambda a, b: torch.cummax(a, 1),
    "cummin": lambda a, b: torch.cummin(a, 0),
    "max_pool": lambda a, b: torch.nn.functional.max_pool2d(a[None, None], 3, 2, 1, return_indices=True),
    "compare": lambda a, b: a < b,
}
NUMBERS: dict[str, Function] = {
    "add": lambda a, b: a + 1.5, "mul": lambda a, b: a * -0.7, "rsub": lambda a, b: 3 - a, "pow": lambda a, b: a**2,
    "div": lambda a, b: a / 3, "clamp": lambda a, b: torch.clamp(a, -0.3, 1.1), "maximum": torch.maximum,
    "add_row": lambda a, b: a + torch.linspace(-1, 1, 7), "fmod": lambda a, b: torch.fmod(a, 0.7),
}  # fmt: skip
IN_REALS: dict[str, Function] = {
    "softmax": lambda a, b: torch.softmax(a, 1), "softmax_of_columns": lambda a, b: torch.softmax(b, 0),
    "layer_norm": lambda a, b: torch.nn.functional.layer_norm(a, (7,)), "cumsum": lambda a, b: a.cumsum(1),
    "cumprod": lambda a, b: b.cumprod(0), "prod": lambda a, b: a.prod(1),
    "logcumsumexp": lambda a, b: a.logcumsumexp(1),
}  # fmt: skip
CASES = {**PICKS, **ORDERS, **NUMBERS}


@pytest.mark.parametrize("name", CASES)
def test_ops_on_codes(name: str) -> None:
    torch.manual_seed(len(name))
    # Coarse values: many of them are equal.
    inputs = (torch.randn(5, 7) * 4).round() / 4, torch.randn(5, 7)
    # Of the encoding of the first operand for one target, of another one for the other.
    for target, second in zip(TARGETS, ((0.02, 3, False), (0.034, 100, True)), strict=False):
        model = Between(CASES[name], second)
        artifact = qcomp.compile(model, target=target, example_inputs=inputs)
        rows = [row for row in artifact.report()["ops"] if not row["op"].startswith("quant.")]
        assert not [row for row in rows if row["compute"].startswith("f")], rows
        found = artifact(*inputs)
        for want, have in zip(model(*inputs), found if isinstance(found, tuple) else (found,), strict=True):
            assert want.dtype == have.dtype and torch.equal(want, have), (name, target)


@pytest.mark.parametrize("name", IN_REALS)
def test_reals_between_codes(name: str) -> None:
    """Computed in float32 from codes in memory to codes in memory: the bits of the float op between them."""
    torch.manual_seed(len(name))
    inputs = torch.randn(5, 7), torch.randn(5, 7)
    model = Between(IN_REALS[name], (0.034, 100, True))
    apart = qcomp.compile(model, target="generic", example_inputs=inputs, opt_level=0)(*inputs)
    for target in TARGETS:
        artifact = qcomp.compile(model, target=target, example_inputs=inputs)
        rows = [row for row in artifact.report()["ops"] if not row["op"].startswith("quant.")]
        assert [(row["compute"], row["memory"]) for row in rows] == [("f32", "i8")], rows
        found = artifact(*inputs)
        for want, have in zip(apart, found, strict=True):
            assert torch.equal(want, have), (name, target)


def test_a_float_beside_codes_has_one_reason() -> None:
    """The op that writes codes tells why it has no integer form, once."""
    inputs = torch.randn(4, 5), torch.randn(5, 6)
    model = Between(lambda a, b: torch.addmm(torch.ones(6), a, b), (0.03, -5, False))
    rows = [row for row in qcomp.compile(model, example_inputs=inputs).report()["ops"] if row["op"] == "nn.add"]
    assert [(row["compute"], row["reason"]) for row in rows] == [("f32", "operand 1 is not dequantized")]


def test_ties_of_unstable_sorts_are_sorted() -> None:
    """Where torch may give any of equal elements, values are right and places hold them."""
    inputs = (torch.randn(3, 60) * 2).round() / 2, torch.randn(3, 60)
    model = Between(lambda a, b: torch.topk(a, 20), (0.02, 3, False))
    values, places = qcomp.compile(model, example_inputs=inputs)(*inputs)
    assert torch.equal(values, model(*inputs)[0])
    held = torch.gather(rounded(inputs[0], 0.02, 3), 1, places)
    assert torch.equal(rounded(held, 0.05, 70, True), values)
