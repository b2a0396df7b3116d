# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""qcomp.compare: a wrong layer is found where it is, on the program's own codes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiled import INPUT, network
from tensor_programs import floats, program
from xdsl.dialects.builtin import ModuleOp

import qcomp
from qcomp import QcompError
from qcomp.backend.artifact import Artifact
from qcomp.backend.compare import Layer, compare, samples
from qcomp.dialects import nn
from qcomp.dialects.constant import Array, ConstantData, DataAttr
from qcomp.dialects.quant import Encoding, encoding_of

INTEGER = ["nn.conv2d", "nn.conv2d", "nn.adaptive_avg_pool2d", "nn.linear"]


def test_every_layer_by_the_code_rule(artifact: Artifact, sample: Array) -> None:
    found = compare(network(), artifact, sample)
    assert sorted(row.op for row in found if row.op in INTEGER) == sorted(INTEGER)
    for row in found:
        assert (row.max_off or 0) <= 1 and row.differ <= max(1, row.elements / 1000), row
    assert len(found.outputs) == 1 and found.outputs[0].sqnr_db > 30
    assert len(found) == len(found.layers) and found[0] is found.layers[0]


def broken(artifact: Artifact, which: int) -> ModuleOp:
    """The compiled module with the weights of one channel of contraction `which` negated."""
    assert artifact.module is not None
    module = artifact.module.clone()
    op = [op for op in module.walk() if isinstance(op, nn.WeightedOp)][which]
    held = op.weight.owner
    assert isinstance(held, nn.ConstantOp)
    array = held.array.copy()
    array[-1] = -array[-1]
    held.properties["value"] = DataAttr(ConstantData(array, held.value.data.element))
    return module


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_wrong_layer_is_first_and_alone(artifact: Artifact, which: int) -> None:
    """Layers behind it get the program's codes and are right."""
    rng = np.random.default_rng(4)
    inputs = [rng.standard_normal(INPUT).astype(np.float32) for _ in range(3)]
    right, wrong = (compare(network(), module, inputs) for module in (artifact, broken(artifact, which)))
    by_place = {(row.name, row.op, row.elements): row for row in right}
    assert wrong[0].name == ["stem", "mix", "head"][which] and wrong[0].loc == "model.py:7"
    assert (wrong[0].max_off or 0) > 1 and wrong[0].share > 0.01
    assert [row for row in wrong if row != by_place[row.name, row.op, row.elements]] == [wrong[0]]
    assert wrong.outputs[0].sqnr_db < right.outputs[0].sqnr_db


def test_text_is_a_table(artifact: Artifact, sample: Array) -> None:
    lines = str(compare(network(), broken(artifact, 2), sample)).splitlines()
    assert lines[0].split() == ["off", "differ", "SQNR", "dB", "layer"]
    assert lines[1].split()[0] not in ("0", "1") and lines[1].endswith("head nn.linear (model.py:7)")
    assert lines[-2] == "end to end" and lines[-1].split()[0] == "-"


def test_samples(artifact: Artifact, sample: Array) -> None:
    """One array, a tuple, a list of either; tensors."""
    one = compare(network(), artifact, sample)
    many = compare(network(), artifact, [sample, (sample,), torch.from_numpy(sample)])
    assert [3 * row.elements for row in one] == [row.elements for row in many]
    assert str(one) == str(compare(network(), artifact, (sample,)))
    assert len(samples([(sample,), sample])) == 2
    with pytest.raises(QcompError, match="no sample"):
        compare(network(), artifact, [])
    with pytest.raises(QcompError, match="expected shape"):
        compare(network(), artifact, sample[:1])


def test_loaded_artifacts(artifact: Artifact, sample: Array, tmp_path: Path) -> None:
    """They are compiled again from the program, and must be what it compiles to."""
    artifact.save(tmp_path / "a")
    loaded = qcomp.load(tmp_path / "a")
    assert str(compare(network(), loaded, sample)) == str(compare(network(), artifact, sample))

    def build(add: Any, x: Any) -> Any:
        return add(nn.ReluOp(x))

    with pytest.raises(QcompError, match="was not compiled from this program"):
        compare(program(build, floats(*INPUT)), loaded, sample)


def test_a_program_that_computes_nothing() -> None:
    """Its input and a constant are its results: there is no layer, and they agree end to end."""
    text = (
        "func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<1xf32>) {\n"
        "  %c = nn.constant dense<0.5> : tensor<1xf32>\n  func.return %x, %c : tensor<2x3xf32>, tensor<1xf32>\n}\n"
    )
    module = qcomp.parse(text)
    found = compare(module, qcomp.compile(module, target="generic"), np.ones((2, 3), np.float32))
    assert len(found) == 0 and [row.differ for row in found.outputs] == [0, 0]
    assert "end to end" in str(found) and "0 layers" in repr(found) and found._repr_html_()


def test_modules_without_common_names(sample: Array) -> None:
    def build(add: Any, x: Any) -> Any:
        return add(nn.ReluOp(x))

    with pytest.raises(QcompError, match="no value of the module has a name of the program"):
        compare(program(build, floats(*INPUT)), program(build, floats(*INPUT)), sample)


def test_the_torch_evaluator(artifact: Artifact, sample: Array) -> None:
    found = compare(network(), artifact, sample, "torch")
    assert all((row.max_off or 0) <= 1 for row in found)


def test_unsigned_and_signed_codes_are_the_same_numbers(sample: Array) -> None:
    """Where activations became unsigned, layers still compare by code."""
    module = network()
    artifact = qcomp.compile(module, target="x86-64-avx512vnni", opt_level=1)
    assert artifact.module is not None
    unsigned = [op for op in artifact.module.walk() if op.results and _is_unsigned(op.results[0])]
    assert len(unsigned) > 3
    reference = compare(module, artifact, sample)
    assert all(row.max_off is None or row.max_off <= 1 for row in reference) and len(reference) >= 6


def _is_unsigned(value: Any) -> bool:
    encoding = encoding_of(value.type)
    return encoding is not None and not encoding.signed


def test_figures() -> None:
    row = Layer("a", "nn.relu", None, "v")
    encoding = Encoding.make(0.5, 0)
    before, after = np.array([0, 4, -2, 7], np.int8), np.array([0, 4, 1, 6], np.int8)
    row.add(before, after, encoding, (before * 0.5, after * 0.5))
    row.add(before, before, encoding, (before * 0.5, before * 0.5))
    assert (row.elements, row.max_off, row.differ, row.share) == (8, 3, 2, 0.25)
    assert row.sqnr_db == pytest.approx(10 * math.log10(2 * 69 / 10))
    nan = Layer("a", "nn.relu", None, "v")
    values = np.array([np.nan, np.inf, 1.0], np.float32)
    nan.add(values, values.copy(), None, (values, values))
    assert (nan.differ, nan.max_off, nan.sqnr_db) == (0, None, math.inf)
    nan.add(values, np.array([1.0, np.inf, 1.0], np.float32), None, (values, values))
    assert nan.differ == 1
