# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fuzzers find what they are for, and find nothing in qcomp."""

from __future__ import annotations

import ctypes
import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.fuzzing import isolation  # noqa: E402
from tools.fuzzing.edits import BYTE_EDITS, Mutant, make_mutant, reduce_edits  # noqa: E402
from tools.fuzzing.isolation import Outcome, run_all  # noqa: E402
from tools.fuzzing.judges import judge_mlir  # noqa: E402
from tools.fuzzing.mlir_edits import reduce_text  # noqa: E402

GOOD = Outcome("ok", "fine")


def spin() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(1000)


FAULTS: dict[str, tuple[Callable[[], object], str]] = {
    "exception": (lambda: {}["x"], "traceback"),
    "exit": (lambda: sys.exit(0), "traceback"),
    "end": (lambda: os._exit(3), "exit"),
    "spin": (spin, "hang"),
    "silence": (sleep, "hang"),
    "memory": (lambda: bytearray(2 << 30), "memory"),
    "file": (lambda: Path("left").write_text("x"), "unwanted"),
    "folder": (lambda: os.mkdir("left"), "unwanted"),
    "process": (lambda: subprocess.run(["true"]), "unwanted"),
    "code": (lambda: eval("1 + 1"), "unwanted"),
    "pickle": (lambda: pickle.loads(pickle.dumps(Path("x"))), "unwanted"),
    "signal": (lambda: ctypes.string_at(0), "crash"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each between two good inputs, which it does not touch."""
    monkeypatch.setattr(isolation, "SECONDS", 0.3)
    monkeypatch.setattr(isolation, "_SILENCE", 1.0 if name == "silence" else 60.0)
    act, kind = FAULTS[name]

    def judge(data: bytes) -> Outcome:
        if data == b"bad":
            act()
        return GOOD

    outcomes = list(run_all(judge, [b"good", b"bad", b"good"]))
    assert [outcome.kind for outcome in outcomes] == ["ok", kind, "ok"], outcomes[1]
    assert outcomes[1].fault and not outcomes[0].fault


def test_mutants_can_be_made_again_and_reduced() -> None:
    rng = random.Random(3)
    mutant = max((make_mutant("x", b"abcdefgh" * 20, BYTE_EDITS, rng) for _ in range(30)), key=lambda m: len(m.edits))
    assert mutant.build() == Mutant("x", mutant.seed, mutant.edits).build() != mutant.seed
    fewer = reduce_edits(mutant, lambda data: len(data) != len(mutant.seed))
    assert len(fewer.edits) <= len(mutant.edits) and len(fewer.build()) != len(mutant.seed)
    text = b"one two\nthree bad four\nfive\n"
    assert reduce_text(text, lambda data: b"bad" in data) == b"bad"


def test_texts_are_judged() -> None:
    assert judge_mlir(b"func.func @main() {\n").kind == "refused"
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}\n"
    kinds = {judge_mlir(text.encode() + b"\n" * count).kind for count in range(6)}
    assert kinds <= {"ok", "refused"} and "ok" in kinds


@pytest.mark.parametrize(("kind", "count"), [("mlir", 150), ("pt2", 60), ("safetensors", 300), ("npz", 300)])
def test_small_runs_find_nothing(kind: str, count: int, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "fuzz"), kind, "--count", str(count), "--seed", "5"]
    done = subprocess.run([*command, "--syntax", "2", "--keep", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kind}: {count} mutants of" in done.stdout and not list(tmp_path.iterdir())


def test_numbers_that_no_program_may_have_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks that refuse them the judge must."""
    text = "func.func @main(%x: tensor<KIND>) -> tensor<KIND> {\n  func.return %x : tensor<KIND>\n}\n"
    kinds = ("4294967296x4294967296xf32", "2x!quant.uniform<i8:f32, 1.0e39:3>", "2x!quant.uniform<i8:f32, 1.0e-320:3>")
    for kind in kinds:
        assert judge_mlir(text.replace("KIND", kind).encode()).kind == "refused"
    monkeypatch.setattr("qcomp.dialects.parser.check_sizes", lambda _: None)
    monkeypatch.setattr("qcomp.dialects.quant.encoding.Encoding._check_scales", lambda _: None)
    for kind in kinds:
        with pytest.raises(AssertionError, match="accepted"):
            judge_mlir(text.replace("KIND", kind).encode())
