# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In-place ops as values: pre-dispatch exports are not functional.

``y = add_(x, z)`` becomes ``y = add(x, z)``, and every later use of `x`, or of another name of the same whole tensor,
reads the new value. Two kinds of writes cannot be renamed away, and are reported when an output depends on the written
memory: those to storage of which another view is read later, and those that outlive the call (to buffers, parameters
and inputs; an unread ``num_batches_tracked`` is dropped).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from qcomp.frontend.graph import Argument, Graph, Node, Ref, references

_SELF_VIEWS = (
    "view reshape view_as reshape_as _unsafe_view permute transpose t numpy_T mT mH adjoint movedim moveaxis swapaxes "
    "swapdims slice select narrow expand expand_as broadcast_to squeeze unsqueeze flatten unflatten ravel split "
    "split_with_sizes unsafe_split unsafe_split_with_sizes unsafe_chunk tensor_split hsplit vsplit dsplit chunk unbind "
    "diagonal unfold as_strided view_as_real view_as_complex real imag atleast_1d atleast_2d atleast_3d sum_to_size "
    "contiguous to type_as conj resolve_conj resolve_neg positive"
)
_INPUT_VIEWS = "dropout feature_dropout alpha_dropout feature_alpha_dropout"
# op -> the argument whose storage the result may share
VIEWS: dict[str, str] = {
    **{f"aten.{name}": "self" for name in _SELF_VIEWS.split()},
    **{f"aten.{name}": "input" for name in _INPUT_VIEWS.split()},
    "aten.einsum": "tensors",
    "aten.broadcast_tensors": "tensors",
    "aten.meshgrid": "tensors",
}
# op -> the argument that the result simply is
IDENTITIES: dict[str, str] = {"aten.detach": "self", "aten.alias": "self", "aten.lift_fresh": "self"}


@dataclass(frozen=True)
class PureNode:
    """A node without side effects. `inplace`: the result takes shape and type of the first argument, as written."""

    node: Node
    inplace: bool = False


@dataclass
class _Whole:
    """A tensor under all its names: `current` is the name of its newest value, `last_use` when any of them is read."""

    storage: _Storage
    current: str | None = None
    shown_as: str = ""
    last_use: int = -1
    names: list[str] = field(default_factory=list[str])


@dataclass
class _Storage:
    """Memory that several tensors share; `origins` name the inputs and constants that live in it."""

    origins: list[str] = field(default_factory=list[str])
    wholes: list[_Whole] = field(default_factory=list[_Whole])


@dataclass
class Functional:
    """A program without side effects: the nodes that outputs depend on, and the outputs under their new names.

    `problems` are (reason, hint, node) for writes that cannot be renamed away.
    """

    nodes: list[PureNode]
    outputs: tuple[Argument, ...]
    problems: list[tuple[str, str, Node]]


def functionalize(graph: Graph) -> Functional:
    """The live part of `graph` with in-place ops renamed away."""
    work = _Renamer(graph)
    for index, node in enumerate(graph.nodes):
        work.visit(index, node)
    outputs = tuple(work.rename(value) for value in graph.outputs)
    nodes, read = _live(work.nodes, outputs)
    problems = [
        (f"writes in place to memory that {name} also shows", _IN_PLACE, node)
        for name, names, node in work.clashes
        if not read.isdisjoint(names)
    ]
    problems += [
        (_outlives(work.described[storage.origins[0]]), _STATE, node)
        for storage, node in work.writes
        if not read.isdisjoint(storage.origins)
    ]
    by_path = {constant.name: name for name, constant in graph.constants.items()}
    for mutation in graph.mutations:
        if by_path.get(mutation.target, mutation.target) in read:
            node = _definition(graph, mutation.value.name)
            problems.append((_outlives(f"{mutation.kind} {mutation.target}"), _STATE, node))
    return Functional(nodes, outputs, problems)


_IN_PLACE = "write it without the in-place op"
_STATE = "state is not supported: return the new value instead, or write to a copy"


def _outlives(what: str) -> str:
    return f"writes to {what}, which the program also reads"


def _definition(graph: Graph, name: str) -> Node:
    found = next((node for node in graph.nodes if name in node.results()), None)
    return found or Node(name, "output", (), ())


def _live(nodes: list[PureNode], outputs: Iterable[Argument]) -> tuple[list[PureNode], set[str]]:
    """The nodes that `outputs` depend on, in order, and all names that these and the outputs read."""
    needed = {name for value in outputs for name in references(value)}
    kept: list[PureNode] = []
    for pure in reversed(nodes):
        if needed.intersection(pure.node.results()):
            kept.append(pure)
            needed.update(pure.node.uses())
    return kept[::-1], needed


def _operation(target: str) -> str:
    """``aten.add_`` of ``aten.add_.Tensor``."""
    return ".".join(target.split(".")[:2])


def writes_in_place(target: str) -> bool:
    """Whether the op writes its first argument: ``relu_``, but neither ``__and__`` nor ``_softmax``."""
    name = _operation(target).rpartition(".")[2]
    return target.startswith("aten.") and name.endswith("_") and not name.endswith("__")


class _Renamer:
    """Walks the nodes once, keeping for every name the tensor it belongs to."""

    def __init__(self, graph: Graph):
        self.nodes: list[PureNode] = []
        self.writes: list[tuple[_Storage, Node]] = []
        self.clashes: list[tuple[str, set[str], Node]] = []
        self.described: dict[str, str] = {}
        self._wholes: dict[str, _Whole] = {}
        self._last_use = _last_uses(graph)
        for entry in graph.inputs:
            if isinstance(entry.value, Ref):
                self._origin(entry.value.name, f"input {entry.name}", _Storage())
        memories: dict[object, _Storage] = {}
        known: dict[object, _Whole] = {}
        for name, constant in graph.constants.items():
            identity = constant.data.identity
            memory = memories.setdefault(identity[0], _Storage())
            self._origin(name, f"{constant.kind} {constant.name}", memory, known.get(identity))
            known[identity] = self._wholes[name]

    def _origin(self, name: str, description: str, storage: _Storage, whole: _Whole | None = None) -> None:
        self.described[name] = description
        storage.origins.append(name)
        self._place(name, storage, whole)

    def _place(self, name: str, storage: _Storage, whole: _Whole | None = None) -> None:
        """Make `name` another name of `whole`, or a new tensor in `storage`."""
        if whole is None:
            whole = _Whole(storage, shown_as=name)
            storage.wholes.append(whole)
        whole.names.append(name)
        whole.last_use = max(whole.last_use, self._last_use.get(name, -1))
        self._wholes[name] = whole

    def rename(self, value: Argument) -> Argument:
        """`value` with every reference turned to the newest value of that tensor."""
        if isinstance(value, Ref):
            whole = self._wholes.get(value.name)
            return Ref(whole.current) if whole and whole.current else value
        return tuple(self.rename(part) for part in value) if isinstance(value, tuple) else value

    def visit(self, index: int, node: Node) -> None:
        """Rename one node and note what it aliases or writes."""
        renamed = replace(node, arguments=tuple((name, self.rename(value)) for name, value in node.arguments))
        base = node.argument("self")
        if writes_in_place(node.target) and isinstance(base, Ref) and base.name in self._wholes:
            self._write(index, node, renamed, self._wholes[base.name])
            return
        self.nodes.append(PureNode(renamed))
        operation = _operation(node.target)
        source = self._source(node, IDENTITIES.get(operation) or VIEWS.get(operation))
        for name in node.results():
            if source is None:
                self._place(name, _Storage())
            else:
                self._place(name, source.storage, source if operation in IDENTITIES else None)

    def _source(self, node: Node, argument: str | None) -> _Whole | None:
        """The tensor that the result of a view op shows; of several the first."""
        value = node.argument(argument) if argument else None
        names = [name for name in references(value) if name in self._wholes]
        return self._wholes[names[0]] if names else None

    def _write(self, index: int, node: Node, renamed: Node, whole: _Whole) -> None:
        operation, _, overload = node.target.rpartition(".")
        pure = replace(renamed, target=f"{operation.removesuffix('_')}.{overload}")
        for other in whole.storage.wholes:
            if other is not whole and other.last_use > index:
                self.clashes.append((other.shown_as, {*other.names}, node))
        self.nodes.append(PureNode(pure, True))
        if whole.storage.origins:
            self.writes.append((whole.storage, node))
        for name in node.results():
            self._place(name, whole.storage, whole)
            whole.current = name


def _last_uses(graph: Graph) -> dict[str, int]:
    """The index of the last node that reads each value; outputs count as after all nodes."""
    last: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        for name in node.uses():
            last[name] = index
    for value in graph.outputs:
        for name in references(value):
            last[name] = len(graph.nodes)
    return last
