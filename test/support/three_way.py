# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program at three levels: the nn interpreter, the loop interpreter, and C by several compilers and flags."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from qcomp.backend.emit_c import CProgram, emit_program
from qcomp.backend.emit_c.program import numpy_c_type
from qcomp.backend.target import AVX512VNNI, GENERIC, Target, runs_here
from qcomp.dialects.context import context
from qcomp.interpreter import interpret
from qcomp.transforms.lower_to_loop import LowerToLoopPass
from qcomp.transforms.plan_memory import PlanMemoryPass

TARGETS: list[Target] = [target for target in (GENERIC, AVX512VNNI) if runs_here(target)]
CLANG = next((name for name in ("clang-19", "clang") if shutil.which(name)), None)
QUICK = (f"{os.environ.get('CC', 'gcc')} -std=c99 -O1",)
COMPILERS = ("gcc -O0", "gcc -O3", "gcc -O3 -march=native") + (
    (f"{CLANG} -O0", f"{CLANG} -O3", f"{CLANG} -O3 -march=native") if CLANG else ()
)


def lower(module: ModuleOp, target: Target) -> ModuleOp:
    """A copy of `module` at loop level."""
    lowered = module.clone()
    # The checks that follow are stricter than those that run_passes makes in tests, and cheaper.
    LowerToLoopPass(target=target.name).apply(context(), lowered)
    PlanMemoryPass().apply(context(), lowered)
    return lowered


def c_text(program: CProgram) -> str:
    """All of a program in one file."""
    constants = "\n".join(
        f"const {numpy_c_type(array)} {name}[] = {{{','.join(_literal(v) for v in array.reshape(-1)) or '0'}}};"
        for name, array in program.constants.items()
    )
    return f"{program.source}\n{constants}\n"


def _literal(value: np.generic) -> str:
    if isinstance(value, np.floating):
        if np.isfinite(value):
            return float(value).hex() + "f" * (value.itemsize < 8)
        return "(0.0f / 0.0f)" if np.isnan(value) else f"({'-' if value < 0 else ''}1.0f / 0.0f)"
    return "(-2147483647 - 1)" if int(value) == -(2**31) else str(int(value))


def build(program: CProgram, command: str, folder: Path) -> ctypes.CDLL:
    """The program as a loaded library."""
    (folder / f"{program.name}.h").write_text(program.header)
    source = folder / "one.c"
    source.write_text(c_text(program))
    name = tempfile.mktemp(suffix=".so", dir=folder)
    subprocess.run(
        [*command.split(), "-w", "-fPIC", "-shared", "-o", name, str(source)], check=True, capture_output=True
    )
    return ctypes.CDLL(name)


def state_block(program: CProgram, library: ctypes.CDLL) -> np.ndarray:
    """A new state, as the program fills it in."""
    memory = np.full(program.state_bytes + 64, 0xCD, np.uint8)
    state = memory[-memory.ctypes.data % 64 :][: program.state_bytes]
    getattr(library, f"{program.name}_init")(ctypes.c_void_p(state.ctypes.data))
    return state


def run_c(
    program: CProgram, library: ctypes.CDLL, inputs: Sequence[np.ndarray], like: Sequence[np.ndarray],
    state: np.ndarray | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """One inference with a garbage-filled arena; outputs shaped like `like`. It starts from `state` or a new one."""
    held = [np.ascontiguousarray(value) for value in inputs]
    outputs = [np.full(value.shape, 77, value.dtype) for value in like]
    arena = np.full(program.arena_bytes + 64, 0xCD, np.uint8)
    base = -(-arena.ctypes.data // 64) * 64
    function = getattr(library, f"{program.name}_run")
    function.restype = None
    state = state_block(program, library) if program.state_bytes and state is None else state
    extra = [] if state is None else [ctypes.c_void_p(state.ctypes.data)]
    function(*(ctypes.c_void_p(value.ctypes.data) for value in (*held, *outputs)), *extra, ctypes.c_void_p(base))
    return outputs


def check(
    module: ModuleOp,
    *inputs: np.ndarray,
    compilers: Sequence[str] = QUICK,
    targets: Sequence[Target] | None = None,
    relative: float | None = None,
    loops: bool = True,
) -> tuple[np.ndarray, ...]:
    """Hold all levels to the nn interpreter: in bits, or with `relative` within that share of the largest value."""
    expected = interpret(module, *inputs)
    for target in TARGETS if targets is None else targets:
        lowered = lower(module, target)
        lowered.verify()
        if loops:
            _same(expected, interpret(lowered, *inputs), f"{target.name} loops", relative)
        program = emit_program(lowered, target, "net")
        with tempfile.TemporaryDirectory() as folder:
            for command in compilers:
                library = build(program, command, Path(folder))
                _same(expected, run_c(program, library, inputs, expected), f"{target.name} {command}", relative)
    return expected


def _same(expected: Sequence[np.ndarray], found: Sequence[np.ndarray], what: str, relative: float | None) -> None:
    assert len(expected) == len(found)
    for place, (want, have) in enumerate(zip(expected, found, strict=True)):
        assert want.shape == have.shape and want.dtype == have.dtype, (what, place, want.dtype, have.dtype)
        if relative is None:
            bits = f"u{want.dtype.itemsize}" if want.dtype.kind == "f" else want.dtype
            differ = np.ascontiguousarray(want).view(bits) != np.ascontiguousarray(have).view(bits)
            both_nan = np.isnan(want) & np.isnan(have) if want.dtype.kind == "f" else np.zeros(want.shape, bool)
            wrong = np.argwhere(differ.reshape(want.shape) & ~both_nan)
            first = tuple(wrong[0]) if len(wrong) else ()
            assert not len(wrong), (
                f"{what}, result {place}: {len(wrong)} differ, first {first}: {want[first]} {have[first]}"
            )
        else:
            limit = relative * max(float(np.abs(want).max(initial=0.0)), 1e-30)
            assert float(np.abs(want - have).max(initial=0.0)) <= limit, (what, place)
