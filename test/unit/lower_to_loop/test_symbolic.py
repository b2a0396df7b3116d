# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One compiled artifact at several sizes: C and the loop interpreter against the reference, and against eager."""

from __future__ import annotations

import re
import subprocess
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from dynamic_models import MODELS, ConvNet, Sample
from torch.export import Dim, export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)

import qcomp
from qcomp.backend.compile import emit
from qcomp.transforms.pipeline import run_passes

TARGETS = ("generic", "native")


def exported(sample: Sample) -> Any:
    return export(sample.model, sample.inputs(*sample.sizes[2]), dynamic_shapes=sample.dims)


def arrays(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [part.detach().numpy() if isinstance(part, torch.Tensor) else part for part in cast("tuple[Any]", parts)]


def close(found: Any, want: Any) -> None:
    for one, other in zip(arrays(found), arrays(want), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_an_artifact_runs_at_all_sizes(name: str, target: str, tmp_path: Path):
    sample = MODELS[name]()
    artifact = qcomp.compile(exported(sample), target=target)
    for sizes in sample.sizes:
        inputs = sample.inputs(*sizes)
        close(artifact(*inputs), sample.model(*inputs))
    artifact.save(tmp_path / "net")
    again = qcomp.load(tmp_path / "net")
    inputs = sample.inputs(*sample.sizes[1])
    close(again(*inputs), sample.model(*inputs))
    assert again.interface == artifact.interface and again.report() == artifact.report()
    files = [str(tmp_path / "net" / f"net{end}") for end in (".c", "_weights.c", "_selftest.c")]
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "test", *files], check=True, capture_output=True)
    subprocess.run([tmp_path / "test"], check=True, capture_output=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_loops_mean_what_the_reference_means(name: str, target: str):
    sample = MODELS[name]()
    emitted = emit(exported(sample), target)
    loops = emitted.module.clone()
    run_passes(loops, f"lower-to-loop{{target={emitted.target.name}}},plan-memory")
    for sizes in sample.sizes[:3]:
        inputs = [value.numpy() for value in sample.inputs(*sizes)]
        close(qcomp.interpret(loops, *inputs), qcomp.interpret(emitted.module, *inputs))


def quantized() -> tuple[Any, Sample]:
    sample = ConvNet.sample()
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = prepare_pt2e(exported(sample).module(), quantizer)
        for batch in (2, 5):
            prepared(*sample.inputs(batch))
        converted = convert_pt2e(prepared)
        return export(converted, sample.inputs(3), dynamic_shapes={"x": {0: Dim("n", min=0, max=64)}}), sample


def test_codes_are_the_interpreters_at_all_sizes():
    program, sample = quantized()
    artifact = qcomp.compile(program)
    assert artifact.report()["macs_integer_share"] == 1.0
    for (batch,) in sample.sizes:
        (x,) = sample.inputs(batch)
        assert artifact.module is not None
        for one, other in zip(arrays(artifact(x)), qcomp.interpret(artifact.module, x.numpy()), strict=True):
            assert one.tobytes() == other.tobytes(), batch


def test_dims_fix_sizes_as_a_static_export_does():
    sample = ConvNet.sample()
    program = exported(sample)
    static = qcomp.compile(export(sample.model, sample.inputs(2)))
    fixed = qcomp.compile(program, dims={"x.0": 2})
    inputs = sample.inputs(2)
    for one, other in zip(arrays(static(*inputs)), arrays(fixed(*inputs)), strict=True):
        assert one.tobytes() == other.tobytes()
    assert fixed.report()["arena_bytes"] == static.report()["arena_bytes"]
    with pytest.raises(qcomp.QcompError, match=r"expected shape \[2, 3, 8, 8\], got \[3, 3, 8, 8\]"):
        fixed(*sample.inputs(3))
    with pytest.raises(qcomp.QcompError, match="has no symbolic size c"):
        qcomp.compile(program, dims={"c": 2})


def test_the_arena_grows_with_the_batch_and_wrong_shapes_are_refused():
    sample = ConvNet.sample()
    artifact = qcomp.compile(exported(sample))
    static = qcomp.compile(export(sample.model, sample.inputs(1), strict=False))
    (symbol,) = artifact.interface.symbols
    one, five = (artifact.report({symbol.name: size})["arena_bytes"] for size in (1, 5))
    with pytest.raises(qcomp.QcompError, match=f"no symbolic size nosuch .*there are {symbol.name}"):
        artifact.report({"nosuch": 3})
    assert five - 64 == 5 * (one - 64) and one <= static.report()["arena_bytes"]
    for shape in ((65, 3, 8, 8), (2, 4, 8, 8), (2, 3, 8)):
        with pytest.raises(qcomp.QcompError, match="input x"):
            artifact(np.zeros(shape, np.float32))


class Pyramid(torch.nn.Module):
    """Images of two strides brought to one size: offsets into the arena are sums of many quotients."""

    def __init__(self) -> None:
        super().__init__()
        self.fine, self.coarse = torch.nn.Conv2d(3, 4, 3, stride=4, padding=1), torch.nn.Conv2d(3, 4, 3, 8, padding=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        fine, coarse = self.fine(image), self.coarse(image)
        coarse = torch.nn.functional.interpolate(coarse, size=fine.shape[2:], mode="bilinear", align_corners=False)
        return torch.cat([fine, coarse], 1)


def test_the_entry_function_computes_each_size_once():
    """Calls of kernels name sizes; no quotient, product or sum is written twice."""
    dims = {"image": {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}}
    program = emit(export(Pyramid().eval(), (torch.ones(2, 3, 32, 40),), dynamic_shapes=dims), "generic").program
    for function in ("net_run", "net_arena_size"):
        body = program.source.split(f" {function}(", 1)[1].split("\n}\n", 1)[0]
        definitions = re.findall(r"  const int64_t (size_\d+) = (.*);", body)
        assert definitions and body.count("floor_divide") == sum("floor_divide" in text for _, text in definitions)
        assert len({text for _, text in definitions}) == len(definitions) == len({name for name, _ in definitions})
    calls = re.findall(r"\n  [a-z_0-9]+\(.*\);", program.source.split(" net_run(", 1)[1].split("\n}\n", 1)[0])
    assert len(calls) > 20 and max(map(len, calls)) < 400
