# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fx graphs as neutral nodes: what ExportedPrograms and GraphModules have in common.

``getitem`` nodes disappear into the outputs of the op they read, as in a .pt2 file.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, cast

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from qcomp.errors import QcompError
from qcomp.frontend.fx_values import (
    convert_argument,
    convert_meta,
    named_arguments,
    resolve_packet,
    submodule,
    target_name,
)
from qcomp.frontend.graph import Argument, Graph, Input, Location, Meta, Node, Output, Ref, Subgraph
from qcomp.frontend.locations import make_location, module_path


class FxReader:
    """Collects the nodes of one fx graph in order, and the types of their values."""

    def __init__(self, module: GraphModule):
        self.module = module
        self.nodes: list[Node] = []
        self.values: dict[str, Meta] = {}
        self._rename: dict[str, str] = {}

    def placeholder(self, node: FxNode) -> Argument:
        """The value of an input: a reference, or the literal it was exported with."""
        meta = node.meta
        if self.note(node.name, meta.get("val")) or "val" not in meta:
            return Ref(node.name)
        return convert_argument(meta["val"], {})

    def note(self, name: str, value: object) -> bool:
        """Remember the type of a value; False when it is no tensor or symbol."""
        meta = None if isinstance(value, bool | int | float) else convert_meta(value)
        if meta is not None:
            self.values[name] = meta
        return meta is not None

    def argument(self, value: object) -> Argument:
        """An argument of a node of this graph."""
        if isinstance(value, FxNode) and value.op == "get_attr":
            attribute = submodule(self.module, str(value.target))
            if isinstance(attribute, GraphModule):
                return Subgraph(str(value.target), read_subgraph(attribute))
        if isinstance(value, list | tuple):
            return tuple(self.argument(part) for part in cast(list[object], value))
        return convert_argument(value, self._rename)

    def call(self, node: FxNode) -> None:
        """Add a call of an op; a ``getitem`` only gives its value a name."""
        target = resolve_packet(node.target)
        if target is operator.getitem and self._is_aggregate(node.args[0]):
            return
        outputs = self._outputs(node, target)
        arguments = named_arguments(target, node.args, cast(dict[str, object], node.kwargs))
        self.nodes.append(
            Node(
                node.name,
                target_name(target),
                tuple((name, self.argument(value)) for name, value in arguments),
                outputs,
                location_of(node),
            )
        )

    def _is_aggregate(self, source: object) -> bool:
        """Whether `source` is an op with several results, or one of its list results."""
        if not isinstance(source, FxNode) or source.op != "call_function":
            return False
        return source.target is not operator.getitem or self._is_aggregate(source.args[0])

    def _outputs(self, node: FxNode, target: object) -> tuple[Output, ...]:
        value = cast(object, node.meta.get("val"))
        kinds = _result_kinds(target)
        if kinds is None:
            if isinstance(value, list | tuple):
                return tuple(self._part(node, index, part) for index, part in enumerate(cast(list[object], value)))
            return (self._single(node.name, value),)
        if kinds == ["list"]:
            return (self._list(node, value),)
        if len(kinds) == 1:
            return (self._single(node.name, value) if value is not None or "val" not in node.meta else None,)
        parts = list(cast(list[object], value)) if isinstance(value, list | tuple) else [...] * len(kinds)
        return tuple(
            None if part is None else self._part(node, index, None if part is ... else part)
            for index, part in enumerate(parts)
        )

    def _part(self, node: FxNode, index: int, value: object) -> Output:
        user = self._item(node, index)
        if isinstance(value, list):
            if user is not None:
                return self._list(user, cast(object, value))
            names = [f"{node.name}_unused_{index}_{inner}" for inner in range(len(cast(list[object], value)))]
            return tuple(self._single(name, part) for name, part in zip(names, cast(list[object], value), strict=True))
        return self._single(user.name if user else f"{node.name}_unused_{index}", value)

    def _list(self, node: FxNode, value: object) -> tuple[Ref | None, ...]:
        """The elements of a tensor list; without metadata as many as are read."""
        read = [cast(int, user.args[1]) for user in node.users if user.target is operator.getitem]
        parts = (
            list(cast(list[object], value)) if isinstance(value, list | tuple) else [None] * (max(read, default=-1) + 1)
        )
        found = [(self._item(node, index), part) for index, part in enumerate(parts)]
        return tuple(
            self._single(user.name if user else f"{node.name}_unused_{index}", part)
            for index, (user, part) in enumerate(found)
        )

    def _item(self, node: FxNode, index: int) -> FxNode | None:
        """The first ``getitem`` of result `index`; later ones become other names of the same value."""
        users = [user for user in node.users if user.target is operator.getitem and user.args[1] == index]
        for other in users[1:]:
            self._rename[other.name] = users[0].name
        return users[0] if users else None

    def _single(self, name: str, value: object) -> Ref:
        meta = convert_meta(value)
        if meta is not None:
            self.values[name] = meta
        return Ref(name)


def _result_kinds(target: object) -> list[str] | None:
    """``tensor`` or ``list`` per result of an op; None when it has no schema."""
    if not isinstance(target, torch._ops.OpOverload):  # pyright: ignore[reportPrivateUsage]
        return None
    kinds: list[str] = []
    for result in target._schema.returns:  # pyright: ignore[reportPrivateUsage]
        kinds.append("list" if isinstance(cast(Any, result).real_type, torch.ListType) else "tensor")
    return kinds


def location_of(node: FxNode) -> Location:
    """The location in the metadata of an fx node."""
    stack = cast(dict[str, tuple[str, object]], node.meta.get("nn_module_stack") or {})
    paths = [path for key, (path, _) in stack.items() if not key.startswith("_empty_nn_module_stack")]
    trace = cast("str | None", node.meta.get("stack_trace"))
    return make_location(module_path(paths[-1]) if paths else None, trace)


def read_subgraph(module: GraphModule) -> Graph:
    """A branch or body of a control flow op."""
    reader = FxReader(module)
    inputs, outputs = list[Input](), tuple[Argument, ...]()
    for node in cast(Iterable[FxNode], module.graph.nodes):
        if node.op == "placeholder":
            inputs.append(Input(node.name, reader.placeholder(node)))
        elif node.op == "output":
            found = reader.argument(node.args[0])
            outputs = found if isinstance(found, tuple) else (found,)
        elif node.op == "call_function":
            reader.call(node)
        elif node.op != "get_attr" or not isinstance(submodule(module, str(node.target)), GraphModule):
            raise QcompError(f"a subgraph with a {node.op} of {node.target} is not supported", code="unsupported-op")
    return Graph(tuple(inputs), outputs, tuple(reader.nodes), reader.values)
