# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from torch.export and PT2E quantization as modules. torch is imported only for objects that are torch's.

Three readers (`pt2`, `exported_program`, `graph_module`) make the neutral `graph`; `inline` removes wrappers from it,
and `functional` side effects; `importer` turns it into IR by the op table in `ops`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from qcomp.errors import QcompError, warn
from qcomp.frontend.specialize import bind_symbols, fixed_symbols

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from qcomp.frontend.graph import Graph
    from qcomp.refusals import Refusal

__all__ = ["at_sizes", "check", "from_torch", "import_torch", "read_graph", "supported_part"]


def from_torch(program: object, example_inputs: Sequence[object] | None = None) -> ModuleOp:
    """The program as a module of nn and quant ops with one public function ``main``.

    program: the path of a .pt2 file (read without torch), a torch.export.ExportedProgram, a GraphModule from
    prepare_pt2e, convert_pt2e or ``ExportedProgram.module()``, or an nn.Module, which is exported first.
    example_inputs: the positional inputs; needed for an nn.Module, and for programs whose input sizes are not fixed.

    Warns about a program in training mode.

    Raises QcompError: all ops that are not supported in one error; a file that is damaged, of another version or
    hostile; an observer that saw no data. What torch.export raises for an nn.Module is raised as it is.
    """
    from qcomp.dialects.notes import notes_of

    module = import_torch(program, example_inputs)
    for note in notes_of(module):
        warn(note)
    return module


def import_torch(program: object, example_inputs: Sequence[object] | None = None) -> ModuleOp:
    """Return what `from_torch` does; its warnings are with the module only."""
    from qcomp.frontend.importer import import_graph

    graph = read_graph(program, example_inputs)
    module = import_graph(graph, bind_symbols(graph, example_inputs))
    _note(module, program, graph)
    return module


def _note(module: ModuleOp, program: object, graph: Graph) -> None:
    """Let `module` carry the warnings about `program`."""
    from qcomp.dialects.notes import add_notes
    from qcomp.frontend.training import training_notes

    add_notes(module, training_notes(program, graph))


def at_sizes(program: object, example_inputs: Sequence[object] | None, dims: Mapping[str, int]) -> ModuleOp:
    """`from_torch` with sizes for symbols, by name or place. So ops are imported that take no symbolic sizes."""
    from qcomp.frontend.importer import import_graph

    graph = read_graph(program, example_inputs)
    module = import_graph(graph, {**bind_symbols(graph, example_inputs), **fixed_symbols(graph, dims)})
    _note(module, program, graph)
    return module


def supported_part(
    program: object, example_inputs: Sequence[object] | None = None, dims: Mapping[str, int] | None = None
) -> tuple[ModuleOp, list[Refusal]]:
    """The module of what can be imported (all of it when nothing is refused), and what cannot; sizes by `dims`.

    Raises QcompError for what `from_torch` refuses as a whole, such as a damaged file.
    """
    from qcomp.frontend.importer import import_supported

    graph = read_graph(program, example_inputs)
    module, refusals = import_supported(
        graph, {**bind_symbols(graph, example_inputs), **fixed_symbols(graph, dims or {})}
    )
    _note(module, program, graph)
    return module, refusals


def check(program: object, example_inputs: Sequence[object] | None = None) -> list[Refusal]:
    """Everything in the program that `from_torch` would refuse, with source locations; empty when it succeeds."""
    from qcomp.frontend.importer import list_refusals

    graph = read_graph(program, example_inputs)
    return list_refusals(graph, bind_symbols(graph, example_inputs))


def read_graph(program: object, example_inputs: Sequence[object] | None = None) -> Graph:
    """The program as a neutral graph, before any op is looked at. Raises QcompError as `from_torch`."""
    from qcomp.frontend.inline import inline_wrappers

    if example_inputs is not None and not isinstance(cast(object, example_inputs), Sequence):
        problem = f"example_inputs is a {type(example_inputs).__name__}, expected a tuple of the inputs"
        raise QcompError(problem, code="example-inputs", hint="example_inputs=(x,)")
    if isinstance(program, str | PathLike):
        from qcomp.frontend.file_kinds import refuse_other_formats
        from qcomp.frontend.pt2 import read_pt2

        path = Path(cast("str | PathLike[str]", program))
        refuse_other_formats(path)
        return inline_wrappers(read_pt2(path))
    return inline_wrappers(_read_object(program, example_inputs))


def _read_object(program: Any, example_inputs: Sequence[object] | None) -> Graph:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import GraphModule

    from qcomp.frontend.exported_program import read_exported_program
    from qcomp.frontend.file_kinds import FROM_TORCH
    from qcomp.frontend.graph_module import foreign_call, read_graph_module

    if isinstance(program, ExportedProgram):
        return read_exported_program(program)
    if isinstance(program, GraphModule) and (example_inputs is None or foreign_call(program) is None):
        return read_graph_module(program, example_inputs)
    if isinstance(program, torch.nn.Module):
        if example_inputs is None:
            raise QcompError(
                f"{type(program).__name__} is not an exported program",
                code="example-inputs",
                hint="pass example_inputs to have it exported, or use torch.export.export",
            )
        return read_exported_program(torch.export.export(program, tuple(cast("Sequence[Any]", example_inputs))))
    if "onnx" in type(program).__module__.lower():
        raise QcompError(f"cannot import the ONNX model {type(program).__name__}", code="file", hint=FROM_TORCH)
    raise QcompError(
        f"cannot import a {type(program).__name__}",
        code="unsupported-program",
        hint="pass a path to a .pt2 file, an ExportedProgram, a GraphModule or an nn.Module",
    )
