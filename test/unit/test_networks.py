# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real architectures from a .pt2 file to C: float within 1e-4, int8 by the rules for codes, all levels in bits."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path

import deep
import networks
import numpy as np
import pytest
import three_way

import qcomp
from qcomp.backend.artifact import Artifact

torch = pytest.importorskip("torch")

SMALL = ["resnet8", "ds_cnn", "autoencoder", "mobilenet_v1"]
LARGE = ["resnet18", "mobilenet_v2", "resnet50"]
QUANTIZERS = ["xnnpack", "x86"]
LARGE_INT8 = deep.except_for(
    [("mobilenet_v2", "xnnpack"), ("resnet18", "x86")], itertools.product(LARGE, QUANTIZERS)
)


@cache
def quantized(name: str, quantizer: str):
    """The converted PT2E graph of a network."""
    return networks.quantize(networks.build(name), networks.example(name), quantizer)[1]


def compiled(program: object, name: str, folder: Path, target: str = "native") -> Artifact:
    """`program` through a .pt2 file to an artifact."""
    path = folder / f"{name}.pt2"
    torch.export.save(torch.export.export(program, networks.example(name)), path)
    return qcomp.compile(path, target=target)


def noise(reference: np.ndarray, found: np.ndarray) -> float:
    """The energy of the difference, at least that of a signal to noise ratio of 120 dB."""
    wide = reference.astype(np.float64)
    return float(max(((wide - found) ** 2).sum(), 1e-12 * (wide**2).sum()))


def check_codes(graph: object, artifact: Artifact, inputs: networks.Inputs) -> int:
    """Hold every layer, fed torch's codes, to at most one code off, in one of 1000 elements; how many were compared."""
    layers = qcomp.compare(torch.export.export(graph, inputs), artifact, inputs, "torch")
    coded = [layer for layer in layers if layer.max_off is not None]
    for layer in coded:
        assert (layer.max_off or 0) <= 1 and layer.differ <= max(1, layer.elements // 1000), str(layers)
    return sum(layer.elements for layer in coded)


@pytest.mark.parametrize("name", deep.except_for([*SMALL, "resnet18"], SMALL + LARGE))
def test_float(name: str, tmp_path: Path) -> None:
    model, inputs = networks.build(name), networks.example(name, 5)
    artifact = compiled(model, name, tmp_path)
    with torch.no_grad():
        expected = model(*inputs).numpy()
    found = artifact(*inputs).numpy()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("name, quantizer", deep.in_turn(SMALL, QUANTIZERS) + LARGE_INT8)
def test_int8(name: str, quantizer: str, tmp_path: Path) -> None:
    graph = quantized(name, quantizer)
    artifact = compiled(graph, name, tmp_path)
    report = artifact.report()
    assert artifact.module is not None and artifact.reference is not None
    assert report["macs_integer_share"] >= 0.99
    assert report["arena_bytes"] <= 1.25 * report["arena_bound_bytes"] + 64
    codes = check_codes(graph, artifact, networks.example(name, 4))
    assert codes > (170_000 if name in LARGE else 5_000), "over a million in all"
    ours, others = 0.0, 0.0
    for seed in range(5, 14):
        inputs = networks.example(name, seed)
        with torch.no_grad():
            expected = graph(*inputs).numpy()
        arrays = [value.numpy() for value in inputs]
        found = artifact(*arrays)
        assert found.shape == expected.shape
        if seed < 8:
            (same,) = qcomp.interpret(artifact.module, *arrays)
            assert np.array_equal(found.view(np.uint32), same.view(np.uint32)), "C and the interpreter differ"
        (wide,) = qcomp.interpret(artifact.reference, *arrays)
        ours, others = ours + noise(expected, found), others + noise(expected, wide)
    # Float64 accumulation is another lawful evaluation of the graph: no more noise than it makes, and 3 dB.
    assert 10 * math.log10(ours / others) <= 3.0


@pytest.mark.parametrize(
    "name, quantizer",
    deep.except_for([("ds_cnn", "x86"), ("autoencoder", "xnnpack")], itertools.product(SMALL, QUANTIZERS)),
)
def test_small_networks_in_bits_with_every_compiler(name: str, quantizer: str, tmp_path: Path) -> None:
    graph, inputs = quantized(name, quantizer), networks.example(name, 5)
    arrays = [value.numpy() for value in inputs]
    for target in three_way.TARGETS:
        # The scalar loops of a larger network take the loop interpreter minutes.
        loops = target.lanes > 1 or name in ("ds_cnn", "autoencoder")
        module = compiled(graph, name, tmp_path, target.name).module
        assert module is not None
        three_way.check(module, *arrays, compilers=three_way.COMPILERS, targets=[target], loops=loops)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_large_networks_in_bits_with_another_compiler(name: str, tmp_path: Path) -> None:
    graph, inputs = quantized(name, "x86"), networks.example(name, 5)
    module = compiled(graph, name, tmp_path).module
    assert module is not None
    command = three_way.COMPILERS[-1]
    targets = three_way.TARGETS[-1:]
    three_way.check(module, *(v.numpy() for v in inputs), compilers=[command], targets=targets, loops=False)
