# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The portable sources of a compiled program, with a self-test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qcomp.backend.artifact import Artifact
from qcomp.backend.build import WeightForm, assembler_takes_binaries
from qcomp.backend.emit_c import CProgram
from qcomp.backend.footprint import has_selftest, usual_footprint
from qcomp.backend.selftest import made_up_input, selftest_source
from qcomp.backend.weights import write_weights
from qcomp.dialects.constant import Array
from qcomp.interpreter import interpret


def write_sources(program: CProgram, artifact: Artifact, folder: Path, weights: WeightForm = "auto") -> None:
    """Write NAME.c, NAME.h, the files of the weights and NAME_selftest.c (when small) to `folder`."""
    name, interface = program.name, artifact.interface
    (folder / f"{name}.c").write_text(program.source)
    (folder / f"{name}.h").write_text(program.header)
    binaries = assembler_takes_binaries()
    write_weights(folder, name, program.constants, "text" if weights == "auto" and not binaries else weights)
    if not has_selftest(usual_footprint(interface, program.arena_bytes, program.state_bytes)):
        return
    sizes = interface.usual_sizes(2)
    interface = interface.at(sizes)
    inputs = [made_up_input(index, port) for index, port in enumerate(interface.inputs)]
    expected, exact = _expected(artifact, inputs)
    numbers = tuple(sizes.values())
    with open(folder / f"{name}_selftest.c", "wb") as file:
        stateful = program.state_bytes > 0
        pieces = selftest_source(name, interface.inputs, interface.outputs, expected, exact, stateful, numbers)
        file.writelines(pieces)


def _expected(artifact: Artifact, inputs: list[Array]) -> tuple[Sequence[Array], bool]:
    """The outputs, and whether the sources give the same bits: the interpreter sums floats in another order."""
    if artifact.library is not None:
        library = artifact.library
        if artifact.manifest.state_bytes:  # One of its own leaves the state of the artifact alone.
            library = library.copy()
            library.reset()
        return library(inputs, artifact.interface.bind(inputs)), True
    assert artifact.module is not None
    in_float = any(row["macs"] and row["compute"].startswith("f") for row in artifact.manifest.report["ops"])
    return interpret(artifact.module, *inputs), not in_float
