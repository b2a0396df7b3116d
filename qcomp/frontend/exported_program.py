# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reader of torch.export.ExportedProgram objects, strict or not, before or after run_decompositions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from qcomp.errors import QcompError
from qcomp.frontend.fx_graph import FxReader
from qcomp.frontend.fx_guards import environment, example_sizes, placed, range_end
from qcomp.frontend.fx_values import VMAP_TARGETS, convert_tree, target_name, tensor_data
from qcomp.frontend.graph import Argument, Constant, Graph, Input, Mutation, Ref, SymbolRange
from qcomp.frontend.guard_text import input_sources, read_guards
from qcomp.frontend.pytree import Tree

_CONSTANTS = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}
_MUTATIONS = {
    OutputKind.BUFFER_MUTATION: "buffer",
    OutputKind.PARAMETER_MUTATION: "parameter",
    OutputKind.USER_INPUT_MUTATION: "input",
}


def read_exported_program(program: ExportedProgram) -> Graph:
    """The program as a neutral graph. Raises QcompError for inputs, outputs or tensors of unsupported kinds."""
    program = _written_out(program)
    reader = FxReader(program.graph_module)
    inputs, constants = list[Input](), dict[str, Constant]()
    results: tuple[Argument, ...] = ()
    specs = iter(program.graph_signature.input_specs)
    for node in cast(Iterable[FxNode], program.graph.nodes):
        if node.op == "placeholder":
            _input(program, reader, node, next(specs), inputs, constants)
        elif node.op == "call_function":
            reader.call(node)
        elif node.op == "output":
            results = cast("tuple[Argument, ...]", reader.argument(node.args[0]))
        elif node.op != "get_attr":
            raise QcompError(f"an exported program with a {node.op} node is not supported", code="unsupported-op")
    outputs, mutations = _outputs(program, results)
    in_tree, out_tree, names = _structure(program)
    texts = cast("list[str]", getattr(program, "_guards_code", None) or [])
    known = environment(program.graph_module)
    read = read_guards([(text, "") for text in texts], input_sources(inputs, reader.values, in_tree, names))
    return Graph(
        inputs=tuple(inputs),
        outputs=outputs,
        nodes=tuple(reader.nodes),
        values=reader.values,
        constants=constants,
        mutations=mutations,
        ranges=_ranges(program),
        guards=placed(read, known),
        example=example_sizes(known),
        in_tree=in_tree,
        out_tree=out_tree,
        argument_names=names,
        in_memory=True,
    )


def _written_out(program: ExportedProgram) -> ExportedProgram:
    """The program in plain tensors and ops; a new one where tensor subclasses or torch.vmap are to be taken apart.

    Subclasses, such as torchao's quantized weights, become the tensors that they hold and ops on those; the calls that
    torch.vmap leaves in a graph become ops on tensors with one more dimension.
    """
    held = (*program.state_dict.values(), *program.constants.values())
    tensors = (value.data for value in held if isinstance(value, torch.Tensor))
    plain = all(type(tensor) is torch.Tensor for tensor in tensors)
    return program if plain and not _uses_vmap(program) else cast(Any, program).run_decompositions({})


def _uses_vmap(program: ExportedProgram) -> bool:
    graphs = (module for module in program.graph_module.modules() if isinstance(module, GraphModule))
    nodes = (node for module in graphs for node in cast(Iterable[FxNode], module.graph.nodes))
    return any(target_name(node.target).startswith(VMAP_TARGETS) for node in nodes if node.op == "call_function")


def _input(
    program: ExportedProgram,
    reader: FxReader,
    node: FxNode,
    spec: Any,
    inputs: list[Input],
    constants: dict[str, Constant],
) -> None:
    kind: InputKind = spec.kind
    if kind == InputKind.USER_INPUT:
        if isinstance(spec.arg, ConstantArgument):
            inputs.append(Input(spec.arg.name or f"arg{len(inputs)}", reader.argument(spec.arg.value)))
        else:
            inputs.append(Input(node.name, reader.placeholder(node)))
        return
    if kind not in _CONSTANTS:
        raise QcompError(
            f"the program takes a {kind.name.lower().replace('_', ' ')}, which is not supported",
            code="unsupported-input",
            hint="only tensors, numbers and nested structures of them can be inputs",
        )
    name = str(spec.target)
    persistent = kind != InputKind.BUFFER or bool(spec.persistent)
    table: dict[str, Any] = (
        program.constants if kind == InputKind.CONSTANT_TENSOR or not persistent else program.state_dict
    )
    if not isinstance(table.get(name), torch.Tensor):
        raise QcompError(f"the program lacks the data of {name}", code="missing-record")
    reader.placeholder(node)
    constants[node.name] = Constant(name, _CONSTANTS[kind], tensor_data(table[name], name), persistent)


def _outputs(
    program: ExportedProgram, results: tuple[Argument, ...]
) -> tuple[tuple[Argument, ...], tuple[Mutation, ...]]:
    outputs, mutations = list[Argument](), list[Mutation]()
    for spec, value in zip(program.graph_signature.output_specs, results, strict=True):
        if spec.kind == OutputKind.USER_OUTPUT:
            outputs.append(value)
        elif spec.kind in _MUTATIONS and isinstance(value, Ref):
            mutations.append(Mutation(_MUTATIONS[spec.kind], str(spec.target), value))
        else:
            raise QcompError(
                f"the program returns a {spec.kind.name.lower().replace('_', ' ')}, which is not supported",
                code="unsupported-output",
                hint="export the model for inference, without a loss",
            )
    return tuple(outputs), tuple(mutations)


def _structure(program: ExportedProgram) -> tuple[Tree | None, Tree | None, tuple[str, ...]]:
    root = next((entry for entry in program.module_call_graph if entry.fqn == ""), None)
    if root is None or root.signature is None:
        return None, None, ()
    signature = root.signature
    names = tuple(signature.forward_arg_names or ())
    return convert_tree(signature.in_spec), convert_tree(signature.out_spec), names


def _ranges(program: ExportedProgram) -> dict[str, SymbolRange]:
    ranges = dict[str, SymbolRange]()
    for symbol, bounds in cast(Any, program).range_constraints.items():
        ranges[str(symbol)] = SymbolRange(range_end(bounds.lower), range_end(bounds.upper))
    return ranges
