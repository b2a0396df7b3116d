# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of two activations, as attention has them: on codes in C, within one code of torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # pyright: ignore[reportUnusedImport]

import qcomp
from qcomp.backend.artifact import Artifact
from qcomp.backend.target import AVX512VNNI, GENERIC, runs_here

TARGETS = [target.name for target in (GENERIC, AVX512VNNI) if runs_here(target)]
SIGNED, UNSIGNED = (-128, 127, torch.int8), (0, 255, torch.uint8)
Grid = tuple[float, int, tuple[int, int, torch.dtype]]


def rounded(x: torch.Tensor, scale: float, zero: int, limits: tuple[int, int, torch.dtype] = SIGNED) -> torch.Tensor:
    """`x` in codes and back."""
    ops = torch.ops.quantized_decomposed
    return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, scale, zero, *limits), scale, zero, *limits)


class Product(torch.nn.Module):
    """A function of two rounded values, rounded if there is a grid."""

    def __init__(self, function: Callable[..., torch.Tensor], grids: tuple[Grid, Grid], result: Grid | None):
        super().__init__()
        self.function, self.grids, self.result = function, grids, result

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        value = self.function(rounded(x, *self.grids[0]), rounded(y, *self.grids[1]))
        return value if self.result is None else rounded(value, *self.result)


class Attention(torch.nn.Module):
    """Scores and weighted sums of values, all between grids: a code that flips in the scores reaches many results."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = rounded(q, 0.02, 3) @ rounded(k, 0.03, -5, SIGNED).transpose(-1, -2)
        weights = rounded(torch.softmax(rounded(scores, 0.05, 11), -1), 1 / 255, 0, UNSIGNED)
        return rounded(weights @ rounded(v, 0.025, 7), 0.015, -3)


def hold(
    artifact: Artifact, expected: torch.Tensor, inputs: tuple[torch.Tensor, ...], step: float, ops: int = 1
) -> None:
    """At most one code off, in at most one of a thousand for each of `ops`; reals as near as float32 sums are."""
    found = artifact(*inputs)
    assert found.shape == expected.shape
    off = (found - expected).abs()
    if step:
        codes = torch.round(off / step)
        assert codes.max() <= 1 and (codes != 0).sum() <= max(1, ops * codes.numel() // 1000)
    else:
        assert off.max() <= 1e-5 * expected.abs().max()


SHAPES = [((5, 7), (7, 9)), ((2, 3, 17, 20), (2, 3, 20, 35)), ((2, 1, 4, 6), (3, 6, 19)), ((4, 3, 5), (5, 18))]
CASES: list[tuple[Callable[..., torch.Tensor], tuple[int, ...], tuple[int, ...]]] = [
    *[(torch.matmul, *shapes) for shapes in SHAPES],
    (torch.mm, (13, 6), (6, 21)), (torch.bmm, (3, 13, 6), (3, 6, 21)),
    (lambda x, y: x @ y.transpose(-1, -2), (2, 3, 17, 20), (2, 3, 35, 20)),
    (lambda x, y: x.transpose(-1, -2) @ y, (3, 20, 17), (3, 20, 35)),
    (lambda x, y: torch.einsum("bqhd,bkhd->bhqk", x, y), (2, 5, 3, 8), (2, 6, 3, 8)),
    (torch.matmul, (7,), (7, 9)), (torch.matmul, (4, 5, 7), (7,)), (torch.dot, (33,), (33,)),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_products_of_activations(case: int, target: str) -> None:
    function, left, right = CASES[case]
    torch.manual_seed(case)
    inputs = torch.randn(left), torch.randn(right)
    kinds = [SIGNED, UNSIGNED]
    grids: tuple[Grid, Grid] = (0.021, 9, kinds[case % 2]), (0.034, 100, kinds[case // 2 % 2])
    for result in (None, (0.07, 5, kinds[case % 2])):
        model = Product(function, grids, result)
        artifact = qcomp.compile(model, target=target, example_inputs=inputs)
        rows = [row for row in artifact.report()["ops"] if row["op"] == "nn.matmul"]
        assert rows and all(row["compute"] == "i8" for row in rows), rows
        hold(artifact, model(*inputs), inputs, 0.07 if result else 0.0)


@pytest.mark.parametrize("target", TARGETS)
def test_attention(target: str) -> None:
    torch.manual_seed(3)
    inputs = torch.randn(2, 4, 13, 8), torch.randn(2, 4, 18, 8), torch.randn(2, 4, 18, 24)
    artifact = qcomp.compile(Attention(), target=target, example_inputs=inputs)
    computes = [row["compute"] for row in artifact.report()["ops"] if row["op"] == "nn.matmul"]
    assert computes == ["i8", "i8"]
    hold(artifact, Attention()(*inputs), inputs, 0.015, 8)


@pytest.mark.parametrize("target", TARGETS)
def test_attention_over_a_symbolic_length(target: str) -> None:
    """The products are added up over a length that only a range is known of, which proves that the sums fit."""
    torch.manual_seed(4)
    inputs = tuple(torch.randn(2, 19, 8) for _ in range(3))
    length = torch.export.Dim("length", min=2, max=300)
    program = torch.export.export(Attention(), inputs, dynamic_shapes=({1: length},) * 3)
    artifact = qcomp.compile(program, target=target)
    assert [row["compute"] for row in artifact.report()["ops"] if row["op"] == "nn.matmul"] == ["i8", "i8"]
    for size in (19, 2, 33):
        inputs = tuple(torch.randn(2, size, 8) for _ in range(3))
        fixed = qcomp.compile(Attention(), target=target, example_inputs=inputs)
        assert torch.equal(artifact(*inputs), fixed(*inputs))


def test_a_length_without_bound_stays_in_float() -> None:
    inputs = tuple(torch.randn(2, 19, 8) for _ in range(3))
    length = torch.export.Dim("length", min=2)
    program = torch.export.export(Attention(), inputs, dynamic_shapes=({1: length},) * 3)
    rows = [row for row in qcomp.compile(program).report()["ops"] if row["op"] == "nn.matmul"]
    assert [row["compute"] for row in rows] == ["i8", "f32"]
    assert rows[1]["reason"] == "the number of products is not known"
