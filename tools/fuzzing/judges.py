# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a .pt2 file and an IR text must do: be refused in one clear error, or go all the way."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute

from qcomp.backend.compile import Emitted, emit_module
from qcomp.backend.footprint import usual_footprint
from qcomp.backend.selftest import made_up_input, selftest_source
from qcomp.cli.arrays import NpzSamples, read_inputs
from qcomp.dialects import sidecar
from qcomp.dialects.constant import ConstantStore
from qcomp.dialects.context import context
from qcomp.dialects.quant import encoding_of
from qcomp.dialects.text import parse_text, print_text
from qcomp.errors import QcompError
from qcomp.frontend import from_torch
from qcomp.interpreter import interpret
from qcomp.transforms.pipeline import available_passes, run_passes
from tools.fuzzing.isolation import Outcome
from tools.fuzzing.seeds import NPZ_PORTS, NPZ_SAMPLES, PASS_MARK, sidecar_text

T = TypeVar("T")

LONGEST_MESSAGE = 20_000
SELFTEST_BYTES = 1 << 16
"""Programs whose call takes no more are interpreted, too."""
PIPELINES = (
    "O1", "O2", "quantize", "O1,quantize,O2,integer", "cse,dce,remove-identities", "fold-constants,fold-affine",
    "insert-qdq,duplicate-dequantize,fuse-qdq", "lower-batch-norm,lower-to-loop,plan-memory", "compose-reshapes",
    "lower-to-loop{target=x86-64-avx512vnni},plan-memory", "unfuse-qdq,propagate-qdq", "plan-memory",
)  # fmt: skip
C_MARK, C_PART = "c:", "\f"
"""Before the C texts of an accepted input, and between header and source."""


def judge_pt2(data: bytes) -> Outcome:
    """Import; what goes through import must compile or be refused, too."""
    return _from_memory(data, lambda path: _judged(lambda: from_torch(path), random.Random(len(data))))


def judge_mlir(data: bytes) -> Outcome:
    """Parse, verify, print and read again to the same text; then a short pipeline, or everything to C."""
    rng = random.Random(len(data))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Outcome("refused", "no text")
    line = text.partition("\n")[0]
    own = line.removeprefix(PASS_MARK) if line.startswith(PASS_MARK) else ""
    passes = own if own in available_passes() and rng.random() < 0.5 else rng.choice((None, *PIPELINES))
    return _judged(lambda: _read_back(text), rng, passes)


def judge_sidecar(data: bytes) -> Outcome:
    """Read beside the text of `seeds.SIDECAR_TEXT`: refused, or the constants that the text names."""

    def read() -> ModuleOp:
        ctx = context()
        ctx.constants = ConstantStore("mutant.safetensors", _from_memory(data, lambda path: sidecar.read(Path(path))))
        return parse_text(sidecar_text(), ctx)

    return _judged(read, random.Random(len(data)), "dce")


def judge_npz(data: bytes) -> Outcome:
    """Read as inputs and as samples: refused, or of the types and sizes that the program takes."""

    def read(path: str) -> Outcome:
        try:
            for port, array in zip(NPZ_PORTS, read_inputs(path, NPZ_PORTS), strict=True):
                port.accept(array)
            samples = NpzSamples(path, NPZ_SAMPLES)
            for sample in samples:
                for port, array in zip(NPZ_SAMPLES, sample, strict=True):
                    port.accept(array)
        except QcompError as error:
            return _clear(str(error))
        return Outcome("ok", "read")

    return _from_memory(data, read)


def _from_memory(data: bytes, read: Callable[[str], T]) -> T:
    """`read` on the path of a file of `data` that is in memory only."""
    descriptor = os.memfd_create("mutant")
    try:
        os.write(descriptor, data)
        return read(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _read_back(text: str) -> ModuleOp:
    module = parse_text(text, context())
    for generic in (False, True):
        printed = print_text(module, locations=False, generic=generic)
        again = print_text(parse_text(printed, context(), "<printed>"), locations=False, generic=generic)
        if again != printed:
            raise AssertionError(f"does not read back:\n{printed[:3000]}\n--- printed again:\n{again[:3000]}")
    return module


def _judged(read: object, rng: random.Random, passes: str | None = None) -> Outcome:
    try:
        module = read() if callable(read) else read
        assert isinstance(module, ModuleOp)
        _check_numbers(module)
        if passes is not None:
            run_passes(module, passes)
            return Outcome("ok", passes)
        emitted = emit_module(module, rng.choice(("generic", "x86-64-avx512vnni")), rng.randrange(4), "net")
        _run_selftest(emitted)
        return Outcome("ok", C_MARK + emitted.program.header + C_PART + emitted.program.source)
    except QcompError as error:
        return _clear(str(error))


def _check_numbers(module: ModuleOp) -> None:
    """What was accepted must have sizes and scales that the rest can compute with."""
    for op in module.walk():
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*op.results, *arguments):
            held: Attribute = value.type
            if not isinstance(held, TensorType):
                continue
            kind = cast(TensorType[Attribute], held)
            assert math.prod(max(size, 1) for size in kind.get_shape()) <= 1 << 36, f"{kind} is accepted"
            encoding = encoding_of(kind)
            if encoding is not None:
                with np.errstate(over="ignore"):
                    narrow = encoding.scales.astype(np.float32)
                assert (np.isfinite(narrow) & (narrow > 0)).all(), f"scales of {kind} are accepted"


def _run_selftest(emitted: Emitted) -> None:
    """Make the self-test of a small program, for which it is interpreted."""
    manifest = emitted.manifest
    found = usual_footprint(manifest.interface, manifest.arena_bytes, manifest.state_bytes)
    if found is None or found.total > SELFTEST_BYTES or manifest.state_bytes:
        return
    interface = manifest.interface.at(manifest.interface.usual_sizes(2))
    inputs = [made_up_input(index, port) for index, port in enumerate(interface.inputs)]
    expected = interpret(emitted.module, *inputs)
    for _ in selftest_source(emitted.program.name, interface.inputs, interface.outputs, expected, exact=False):
        pass


def _clear(text: str) -> Outcome:
    """A message must be readable: not endless, no control characters."""
    if len(text) > LONGEST_MESSAGE:
        return Outcome("unclear", f"a message of {len(text)} characters\n{text[:300]}")
    if any(not char.isprintable() and char != "\n" for char in text):
        return Outcome("unclear", f"control characters in a message\n{text[:2000]!r}")
    return Outcome("refused", text)
