# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole networks with dynamic sizes: one artifact at several sizes against eager, on both targets."""

from __future__ import annotations

from typing import Any

import deep
import numpy as np
import pytest
import torch
from dynamic_models import Sample
from symbolic_models import NETWORKS, STATEFUL
from torch.export import export

import qcomp
from qcomp.backend.compile import emit
from qcomp.transforms.pipeline import run_passes

TARGETS = ("generic", "native")


def exported(sample: Sample, strict: bool = False) -> Any:
    return export(sample.model, sample.inputs(*sample.sizes[0]), dynamic_shapes=sample.dims, strict=strict)


def arrays(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [part.detach().numpy() if isinstance(part, torch.Tensor) else part for part in parts]


def close(found: Any, want: Any, sizes: Any) -> None:
    for one, other in zip(arrays(found), arrays(want), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype, sizes
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5, err_msg=str(sizes))


@pytest.mark.parametrize("name, target", deep.in_turn(NETWORKS, TARGETS))
def test_an_artifact_is_eager_at_all_sizes(name: str, target: str):
    sample = NETWORKS[name]()
    artifact = qcomp.compile(exported(sample, strict=target == "native"), target=target)
    assert artifact.interface.symbols
    with torch.no_grad():
        for sizes in sample.sizes:
            inputs = sample.inputs(*sizes)
            close(artifact(*inputs), sample.model(*inputs), sizes)


@pytest.mark.parametrize("name", NETWORKS)
def test_loops_mean_what_the_reference_means(name: str):
    sample = NETWORKS[name]()
    emitted = emit(exported(sample), "native")
    loops = emitted.module.clone()
    run_passes(loops, f"lower-to-loop{{target={emitted.target.name}}},plan-memory")
    for sizes in sample.sizes[:2]:
        inputs = [value.numpy() for value in sample.inputs(*sizes)]
        close(qcomp.interpret(loops, *inputs), qcomp.interpret(emitted.module, *inputs), sizes)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", STATEFUL)
def test_state_goes_on_from_size_to_size(name: str, target: str):
    sample = STATEFUL[name]()
    artifact = qcomp.compile(exported(sample, strict=target == "native"), target=target)
    for _ in range(2):
        model = STATEFUL[name]().model
        with torch.no_grad():
            for sizes in sample.sizes:
                inputs = sample.inputs(*sizes)
                close(artifact(*inputs), model(*inputs), sizes)
        artifact.reset()
