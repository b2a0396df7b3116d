# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The faults of others: small programs named after public reports, each compiled to C and held to its oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import qcomp

torch: Any = pytest.importorskip("torch")
import networks  # noqa: E402
from cases import CASES, Case  # noqa: E402

QUANTIZERS = ("xnnpack", "x86")
NOT_BY_X86 = {"same_padding_of_an_even_kernel"}
"""torchao's X86 quantizer fails on a convolution with padding='same': "conv2d is not an aten conv2d operator"."""


def results(value: Any) -> list[Any]:
    """The tensors of a result."""
    return list(torch.utils._pytree.tree_leaves(value))


def run(model: Any, inputs: Sequence[Any]) -> list[Any]:
    """What `model` makes of copies of `inputs`."""
    with torch.no_grad():
        return results(model(*(value.clone() for value in inputs)))


def compiled(model: Any, case: Case, inputs: Any) -> Any:
    """The artifact of `model`."""
    return qcomp.compile(torch.export.export(model, inputs, **case.options))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.oracle == "fp32"])
def test_float(name: str) -> None:
    case = CASES[name]
    model, inputs = case.build()
    for found, expected in zip(run(compiled(model, case, inputs), inputs), run(model, inputs), strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert torch.allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.oracle == "codes"])
def test_codes(name: str) -> None:
    case = CASES[name]
    model, inputs = case.build()
    for found, expected in zip(run(compiled(model, case, inputs), inputs), run(model, inputs), strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype.is_floating_point:
            assert torch.allclose(found, expected, 1e-5, 1e-5)
            continue
        assert len(expected.unique()) > 1, "the case does not say much"
        off = (found.int() - expected.int()).abs()
        if case.accumulates:
            assert off.max() <= 1 and off.sum() <= max(1, off.numel() / 1000)
        else:
            assert not off.any()


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.oracle == "pt2e"])
def test_pt2e(name: str, quantizer: str) -> None:
    case = CASES[name]
    model, inputs = case.build()
    probes = list(case.probes()) if case.probes else [inputs]
    if quantizer == "x86" and name in NOT_BY_X86:
        with pytest.raises(ValueError, match="is not an aten conv2d operator"):
            converted(model, case, [inputs], quantizer)
        return
    graph = converted(model, case, [inputs, *probes], quantizer)
    artifact = compiled(graph, case, inputs)
    steps = output_steps(graph)
    for sample in probes:
        expected = run(graph, sample)
        for index, (found, want) in enumerate(zip(run(artifact, sample), expected, strict=True)):
            assert (found.dtype, found.shape) == (want.dtype, want.shape)
            limit = 1.001 * steps[index] + 1e-5 * float(want.abs().max())
            assert float((found - want).abs().max()) <= limit, index


def converted(model: Any, case: Case, samples: Sequence[Any], quantizer: str) -> Any:
    """`model` prepared, calibrated on `samples` and converted."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    program = torch.export.export(model, samples[0], **case.options)
    prepared = prepare_pt2e(program.module(), networks.make_quantizer(quantizer))
    for sample in samples:
        run(prepared, sample)
    return convert_pt2e(prepared)


def output_steps(graph: Any) -> list[float]:
    """For each result of a converted graph the largest scale among the dequantizes that come right before it."""
    output = next(node for node in graph.graph.nodes if node.op == "output")
    return [_step(value) for value in results(output.args[0])]


def _step(node: Any) -> float:
    if "dequantize_per_tensor" in str(getattr(node, "target", "")):
        return float(node.args[1])
    return max((_step(before) for before in getattr(node, "all_input_nodes", ())), default=0.0)


def test_there_are_38() -> None:
    assert len(CASES) == 38
