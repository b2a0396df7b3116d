# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled model: call it, ask it what became of every op, save it as C sources and load it back.

A saved artifact is a folder of NAME.c, NAME.h, weights (NAME_weights.c, or NAME_weights.S and NAME_weights.bin),
NAME_selftest.c, the shared library made of them, and manifest.json. Nothing in it depends on where or when it was made.
"""

from __future__ import annotations

import copy
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from qcomp.backend.build import WeightForm, build_program
from qcomp.backend.folder import TemporaryFolder, replace_folder
from qcomp.backend.interface import Interface
from qcomp.backend.library import MOST_PLANS, Library, closed_error
from qcomp.backend.manifest import FILE_NAME, Manifest, digest
from qcomp.backend.report import Report, aligned, as_report, headline, html_table, summary_rows
from qcomp.backend.target import TARGETS, find_target, runs_here
from qcomp.dialects.dim import substitute
from qcomp.dialects.dim_json import from_plain
from qcomp.errors import QcompError
from qcomp.suggestions import did_you_mean
from qcomp.writing import writing

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from qcomp.dialects.constant import Array

WriteSources = Callable[["Artifact", Path, WeightForm], None]
"""Writes the sources of an artifact into a folder, its weights in a form."""


class Artifact:
    """A compiled model. `load` and `qcomp.compile` make them.

    manifest: what it is. module, reference: the integer module and the quantized one it was made of, both at tensor
    level; None after loading and unpickling. Its library is unloaded when it goes, by `close` or at the end of `with`.
    Copies and pickled ones have a state of their own, which begins as that of the original is.
    """

    def __init__(
        self, manifest: Manifest, library: Library | None, write_sources: WriteSources | None,
        module: ModuleOp | None = None, reference: ModuleOp | None = None,
    ):  # fmt: skip
        self.manifest = manifest
        self.module = module
        self.reference = reference
        self.library = library
        self._bound: dict[tuple[tuple[int, ...], ...], Mapping[str, int]] = {}
        self._write_sources = write_sources  # None when it was closed.

    @property
    def interface(self) -> Interface:
        """Its inputs and outputs."""
        return self.manifest.interface

    def __call__(self, *inputs: object, **keywords: object) -> Any:
        """Run on numpy arrays or torch tensors, given as to the Python model; outputs come as that model returns them.

        They are torch tensors when an input is one. An input that the model writes is written. A model with state goes
        on from where the last call left it (`reset`). Thread-safe. Raises QcompError for inputs that do not fit and
        when the target does not run here.
        """
        given = values = self.interface.flatten(inputs, keywords)
        torch_arrays = torch_arrays_for(values)
        if torch_arrays is not None:
            ports = self.interface.inputs
            values = [
                torch_arrays.to_array(value, port.name, port.element) for value, port in zip(values, ports, strict=True)
            ]
        outputs = self.run([port.accept(value) for port, value in zip(self.interface.inputs, values, strict=True)])
        results: list[Any] = list(outputs)
        if torch_arrays is not None:
            elements = [port.element for port in self.interface.outputs]
            results = [torch_arrays.from_array(*each) for each in zip(outputs, elements, strict=True)]
        tree = self.interface.out_tree
        count = tree.count()
        for position, result in zip(self.interface.written, results[count:], strict=True):
            write_input(given[position], result, self.interface.inputs[position].name)
        return results[0] if tree.leaf else tree.unflatten(results[:count])

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._write_sources is None

    def close(self) -> None:
        """Unload the library and remove temporary files; after the last call where other threads are in one.

        What it is can still be asked: `report`, `interface`. Calling and saving raise QcompError (code "closed").
        """
        self._write_sources = None
        if self.library is not None:
            self.library.close()

    def __enter__(self) -> Artifact:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Artifact:
        library = self.library if self.library is None or self.closed else self.library.copy()
        return Artifact(self.manifest, library, self._write_sources, self.module, self.reference)

    def __deepcopy__(self, memo: object) -> Artifact:
        found = copy.copy(self)
        found.module = None if self.module is None else self.module.clone()
        found.reference = None if self.reference is None else self.reference.clone()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        from qcomp.backend.pickling import pack

        return pack(self)

    def reset(self) -> None:
        """Let the state of the model, if it has one, be what it was before the first call."""
        if self.closed:
            raise closed_error(self.manifest.name)
        if self.library is not None:
            self.library.reset()

    def run(self, inputs: list[Array]) -> list[Array]:
        """Run on arrays as `Port.accept` gives them, elements one after the other; return the outputs in order.

        Raises QcompError where the sizes of symbols do not go together, or are outside their ranges.
        """
        if self.library is None:
            if self.closed:
                raise closed_error(self.manifest.name)
            target = TARGETS.get(self.manifest.target)
            if target is not None and runs_here(target):
                raise QcompError("the artifact was not built: there was no C compiler", code="no-library")
            raise QcompError(f"code for {self.manifest.target} does not run on this machine", code="no-library")
        return self.library(inputs, self._sizes(inputs))

    def _sizes(self, inputs: list[Array]) -> Mapping[str, int]:
        """The sizes of symbols for `inputs`; those of earlier shapes are remembered."""
        if not self.interface.symbols:
            return {}
        key = tuple([array.shape for array in inputs])
        found = self._bound.get(key)
        if found is None:
            found = self.interface.bind(inputs)
            if len(self._bound) < MOST_PLANS:
                self._bound[key] = found
        return found

    def report(self, dims: Mapping[str, int] | None = None) -> Report:
        """Return what became of the model; numbers that depend on sizes are for `dims`, by default for symbols of 1.

        ops: an `OpRow` for each op; macs: its multiply-adds, macs_integer: those done in integers, macs_integer_share:
        of the multiply-adds of quantized convolutions, linears, matmuls and recurrent layers, the share done in
        integers (for symbols of 1); quantization: "static", "dynamic", "weights" or "none"; arena_bytes;
        arena_bound_bytes: the most bytes alive at a time; weight_bytes; c_bytes: of NAME.c and NAME.h; target;
        warnings.
        Raises QcompError for names that are no symbols.
        """
        names = [symbol.name for symbol in self.interface.symbols]
        for name in set(dims or ()).difference(names):
            hint = did_you_mean(name, names, f"there are {', '.join(names)}" if names else "all its sizes are fixed")
            raise QcompError(f"the program has no symbolic size {name}", code="option", hint=hint)
        report: dict[str, Any] = copy.deepcopy(dict(self.manifest.report))
        sizes = {**self.interface.usual_sizes(1), **(dims or {})}
        for name in ("arena_bytes", "arena_bound_bytes"):
            report[name] = substitute(from_plain(report[name]), sizes)
        for row in report["ops"]:
            row["macs"] = substitute(from_plain(row["macs"]), sizes)
        return as_report(report)

    def __repr__(self) -> str:
        state = "closed " if self.closed else ""
        return f"<qcomp.Artifact {state}{self.manifest.name} {headline(self.report())}>"

    def __str__(self) -> str:
        return self.summary(self.report())

    def summary(self, report: Report, more: Sequence[tuple[str, list[str]]] = ()) -> str:
        """Return one screen about what was made.

        report: by `Artifact.report`, for sizes of one's own. more: rows to add, labels and lines.
        """
        return "\n".join([f"{self.manifest.name} {headline(report)}", *aligned([*self._rows(report), *more])])

    def _repr_html_(self) -> str:
        report = self.report()
        return html_table(self._rows(report), f"{self.manifest.name} {headline(report)}")

    def _rows(self, report: Report) -> list[tuple[str, list[str]]]:
        """Return the report's summary with the library and the files, where they are known."""
        rows = summary_rows(report)
        if self.library is not None:
            sizes = next(lines for label, lines in rows if label == "sizes")
            sizes[0] += f", library {self.library.size:,} bytes"
        if self.manifest.files:
            rows.insert(len(rows) - bool(report["warnings"]), ("files", [", ".join([*self.manifest.files, FILE_NAME])]))
        return rows

    def save(self, folder: str | os.PathLike[str], weights: WeightForm = "auto") -> None:
        """Write the artifact to `folder`, replacing an artifact that is there; anything else there is refused.

        weights: "text" is C that any compiler reads, three to four times as large as the weights; "binary" a file that
        gcc's or clang's assembler includes; "auto" text for small models (256 KiB). A loaded artifact keeps its form.
        """
        if weights not in get_args(WeightForm):
            hint = ", ".join(get_args(WeightForm))
            raise QcompError(f"weights {weights!r} does not exist", code="option", hint=hint)
        with replace_folder(Path(folder), FILE_NAME, _files_of) as partial:
            self.write_files(partial, weights)

    def write_files(self, partial: Path, weights: WeightForm = "auto") -> None:
        """Write all its files into the empty folder `partial`."""
        write_sources = self._write_sources
        if write_sources is None:
            raise closed_error(self.manifest.name)
        write_sources(self, partial, weights)
        library = machine = None
        if self.library is not None:
            library, machine = f"{self.manifest.name}.so", this_machine()
            self.library.write_to(partial / library)
        manifest = self.manifest.describing(partial, library, machine)
        (partial / FILE_NAME).write_text(manifest.text(), encoding="utf-8")


def inspect(folder: str | os.PathLike[str]) -> Artifact:
    """Return the artifact saved in `folder` without its library: none of its code runs, it cannot be called."""
    place = Path(folder)
    return Artifact(Manifest.read(place), None, _copier(place.resolve(), None))


def load(folder: str | os.PathLike[str]) -> Artifact:
    """The artifact saved in `folder`, which runs native code from it: load only what you trust. Never imports torch.

    The saved library is used when it fits this machine, else one is built from the sources; where the target does not
    run at all, the artifact can be inspected but not called. Raises QcompError for a folder that is no artifact, is
    damaged, or was saved by a newer qcomp.
    """
    return load_from(Path(folder))


def load_from(place: Path, kept: TemporaryFolder | None = None) -> Artifact:
    """`load` of the folder `place`, which may be temporary: then the artifact keeps it."""
    manifest = Manifest.read(place)
    write = _copier(place.resolve(), kept)
    if manifest.target not in TARGETS or not runs_here(find_target(manifest.target)):
        return Artifact(manifest, None, write)
    if manifest.library is not None and manifest.machine == this_machine():
        path = place / manifest.library
        if path.is_file() and digest(path) == manifest.files[manifest.library]:
            return Artifact(manifest, Library(path, manifest, kept), write)
    built = TemporaryFolder()
    with built.removed_on_error():
        with writing(built.path):
            copy_sources(manifest.files, place, built.path)
        path = build_program(built.path, manifest.name, manifest.sources, manifest.opt_level)
        library = Library(path, manifest, built)
    built.hold([path.name])
    return Artifact(manifest, library, write)


def write_input(target: Any, value: Any, name: str) -> None:
    """Write into an input what the model leaves in it. Raises QcompError when it cannot be written."""
    try:
        target[...] = value
    except (ValueError, TypeError, RuntimeError) as problem:
        text = f"input {name} is written by the model but cannot be: {problem}"
        raise QcompError(text, code="input", hint="give a copy that may be written") from None


def this_machine() -> str:
    """Which libraries this machine loads."""
    return f"{sys.platform} {platform.machine()} {sys.byteorder}"


def copy_sources(files: Mapping[str, str], source: Path, target: Path) -> None:
    """Copy all files but the library. Raises QcompError when one is not what its digest says."""
    for name, expected in files.items():
        if name.endswith(".so"):
            continue
        path = source / name
        if not path.is_file() or digest(path) != expected:
            raise QcompError(f"{path} is missing or was changed", code="artifact", hint="save the artifact again")
        shutil.copyfile(path, target / name)


def _files_of(folder: Path) -> list[str]:
    """The files of the artifact in `folder`; none when its manifest cannot be read."""
    try:
        return list(Manifest.read(folder).files)
    except QcompError:
        return []


def sources_in(folder: TemporaryFolder) -> WriteSources:
    """Write the sources that are in `folder`, which is kept."""
    return _copier(folder.path, folder)


def _copier(place: Path, kept: TemporaryFolder | None) -> WriteSources:
    def write(artifact: Artifact, target: Path, weights: WeightForm) -> None:
        form = "text" if f"{artifact.manifest.name}_weights.c" in artifact.manifest.sources else "binary"
        if weights not in ("auto", form) and len(artifact.manifest.sources) > 1:
            text = f"the weights of a loaded artifact stay {form}"
            raise QcompError(text, code="option", hint=f'compile the model again and save it with weights="{weights}"')
        if kept is None:
            copy_sources(artifact.manifest.files, place, target)
            return
        for name in artifact.manifest.files:
            if not name.endswith(".so"):
                kept.copy(name, target / name)

    return write


def torch_arrays_for(values: object) -> Any:
    """The module `torch_arrays` when one of `values` is a tensor; None otherwise, and then torch is not imported."""
    if sys.modules.get("torch") is None:
        return None
    from qcomp.backend import torch_arrays

    return torch_arrays if any(map(torch_arrays.is_tensor, cast("list[object]", values))) else None
