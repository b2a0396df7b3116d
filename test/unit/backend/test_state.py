# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with state: a decoder block with caches runs 16 steps as eager does, at every level and through every door."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import three_way
import torch
from torch import nn

import qcomp
from qcomp.backend.emit_c import emit_program
from qcomp.backend.target import GENERIC

STEPS, WIDTH, HEADS = 16, 24, 3
LIKE = [np.zeros((1, 1, WIDTH), np.float32)] * 2


class Decoder(nn.Module):
    """Attention with KV caches, a position counter and running statistics; `put` writes by index_put."""

    k: torch.Tensor
    v: torch.Tensor
    position: torch.Tensor
    mean: torch.Tensor

    def __init__(self, put: bool = False) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.put = put
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        for name in ("k", "v"):
            self.register_buffer(name, torch.zeros(1, HEADS, STEPS, WIDTH // HEADS))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("mean", torch.full((WIDTH,), 0.25))
        self.register_buffer("mask", torch.triu(torch.full((STEPS, STEPS), -1e9), 1))

    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.qkv(x).view(1, 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if self.put:
            self.k[:, :, self.position] = k
            self.v[:, :, self.position] = v
        else:
            self.k.index_copy_(2, self.position, k)
            self.v.index_copy_(2, self.position, v)
        scores = q @ self.k.transpose(-1, -2) / 2.8 + nn.functional.embedding(self.position, self.get_buffer("mask"))
        y = self.out((scores.softmax(-1) @ self.v).transpose(1, 2).reshape(1, 1, WIDTH))
        self.position.add_(1)
        self.mean.mul_(0.9).add_(y[0, 0] * 0.1)
        return {"y": y, "deviation": y - self.mean}


def forms(put: bool) -> list[Any]:
    program = torch.export.export(Decoder(put), (torch.zeros(1, 1, WIDTH),))
    return [program, program.module(), program.run_decompositions()]


def follow(run: Callable[[torch.Tensor], Any]) -> None:
    """`run` gives the outputs of 16 steps; they must be eager's."""
    model, generator = Decoder(), torch.Generator().manual_seed(11)
    for step in range(STEPS):
        x = torch.randn(1, 1, WIDTH, generator=generator)
        with torch.no_grad():
            expected = model(x)
        found = run(x)
        pairs = zip(found.values() if isinstance(found, dict) else found, expected.values(), strict=True)
        for left, right in pairs:
            assert np.allclose(left, right, rtol=1e-4, atol=1e-5), step


@pytest.mark.parametrize("put", [False, True])
def test_the_interpreter_goes_on_from_a_state(put: bool) -> None:
    for form in forms(put):
        module = qcomp.from_torch(form)
        qcomp.run_passes(module, "O1,O2", verify=True)
        state = qcomp.State(module)
        follow(lambda x, m=module, s=state: qcomp.interpret(m, x.numpy(), state=s))
        assert list(state) == ["k", "v", "position", "mean"] and state["position"] == STEPS
        state.reset()
        follow(lambda x, m=module, s=state: qcomp.interpret(m, x.numpy(), state=s))


def test_without_a_state_every_call_starts_anew() -> None:
    module, x = qcomp.from_torch(forms(False)[0]), np.ones((1, 1, WIDTH), np.float32)
    first = qcomp.interpret(module, x)
    assert len(first) == 2 and all(np.array_equal(a, b) for a, b in zip(first, qcomp.interpret(module, x), strict=True))
    everything = qcomp.interpret(module, x, *qcomp.State(module).values())
    assert len(everything) == 6 and everything[4] == 1


def test_loops_and_c_follow() -> None:
    module = qcomp.from_torch(forms(False)[0])
    qcomp.run_passes(module, "O1,O2")
    for target in three_way.TARGETS:
        lowered = three_way.lower(module, target)
        state = qcomp.State(module)
        follow(lambda x, m=lowered, s=state: qcomp.interpret(m, x.numpy(), state=s))
        # The caches are written where they are: only the counter and the statistics are copied.
        assert str(lowered).count("call @copy_") == 2
        program = emit_program(lowered, target, "net")
        for command in ("gcc -O2", f"{three_way.CLANG} -O2")[: 2 if three_way.CLANG else 1]:
            with tempfile.TemporaryDirectory() as folder:
                library = three_way.build(program, command, Path(folder))
                block = three_way.state_block(program, library)
                follow(lambda x, a=(program, library), b=block: three_way.run_c(*a, [x.numpy()], LIKE, b))


def test_artifacts_keep_state_until_reset(tmp_path: Path) -> None:
    artifact = qcomp.compile(forms(True)[0])
    follow(artifact)
    artifact.reset()
    artifact.save(tmp_path / "saved")
    loaded = qcomp.load(tmp_path / "saved")
    for each in (artifact, loaded):
        follow(lambda x, a=each: a(x.numpy()))
    assert loaded.manifest.state_bytes == artifact.manifest.state_bytes > 0
    sources = [str(path) for path in (tmp_path / "saved").glob("*.c")]
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", *sources, "-o", str(tmp_path / "test"), "-lm"]
    subprocess.run(command, check=True)
    subprocess.run([str(tmp_path / "test")], check=True)
    assert max(layer.max_off or 0 for layer in qcomp.compare(forms(True)[0], artifact, torch.ones(1, 1, WIDTH))) == 0


def test_text_keeps_states(tmp_path: Path) -> None:
    module = qcomp.from_torch(forms(False)[2])
    qcomp.save(module, tmp_path / "m.mlir")
    again = qcomp.parse(tmp_path / "m.mlir")
    assert str(again) == str(module)
    state = qcomp.State(again)
    follow(lambda x: qcomp.interpret(again, x.numpy(), state=state))


def test_states_that_change_places() -> None:
    text = """
    func.func @main(%x: tensor<3xf32>,
                    %a: tensor<3xf32> {nn.name = "a", nn.state = #nn.data<dense<1.0> : tensor<3xf32>>},
                    %b: tensor<3xf32> {nn.name = "b", nn.state = #nn.data<dense<[2.0, 3.0, 4.0]> : tensor<3xf32>>})
        -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32> {nn.state = "a"}, tensor<3xf32> {nn.state = "b"}) {
      %y = nn.add %a, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      func.return %y, %a, %b, %a : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    }
    """
    from qcomp.dialects.text import parse_text

    module, x = parse_text(text, qcomp.context(), "test"), np.array([0.5, 0.25, 0.0], np.float32)
    three_way.check(module, x)
    state, artifact = qcomp.State(module), qcomp.compile(module, target=GENERIC.name)
    for want in ([1.5, 1.25, 1.0], [2.5, 3.25, 4.0], [1.5, 1.25, 1.0]):
        assert qcomp.interpret(module, x, state=state)[0].tolist() == want
        assert artifact(x)[0].tolist() == want


@pytest.mark.parametrize(
    "mark, message",
    [
        ('-> (tensor<3xf32>)', "1 arguments and 0 results are marked nn.state"),
        ('-> (tensor<2xf32> {nn.state = "a"})', "differ in type"),
        ("-> (tensor<3xf32> {nn.state = 1 : i64})", "a constant on arguments and a name on results"),
    ],
)  # fmt: skip
def test_marks_that_do_not_fit(mark: str, message: str) -> None:
    from qcomp.dialects.text import parse_text

    kind = mark.split("(")[1].split(">")[0] + ">"
    text = f"""func.func @main(%x: {kind}, %a: tensor<3xf32> {{nn.state = #nn.data<dense<1.0> : tensor<3xf32>>}})
    {mark} {{ func.return %x : {kind} }}"""
    module = parse_text(text, qcomp.context(), "test")
    with pytest.raises(qcomp.QcompError, match=message):
        qcomp.interpret(module, np.zeros(3, np.float32))


def test_written_inputs_are_written(tmp_path: Path) -> None:
    class Writes(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            y[:, 1:].add_(x)
            return x * y.sum()

    program = torch.export.export(Writes(), (torch.ones(2, 3), torch.ones(2, 4)))
    artifact = qcomp.compile(program)
    artifact.save(tmp_path / "saved")
    x, y = torch.randn(2, 3), torch.randn(2, 4)
    for run in (artifact, qcomp.load(tmp_path / "saved")):
        given, eager = y.clone(), y.clone()
        assert torch.allclose(run(x, given), Writes()(x, eager), rtol=1e-5) and torch.equal(given, eager)
        array = y.numpy().copy()
        run(x.numpy(), array)
        assert np.array_equal(array, eager.numpy())
        array.flags.writeable = False
        with pytest.raises(qcomp.QcompError, match="input y is written by the model but cannot be"):
            run(x.numpy(), array)
