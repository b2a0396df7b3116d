# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calling a compiled model: bits, kinds of inputs, structures, threads, errors."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from compiled import INPUT
from tensor_programs import floats, program, quantized

import qcomp
from qcomp import QcompError
from qcomp.backend.artifact import Artifact
from qcomp.backend.interface import Interface, Port
from qcomp.backend.manifest import Manifest
from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.quant import Encoding
from qcomp.frontend.pytree import Tree


def expected(artifact: Artifact, *inputs: Array) -> Array:
    assert artifact.module is not None
    return qcomp.interpret(artifact.module, *inputs)[0]


def test_bits_of_the_interpreter(artifact: Artifact, sample: Array) -> None:
    got = artifact(sample)
    assert isinstance(got, np.ndarray) and got.dtype == np.float32
    assert len(np.unique(got)) > 3
    assert (got == expected(artifact, sample)).all()


def test_torch_in_torch_out(artifact: Artifact, sample: Array) -> None:
    tensor = torch.from_numpy(sample.copy()).requires_grad_()
    got = artifact(tensor)
    assert isinstance(got, torch.Tensor) and not got.requires_grad
    assert (got.numpy() == artifact(sample)).all()


def test_any_memory_layout(artifact: Artifact, sample: Array) -> None:
    want = artifact(sample)
    turned = np.ascontiguousarray(sample.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    unaligned = np.zeros(sample.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(sample.shape)
    unaligned[...] = sample
    frozen = sample.copy()
    frozen.flags.writeable = False
    for array in (turned, unaligned, frozen, torch.from_numpy(sample.copy()).to(memory_format=torch.channels_last)):
        assert (np.asarray(artifact(array)) == want).all()


def test_outputs_are_fresh(artifact: Artifact, sample: Array) -> None:
    first = artifact(sample)
    kept = first.copy()
    artifact(np.negative(sample))
    assert (first == kept).all()


def test_threads_have_arenas_of_their_own(artifact: Artifact) -> None:
    inputs = [np.random.default_rng(seed).standard_normal(INPUT).astype(np.float32) for seed in range(4)]
    wanted = [artifact(x) for x in inputs]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(200):
            if not (artifact(inputs[index]) == wanted[index]).all():
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0]], "expected a numpy array or a torch tensor, got list"),
        (None, "got NoneType"),
        (np.zeros(INPUT), r"expected float32, got float64 \(hint: convert it to float32\)"),
        (np.zeros(INPUT, ">f4"), "expected float32, got >f4"),
        (np.zeros((3, *INPUT[1:]), np.float32), r"expected shape \[2, 3, 7, 5\], got \[3, 3, 7, 5\]"),
        (np.zeros((2, 105), np.float32), r"got \[2, 105\]"),
        (torch.zeros(INPUT, dtype=torch.bfloat16), r"torch\.bfloat16 .* has no numpy array"),
        (torch.zeros(INPUT, device="meta"), "lives on meta"),
        (torch.zeros(INPUT, dtype=torch.float64), "expected float32, got float64"),
        (torch.zeros(INPUT).to_sparse(), "has no numpy array"),
    ],
)
def test_inputs_that_do_not_fit(artifact: Artifact, value: object, message: str) -> None:
    with pytest.raises(QcompError, match=message) as found:
        artifact(value)
    assert found.value.code in ("input", "structure")
    assert "input" in found.value.message


@pytest.mark.parametrize("count", [0, 2])
def test_number_of_inputs(artifact: Artifact, sample: Array, count: int) -> None:
    with pytest.raises(QcompError, match=rf"expected 1 input in order \(input0\), got {count}"):
        artifact(*[sample] * count)


def test_inputs_have_no_keywords(artifact: Artifact, sample: Array) -> None:
    with pytest.raises(QcompError, match=r"expected 1 input in order \(input0\), got 0 and by name input0"):
        artifact(input0=sample)


class Nested(torch.nn.Module):
    """Nested inputs and outputs, a keyword, a number and None."""

    def forward(self, x: dict[str, torch.Tensor], pair: tuple[torch.Tensor, int], *, z: torch.Tensor) -> Any:
        return {"sum": x["a"] + pair[0], "rest": [x["b"] * z, (None, pair[0] - z)]}


def test_structures_are_those_of_the_model() -> None:
    a, b, c, z = (torch.randn(2, 3, generator=torch.Generator().manual_seed(seed)) for seed in range(4))
    args, kwargs = ({"a": a, "b": b}, (c, 7)), {"z": z}
    artifact = qcomp.compile(torch.export.export(Nested(), args, kwargs), opt_level=1)
    got = artifact(*args, **kwargs)
    want = Nested()(*args, **kwargs)
    assert got["rest"][1][0] is None and isinstance(got["rest"], list) and isinstance(got["rest"][1], tuple)
    for left, right in ((got["sum"], want["sum"]), (got["rest"][0], want["rest"][0])):
        assert (left == right).all()
    assert (got["rest"][1][1] == want["rest"][1][1]).all()
    arrays = artifact({"a": a.numpy(), "b": b.numpy()}, (c.numpy(), 7), z=z.numpy())
    assert isinstance(arrays["sum"], np.ndarray)
    with pytest.raises(QcompError, match="was exported as 7, got 8"):
        artifact({"a": a, "b": b}, (c, 8), z=z)
    with pytest.raises(QcompError, match=r"^input 0 should be a dict of 2"):
        artifact(a, (c, 7), z=z)
    with pytest.raises(QcompError, match=r"^input 1 should be a tuple of 2"):
        artifact({"a": a, "b": b}, (c,), z=z)
    for args, kwargs, got in (
        ((a,), {"z": z}, "1 and by name z"),
        ((a, (c, 7)), {}, "2"),
        ((a,), {"pair": (c, 7), "z": z}, "1 and by name pair, z"),
    ):
        with pytest.raises(QcompError, match=f"^expected 2 inputs in order and by name z, got {got}$"):
            artifact(*args, **kwargs)


def test_codes_in_and_out() -> None:
    """A module whose arguments are codes takes and gives stored integers, unsigned ones too."""
    source, result = Encoding.make(0.05, 131, signed=False), Encoding.make(0.11, -3)
    kinds = [quantized(source, 3, 5), quantized(result, 3, 5)]

    def build(add: Any, x: Any) -> Any:
        return add(nn.ReluOp.build(operands=[x], result_types=[kinds[1]]))

    artifact = qcomp.compile(program(build, kinds[0]), opt_level=1)
    codes = np.random.default_rng(3).integers(0, 256, (3, 5)).astype(np.uint8)
    codes.reshape(-1)[:2] = 0, 255
    got = artifact(codes)
    assert got.dtype == np.int8 and (got == expected(artifact, codes)).all()


def test_results_that_are_inputs_and_constants() -> None:
    table = np.random.default_rng(3).standard_normal((2, 4)).astype(np.float32)

    def build(add: Any, x: Any, y: Any) -> Any:
        total = add(nn.AddOp(x, y))
        return [y, total, x, add(nn.ConstantOp(table)), total]

    artifact = qcomp.compile(program(build, floats(2, 4), floats(2, 4)), opt_level=1)
    x, y = np.ones((2, 4), np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    for got, want in zip(artifact(x, y), (y, x + y, x, table, x + y), strict=True):
        assert (got == want).all()


def test_no_library_says_why() -> None:
    interface = Interface((Port("x", "float32", (1,)),), (Port("y", "float32", (1,)),), Tree(), Tree())
    manifest = Manifest("net", "riscv-someday", "float", 3, interface, 0, {})
    x = np.zeros(1, np.float32)
    with pytest.raises(QcompError, match="code for riscv-someday does not run on this machine"):
        Artifact(manifest, None, lambda *_: None).run([x])
    with pytest.raises(QcompError, match="was not built: there was no C compiler"):
        Artifact(replace(manifest, target="generic"), None, lambda *_: None).run([x])


def test_report_is_a_copy(artifact: Artifact) -> None:
    artifact.report()["ops"].clear()
    assert artifact.report()["ops"]
