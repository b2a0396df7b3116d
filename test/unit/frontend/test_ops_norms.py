# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.linalg.norm, vector_norm and matrix_norm: every order, dimensions, types; those of singular values refused."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from eager import Call, r

import qcomp

INF = float("inf")
norm, matrix_norm = torch.linalg.norm, torch.linalg.matrix_norm


def all_forms(x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """x: a matrix, z: matrices."""
    found = [norm(x), norm(x, keepdim=True), norm(x, dim=1), norm(x, dim=(0, 1), keepdim=True), norm(z), norm(x, "fro")]
    found += [norm(x[0], order) for order in (0, 1, 2, 3, -1, INF, -INF)]
    found += [norm(z, order, dim=1, keepdim=True) for order in (0, 1, 2.5, INF)]
    for order in (1, -1, INF, -INF, "fro"):
        found += [norm(x, order), norm(z, order, dim=(2, 0)), norm(z, order, dim=(0, -1), keepdim=True)]
        found += [matrix_norm(z, order), matrix_norm(z, order, dim=(1, 0), keepdim=True)]
    found += [matrix_norm(z), torch.linalg.vector_norm(z, 3, dim=(0, 2))]
    return tuple(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_norms(dtype: torch.dtype) -> None:
    inputs = (r(3, 5, dtype=dtype), r(2, 4, 3, dtype=dtype))
    program: Any = torch.export.export(Call(all_forms), inputs)
    module = qcomp.from_torch(program)
    arrays = [
        value.view(torch.int16).numpy().view(np.uint16) if dtype == torch.bfloat16 else value.numpy()
        for value in inputs
    ]
    reference = qcomp.interpret(module, *arrays)
    for target in ("generic", "native") if dtype == torch.float32 else ("generic",):
        artifact = qcomp.compile(module, target=target, opt_level=1)
        share = {torch.float32: 1e-6, torch.float64: 1e-14, torch.bfloat16: 2**-8}[dtype]
        results = artifact.run(cast("list[Any]", arrays))
        for want, have, held in zip(all_forms(*inputs), results, reference, strict=True):
            found = torch.from_numpy(have.view(np.int16) if dtype == torch.bfloat16 else have).view(dtype)
            assert found.dtype == want.dtype and found.shape == want.shape
            torch.testing.assert_close(found, want, rtol=share, atol=share)
            assert have.tobytes() == held.tobytes()


@pytest.mark.parametrize("order", [2, -2, "nuc"])
def test_singular_values_are_refused(order: Any) -> None:
    program: Any = torch.export.export(Call(lambda x: norm(x, order)), (r(3, 5),))
    with pytest.raises(qcomp.QcompError, match=rf"a matrix norm of order {order}\S* is not supported"):
        qcomp.from_torch(program)


def test_a_type_is_given() -> None:
    x = r(3, 5)
    program: Any = torch.export.export(Call(lambda x: norm(x, 1, dim=(0, 1), dtype=torch.float64)), (x,))
    (found,) = qcomp.interpret(qcomp.from_torch(program), x.numpy())
    assert found.dtype == np.float64 and abs(found - norm(x.double(), 1).item()) < 1e-12
