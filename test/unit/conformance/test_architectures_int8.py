# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Architectures quantized by torchao and compiled to integers: the rule for codes, and C equal to the interpreter.

Each layer, fed the codes that the PT2E graph has there, is off by one code at most, in one place of a thousand.
"""

from __future__ import annotations

from typing import Any

import deep
import networks
import numpy as np
import pytest

import qcomp

torch: Any = pytest.importorskip("torch")
from architectures import ARCHITECTURES, build  # noqa: E402

CASES = [(name, quantizer) for name, entry in ARCHITECTURES.items() for quantizer in entry.quantizers]


def test_there_are_enough() -> None:
    assert sum(bool(entry.quantizers) for entry in ARCHITECTURES.values()) >= 15


@pytest.mark.parametrize(("name", "quantizer"), deep.except_for(CASES[::2], CASES))
def test_int8(name: str, quantizer: str) -> None:
    model, inputs = build(name)
    graph = networks.quantize(model, inputs, quantizer, strict=False)[1]
    artifact = qcomp.compile(graph, example_inputs=inputs)
    assert artifact.module is not None
    report = artifact.report()
    assert report["macs_integer_share"] >= 0.99
    comparison = qcomp.compare(graph, artifact, inputs)
    coded = [layer for layer in comparison if layer.max_off is not None]
    assert coded
    for layer in coded:
        assert layer.max_off is not None and layer.max_off <= 1, str(comparison)
        assert layer.differ <= max(1, layer.elements / 1000), str(comparison)
    arrays = [value.numpy() for value in inputs]
    for found, same in zip(artifact.run(arrays), qcomp.interpret(artifact.module, *arrays), strict=True):
        assert np.array_equal(found, same), "C and the interpreter differ"
