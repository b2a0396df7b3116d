# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embeddings from tables of codes, whose ops another library registers: here with the meaning they have there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from eager import Call

import qcomp
from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

LIBRARY = torch.library.Library("quantized_decomposed", "FRAGMENT")
OPS: Any = torch.ops.quantized_decomposed
ROWS, SIZE = 13, 24


def rows(weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, indices: torch.Tensor) -> torch.Tensor:
    """Rows of codes, each a byte, as reals."""
    groups = scales.reshape(len(weight), -1, 1)
    shift = 0 if zeros is None else zeros.reshape(len(weight), -1, 1)
    real = (weight.reshape(len(weight), groups.shape[1], -1) - shift) * groups
    return real.reshape(weight.shape)[indices].to(scales.dtype)


def unpack(weight: torch.Tensor, bits: int) -> torch.Tensor:
    shifts = {4: (4, 0), 2: (0, 2, 4, 6)}[bits]
    parts = [(weight >> shift) & ((1 << bits) - 1) for shift in shifts]
    return torch.stack(parts, -1).reshape(len(weight), -1).to(torch.int8) - (1 << (bits - 1))


def register(name: str, table: Callable[[torch.Tensor], torch.Tensor]) -> None:
    arguments = (
        "Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max,"
        " Tensor indices"
    )

    def plain(weight: Any, scales: Any, zeros: Any, low: int, high: int, indices: Any) -> torch.Tensor:
        return rows(table(weight), scales, zeros, indices)

    def typed(weight: Any, scales: Any, zeros: Any, low: int, high: int, indices: Any, *, dtype: Any = None) -> Any:
        return plain(weight, scales, zeros, low, high, indices).to(dtype or scales.dtype)

    for form, function, more in (("", plain, ""), (".dtype", typed, ", *, ScalarType? dtype=None")):
        LIBRARY.define(f"{name}{form}({arguments}{more}) -> Tensor")
        LIBRARY.impl(f"{name}{form}", function, "CompositeExplicitAutograd")


register("embedding_byte", lambda weight: weight)
register("embedding_4bit", lambda weight: unpack(weight, 4))
register("embedding_2bit", lambda weight: unpack(weight, 2))
BITS = {"embedding_byte": 8, "embedding_4bit": 4, "embedding_2bit": 2}
ZEROS: dict[str, Callable[[Any, int], Any]] = {
    "none": lambda grid, low: None,
    "whole": lambda grid, low: torch.randint(low, -low, grid),
    "whole floats": lambda grid, low: torch.randint(low, -low, grid).float(),
    "fractions": lambda grid, low: torch.randn(grid),
}


def model(name: str, groups: int | None, zeros: str, **options: Any) -> tuple[torch.nn.Module, int]:
    """A lookup in a random table, and the bytes of codes and parameters at their smallest."""
    torch.manual_seed(4)
    bits, grid = BITS[name], (ROWS,) if groups is None else (ROWS, groups)
    low = -(2 ** (bits - 1))
    scales, shift = torch.rand(grid) / 10 + 0.01, ZEROS[zeros](grid, low)
    packed = torch.randint(0, 256, (ROWS, SIZE * bits // 8), dtype=torch.uint8)
    weight = packed.view(torch.int8) if bits == 8 else packed

    def body(indices: torch.Tensor) -> torch.Tensor:
        return getattr(OPS, name)(weight, scales, shift, low, -low - 1, indices, **options)

    each = 4 + {"none": 0, "whole": 1, "whole floats": 1, "fractions": 4}[zeros]
    return Call(body).eval(), ROWS * (SIZE * max(bits, 4) // 8 + (groups or 1) * each)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("groups", [None, 1, 3])
@pytest.mark.parametrize("zeros", ZEROS)
def test_rows(name: str, groups: int | None, zeros: str) -> None:
    """The bits of the op, interpreted and in C, and a table no larger than its codes."""
    net, size = model(name, groups, zeros)
    indices = torch.randint(0, ROWS, (2, 5))
    module = from_torch(torch.export.export(net, (indices,)))
    expected = net(indices).numpy()
    (found,) = interpret(module, indices.numpy())
    assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    artifact = qcomp.compile(module, "generic")
    assert np.asarray(artifact(indices.numpy())).tobytes() == expected.tobytes()
    assert artifact.report()["weight_bytes"] == size


def test_types() -> None:
    indices = torch.randint(0, ROWS, (3,))
    net, _ = model("embedding_4bit", 2, "none", dtype=torch.float32)
    (found,) = interpret(from_torch(torch.export.export(net, (indices,))), indices.numpy())
    assert found.tobytes() == net(indices).numpy().tobytes()
    net, _ = model("embedding_byte", 2, "none", dtype=torch.float16)
    with pytest.raises(QcompError, match="float32 only"):
        from_torch(torch.export.export(net, (indices,)))


def test_tables_that_are_computed_are_refused() -> None:
    def body(weight: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return OPS.embedding_4bit(weight, torch.ones(ROWS), None, -8, 7, indices)

    inputs = (torch.zeros(ROWS, 4, dtype=torch.uint8), torch.randint(0, ROWS, (3,)))
    with pytest.raises(QcompError, match="a constant matrix of uint8"):
        from_torch(torch.export.export(Call(body).eval(), inputs))
