# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a program to an artifact: import, passes, loops, C, library."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Region, SSAValue

from qcomp import progress
from qcomp.backend.artifact import Artifact
from qcomp.backend.build import WeightForm, assembler_takes_binaries, build_program, find_compiler, no_compiler
from qcomp.backend.emit_c import CProgram, emit_program
from qcomp.backend.folder import TemporaryFolder
from qcomp.backend.footprint import memory_notes, selftest_notes, usual_footprint
from qcomp.backend.library import Library
from qcomp.backend.macs import integer_share
from qcomp.backend.manifest import Manifest
from qcomp.backend.marks import mark_values
from qcomp.backend.reasons import Reasons
from qcomp.backend.report import OpRow, Quantization
from qcomp.backend.report_rows import ops_report
from qcomp.backend.signature import interface_of, keep_conditions
from qcomp.backend.sources import write_sources
from qcomp.backend.target import AVX512VNNI, Target, find_target, runs_here
from qcomp.backend.weights import write_weights
from qcomp.dialects.dim import substitute, symbols_of
from qcomp.dialects.dim_json import to_plain
from qcomp.dialects.dims import attribute_size
from qcomp.dialects.nn import ConstantOp, DynamicLinearOp
from qcomp.dialects.notes import notes_of
from qcomp.dialects.quant import ObserveOp, QuantizeDynamicOp, encoding_of
from qcomp.dialects.specialize import specialize
from qcomp.dialects.spool import has_spooled, spooled_to
from qcomp.dialects.verification import check_sizes
from qcomp.errors import QcompError, warn
from qcomp.refusals import RefusalError
from qcomp.transforms.coded_weights import is_coded
from qcomp.transforms.duplicate_dequantize import PRIVATE_DEQUANTIZE
from qcomp.transforms.pipeline import run_passes
from qcomp.transforms.plan_memory import BOUND
from qcomp.transforms.rewriting import RefusalRecord, refusal_log
from qcomp.transforms.specialize_dims import resolve
from qcomp.writing import writing

FOLD_ALL = "fold-constants{dequantize=true keep-weights=true max-growth=1073741824},dce"
"""Constants of ops that stay float become float constants, but for weights that kernels dequantize as they read."""


@dataclass(frozen=True)
class Pipelines:
    """The passes of one compilation: up to the reference, from there to ops on codes, and to loops."""

    reference: str
    integer: str
    loops: str


def compile(
    program: object,
    target: str = "native",
    opt_level: int = 3,
    numerics: str = "float",
    threads: int = 1,
    io: str = "float",
    dims: Mapping[str, int] | None = None,
    example_inputs: Sequence[object] | None = None,
    *,
    name: str | None = None,
    verify: bool = False,
) -> Artifact:
    """Compile a program to C and, when the target runs on this machine, to a library that can be called.

    program: what `qcomp.from_torch` takes, the path of a .mlir file, or a module at tensor level. target: a name of
    `qcomp targets`; "native" is the best that runs here. opt_level: 0 keeps quantized models in float between quantize
    and dequantize, 1 works in integers, 2 and 3 fuse more; it is also the C compiler's. name: prefix of all files and
    symbols, made a C identifier; by default the file's name or "net". dims: sizes of symbols, by name or by place
    ("x.0" is dimension 0 of input x); the other symbols are chosen at each call. verify: hold every pass to its letter.

    Raises QcompError: everything `from_torch` and the passes raise; ops that are not lowered; unknown options.
    """
    _check_options(opt_level, numerics, threads, io)
    emitted = emit(program, target, opt_level, example_inputs, name, verify, dims)
    known = notes_of(program) if isinstance(program, ModuleOp) else []  # who made the module was warned
    for note in [*emitted.manifest.report["warnings"], *_memory_notes(emitted)]:
        if note not in known:
            warn(note)
    return _build(emitted)


@dataclass(frozen=True)
class Emitted:
    """A program as C, before it is built. module, reference: see `Artifact`; folder: keeps large constants."""

    program: CProgram
    manifest: Manifest
    target: Target
    module: ModuleOp
    reference: ModuleOp
    folder: TemporaryFolder


def emit(
    program: object, target: str = "native", opt_level: int = 3, example_inputs: Sequence[object] | None = None,
    name: str | None = None, verify: bool = False, dims: Mapping[str, int] | None = None,
) -> Emitted:  # fmt: skip
    """The first half of `compile`: everything that needs no C compiler."""
    choose_target(target)
    try:
        module, title = _imported(program, example_inputs, dims or {})
    except RefusalError:
        from qcomp.backend.check import check_program

        raise check_program(program, target, example_inputs, opt_level, dims).error() from None
    return emit_module(module, target, opt_level, name or title, verify)


def _imported(
    program: object, example_inputs: Sequence[object] | None, dims: Mapping[str, int]
) -> tuple[ModuleOp, str]:
    """The program as a module at `dims`; where import refuses symbolic sizes, they are fixed before it."""
    try:
        module, title = import_program(program, example_inputs)
    except RefusalError:
        if not dims or isinstance(program, ModuleOp):
            raise
    else:
        if dims:
            specialize(module, resolve(module, dims))
        return module, title
    from qcomp.frontend import at_sizes

    title = Path(cast("str | os.PathLike[str]", program)).stem if isinstance(program, str | os.PathLike) else "net"
    return at_sizes(cast(object, program), example_inputs, dims), title


def emit_module(module: ModuleOp, target: str, opt_level: int, name: str, verify: bool = False) -> Emitted:
    """`emit` of a module, which is changed. Raises QcompError, a RefusalError when several ops are refused."""
    check_sizes(module)
    chosen, notes = choose_target(target)
    notes = [*notes_of(module), *notes]
    mark_values(module)
    interface = interface_of(module)
    keep_conditions(module, interface)
    steps = pipelines(module, chosen, opt_level)
    run_passes(module, steps.reference, verify)
    reference = module.clone()
    with refusal_log() as refusals:
        run_passes(module, steps.integer, verify)
    loops, folder = module.clone(), TemporaryFolder()
    with folder.removed_on_error(), spooled_to(lambda: folder.path):
        run_passes(loops, steps.loops, verify)
    progress.step("writing C")
    emitted = emit_program(loops, chosen, name, interface.to_json())
    notes += selftest_notes(usual_footprint(interface, emitted.arena_bytes, emitted.state_bytes))
    report = _report(reference, module, loops, refusals, emitted, chosen, notes, opt_level > 0)
    manifest = Manifest(
        emitted.name, chosen.name, "float", opt_level, interface, emitted.arena_bytes, report,
        state_bytes=emitted.state_bytes,
    )  # fmt: skip
    return Emitted(emitted, manifest, chosen, module, reference, folder)


def pipelines(module: ModuleOp, target: Target, opt_level: int) -> Pipelines:
    """The passes for `module`: freshly imported, or saved after some passes."""
    quantized = is_quantized(module)
    reference = ["O1"] * (opt_level > 0) + ["quantize"] * quantized
    if PRIVATE_DEQUANTIZE in module.attributes:
        reference = []
    integer = ["O2"] if opt_level > 1 else ["lower-batch-norm,lower-variable-weights,fold-constants"]
    if quantized and opt_level > 0:
        integer.append("integer")
        if target.unsigned_activations:
            integer.append("unsigned-activations,remove-identities,fold-constants,dce")
    integer += ["widen-halves", FOLD_ALL]
    return Pipelines(",".join(reference), ",".join(integer), f"lower-to-loop{{target={target.name}}},plan-memory")


def is_quantized(module: ModuleOp) -> bool:
    """Whether `module` holds observers or quantized values."""
    return any(
        isinstance(op, ObserveOp) or any(encoding_of(value.type) is not None for value in op.results)
        for op in module.walk()
    )


def _check_options(opt_level: int, numerics: str, threads: int, io: str) -> None:
    if opt_level not in (0, 1, 2, 3):
        raise QcompError(f"opt_level {opt_level!r} does not exist", code="option", hint="0, 1, 2 or 3")
    if numerics != "float":
        raise QcompError(f"numerics {numerics!r} is not supported", code="option", hint='"float" is')
    if threads != 1:
        raise QcompError(f"threads = {threads} is not supported", code="option", hint="1 is")
    if io != "float":
        raise QcompError(f"io {io!r} is not supported", code="option", hint='"float" is: types as in the program')


def choose_target(name: str) -> tuple[Target, list[str]]:
    """The target of that name, and warnings about the choice."""
    target = find_target(name)
    if name == "native" and target is not AVX512VNNI:
        return target, [f"this CPU lacks AVX512-VNNI: compiled for {target.name}, which is several times slower"]
    return target, []


def import_program(program: object, example_inputs: Sequence[object] | None) -> tuple[ModuleOp, str]:
    """The program as a module that may be changed, and what to call it."""
    if isinstance(program, ModuleOp):
        return program.clone(), "net"
    progress.step("reading the program")
    from qcomp.dialects.text import parse
    from qcomp.frontend import import_torch

    if not isinstance(program, str | os.PathLike):
        return import_torch(program, example_inputs), "net"
    path = Path(cast("str | os.PathLike[str]", program))
    return parse(path) if path.suffix == ".mlir" else import_torch(path, example_inputs), path.stem


def _report(
    reference: ModuleOp, module: ModuleOp, loops: ModuleOp, refusals: Sequence[RefusalRecord], emitted: CProgram,
    target: Target, notes: Sequence[str], integer: bool,
) -> dict[str, Any]:  # fmt: skip
    kind = _quantization(reference, module)
    main = next(op for op in loops.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    bound = main.attributes.get(BOUND)
    return {
        "ops": report_rows(reference, module, refusals, integer),
        "macs_integer_share": integer_share(reference, module, _at_one),
        "quantization": kind,
        "arena_bytes": to_plain(emitted.arena_bytes),
        "arena_bound_bytes": to_plain(attribute_size(bound)) if bound is not None else 0,
        "weight_bytes": sum(array.nbytes for array in emitted.constants.values()),
        "c_bytes": len(emitted.source.encode()) + len(emitted.header.encode()),
        "target": target.name,
        "warnings": list(notes),
    }


def report_rows(
    reference: ModuleOp, module: ModuleOp, refusals: Sequence[RefusalRecord], integer: bool
) -> list[OpRow]:
    """Return the rows of a report, with reasons where the program is quantized. integer: as for `Reasons`."""
    kind = _quantization(reference, module)
    return ops_report(module, None if kind == "none" else Reasons(refusals, integer))


def _quantization(reference: ModuleOp, module: ModuleOp) -> Quantization:
    """Return what of the program is quantized: constants are its weights, everything else its activations."""
    ops = [op for op in reference.walk() if not isinstance(op, ConstantOp)]
    values = [value for op in ops for value in (*op.results, *(arg for each in op.regions for arg in _arguments(each)))]
    if any(encoding_of(value.type) is not None for value in values):
        return "static"
    if any(isinstance(op, QuantizeDynamicOp | DynamicLinearOp) for op in ops):
        return "dynamic"
    return "weights" if any(is_coded(op) for op in (*ops, *module.walk())) else "none"


def _arguments(region: Region) -> Iterator[SSAValue]:
    for block in region.blocks:
        yield from block.args


def _memory_notes(emitted: Emitted) -> list[str]:
    """Warnings that depend on this machine, and so are in no manifest."""
    manifest = emitted.manifest
    found = usual_footprint(manifest.interface, manifest.arena_bytes, manifest.state_bytes)
    return memory_notes(found) if runs_here(emitted.target) else []


def _at_one(size: int) -> int:
    return substitute(size, dict.fromkeys(symbols_of([size]), 1))


def _build(emitted: Emitted) -> Artifact:
    def write(artifact: Artifact, folder: Path, weights: WeightForm) -> None:
        write_sources(emitted.program, artifact, folder, weights)

    library = None
    if runs_here(emitted.target) and find_compiler() is None:
        warn(f"{no_compiler()}: the artifact can be saved but not called")
    elif runs_here(emitted.target):
        progress.step("compiling C")
        with emitted.folder.removed_on_error():
            path = _compile_c(emitted.program, emitted.folder.path, emitted.manifest.opt_level)
        library = Library(path, emitted.manifest, emitted.folder)
        if not has_spooled(emitted.folder.path):
            emitted.folder.hold([path.name])
    return Artifact(emitted.manifest, library, write, emitted.module, emitted.reference)


def _compile_c(emitted: CProgram, folder: Path, opt_level: int) -> Path:
    name = emitted.name
    form: WeightForm = "binary" if assembler_takes_binaries() else "text"
    with writing(folder):
        (folder / f"{name}.c").write_text(emitted.source)
        (folder / f"{name}.h").write_text(emitted.header)
        sources = [f"{name}.c", *write_weights(folder, name, emitted.constants, form)]
    library = build_program(folder, name, sources, opt_level)
    (folder / f"{name}_weights.bin").unlink(missing_ok=True)
    return library
