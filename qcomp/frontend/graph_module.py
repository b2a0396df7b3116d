# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reader of fx GraphModules: what prepare_pt2e, convert_pt2e and ``ExportedProgram.module()`` return.

Unlike an ExportedProgram they read parameters by ``get_attr`` and call observers as modules. q/dq nodes made by
convert_pt2e carry no types, so nothing here relies on them; the input shapes come from the placeholders' metadata or
from example inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.utils import _pytree as pytree

from qcomp.errors import QcompError
from qcomp.frontend.fx_graph import FxReader, location_of
from qcomp.frontend.fx_guards import environment, environment_guards, environment_ranges, example_sizes
from qcomp.frontend.fx_values import convert_meta, convert_tree, submodule, tensor_data
from qcomp.frontend.graph import OBSERVE, Argument, Constant, Graph, Input, Location, Meta, Node, Ref, TensorMeta
from qcomp.frontend.observers import ObserverTable, is_observer
from qcomp.frontend.pytree import Tree
from qcomp.frontend.symbols import Expr


def foreign_call(module: GraphModule) -> QcompError | None:
    """The error about a call that no export makes, of a layer or a method, as torch.fx.symbolic_trace leaves them."""
    for node in cast(Iterable[FxNode], module.graph.nodes):
        what = f"method {node.target}"
        if node.op == "call_module" and not _is_guard(module, node):
            called = submodule(module, str(node.target))
            what = "" if is_observer(called) else f"module {node.target} ({type(called).__name__})"
        if node.op in ("call_module", "call_method") and what and not _is_guard(module, node):
            return QcompError(
                f"a call of the {what} is not supported",
                code="unsupported-op",
                op=node.name,
                hint="export the model with torch.export.export first, or pass example_inputs to have it exported",
            )
    return None


def read_graph_module(module: GraphModule, example_inputs: Sequence[object] | None = None) -> Graph:
    """The module as a neutral graph.

    Raises QcompError for observers that saw no data or are dynamic, for calls of other modules or methods, and when an
    input has no known shape and no example is given.
    """
    if (problem := foreign_call(module)) is not None:
        raise problem
    reader = _ModuleReader(module, example_inputs)
    for node in cast(Iterable[FxNode], module.graph.nodes):
        reader.read(node)
    in_tree, out_tree, names = _structure(module)
    known = environment(module)
    return Graph(
        inputs=tuple(reader.inputs),
        outputs=reader.outputs,
        nodes=tuple(reader.nodes),
        values=reader.values,
        constants=reader.constants,
        observers=reader.table.observers,
        ranges=environment_ranges(known),
        guards=environment_guards(known),
        example=example_sizes(known),
        in_tree=in_tree,
        out_tree=out_tree,
        argument_names=names,
        in_memory=True,
        exact_types=False,
    )


class _ModuleReader(FxReader):
    def __init__(self, module: GraphModule, example_inputs: Sequence[object] | None):
        super().__init__(module)
        self.inputs: list[Input] = []
        self.outputs: tuple[Argument, ...] = ()
        self.constants: dict[str, Constant] = {}
        self.table = ObserverTable()
        self._stale = False
        self._examples = None if example_inputs is None else pytree.tree_leaves(tuple(example_inputs))

    def read(self, node: FxNode) -> None:
        if node.op == "placeholder":
            self.inputs.append(Input(node.name, self._input(node)))
        elif node.op == "get_attr":
            self._attribute(node)
        elif node.op == "call_function":
            self.call(node)
            if self._stale:
                for name in self.nodes[-1].results():
                    self.values.pop(name, None)
        elif node.op == "output":
            found = self.argument(node.args[0])
            self.outputs = found if isinstance(found, tuple) else (found,)
        elif node.op == "call_module" and not _is_guard(self.module, node):
            self._observer(node)

    def _input(self, node: FxNode) -> Argument:
        """An input; an example decides its type where the export does not, or says otherwise."""
        known = convert_meta(node.meta.get("val"))
        if self._examples is not None:
            if len(self.inputs) >= len(self._examples):
                raise QcompError(
                    f"the model takes more than the {len(self._examples)} inputs given", code="example-inputs"
                )
            example = convert_meta(self._examples[len(self.inputs)])
            if isinstance(example, TensorMeta) and not _agrees(known, example):
                self.values[node.name] = example
                self._stale |= known is not None
                return Ref(node.name)
        if "val" not in node.meta:
            raise QcompError(
                f"the shape of input {node.name} is not known", code="example-inputs", hint="pass example_inputs"
            )
        return self.placeholder(node)

    def _attribute(self, node: FxNode) -> None:
        name = str(node.target)
        value = submodule(self.module, name)
        if isinstance(value, torch.Tensor):
            kind = "parameter" if isinstance(value, torch.nn.Parameter) else "buffer"
            self.note(node.name, value)
            self.constants[node.name] = Constant(name, kind, tensor_data(value, name))
        elif not isinstance(value, GraphModule):
            raise QcompError(
                f"{name} is a {type(value).__name__}, not a tensor", code="unsupported-input", op=node.name
            )

    def _observer(self, node: FxNode) -> None:
        name = str(node.target)
        module = submodule(self.module, name)
        self.table.add(name, cast(torch.nn.Module, module))
        source = self.argument(node.args[0])
        location: Location = location_of(node)
        self.nodes.append(
            Node(node.name, OBSERVE, (("input", source), ("observer", name)), (Ref(node.name),), location)
        )


def _agrees(known: Meta | None, example: TensorMeta) -> bool:
    """Whether an example has the type the export gives the input; symbolic sizes fit any."""
    return (
        isinstance(known, TensorMeta)
        and (known.dtype, len(known.shape)) == (example.dtype, len(example.shape))
        and all(isinstance(a, Expr) or a == b for a, b in zip(known.shape, example.shape, strict=True))
    )


def _is_guard(module: GraphModule, node: FxNode) -> bool:
    """Whether `node` calls the input checks that torch.export puts into ``.module()``; they have no result."""
    if node.op != "call_module":
        return False
    return type(submodule(module, str(node.target))).__name__ == "GuardsFn" or (
        str(node.target) == "_guards_fn" and not node.users
    )


def _structure(module: GraphModule) -> tuple[Tree | None, Tree | None, tuple[str, ...]]:
    info: Any = getattr(module.graph._codegen, "pytree_info", None)  # pyright: ignore[reportPrivateUsage]
    if info is None:
        return None, None, ()
    names = tuple(str(name) for name in info.orig_args if name != "self")
    return convert_tree(info.in_spec), None if info.out_spec is None else convert_tree(info.out_spec), names
