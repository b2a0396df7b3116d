# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs without side effects: writes become values, pre-dispatch exports are not functional.

``y = add_(x, z)`` becomes ``y = add(x, z)``, and every later use of `x` reads the new value. Where `x` is a view, the
new value is put back into what it shows (`INSERT_VIEW`), up to the tensor that owns the memory, and other views of that
memory are taken anew when they are next read. Nothing is added where nothing is written, or what is written is not
read again.

Writes that outlive the call become results: the last value of an input that was written, and of every buffer that was
written and whose old value an output depends on (`State`). What cannot be said so is reported as a problem.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from qcomp.frontend.graph import Argument, Graph, Node, Ref, references
from qcomp.frontend.views import SEEN_ANEW, is_view, operation, viewed_argument

INSERT_VIEW = "qcomp.insert_view.default"
"""Target of the node that puts `source` where a view of `base` shows it. Arguments: ``base``, ``source``, ``view`` (the
target of the view op), ``result`` (which of its results), and those of the view op behind ``view.``."""


@dataclass(frozen=True)
class PureNode:
    """A node without side effects. `inplace`: the result takes shape and type of the first argument, as written."""

    node: Node
    inplace: bool = False


@dataclass(frozen=True)
class State:
    """A tensor that lives on between calls: all the names that the graph has for it, and its value after the call."""

    names: tuple[str, ...]
    value: Argument


@dataclass
class Functional:
    """A program without side effects: the nodes that outputs depend on, and the outputs under their new names.

    `written` are (graph input, its last value) for inputs that the program writes. `problems` are (reason, hint, node)
    for writes that cannot be said as values.
    """

    nodes: list[PureNode]
    outputs: tuple[Argument, ...]
    written: list[tuple[str, Argument]]
    states: list[State]
    problems: list[tuple[str, str, Node]]


@dataclass(eq=False)
class _Seen:
    """One way of seeing some memory: the owner's (no `base`), or result `index` of a view op on another way.

    `current` names its newest value, which holds while `version` is that of the memory.
    """

    memory: _Memory
    current: str
    base: _Seen | None = None
    view: Node | None = None
    index: int = 0
    version: int = 0
    last_use: int = -1
    names: list[str] = field(default_factory=list[str])


@dataclass(eq=False)
class _Memory:
    """What an op or the caller allocated. `version` counts the writes, `suspects` is other memory it may really be."""

    version: int = 0
    views: list[_Seen] = field(default_factory=list[_Seen])
    suspects: list[_Memory] = field(default_factory=list["_Memory"])


def functionalize(graph: Graph) -> Functional:
    """The live part of `graph` with writes as values."""
    work = _Writer(graph)
    for index, node in enumerate(graph.nodes):
        work.visit(index, node)
    outputs = tuple(work.current(value) for value in graph.outputs)
    written, states = work.written_inputs(), work.states()
    nodes, read, states = _live(work.nodes, [*outputs, *(value for _, value in written)], states)
    problems = [
        (f"writes in place to memory that {name} also shows", _IN_PLACE, node)
        for name, names, node in work.clashes
        if not read.isdisjoint(names)
    ]
    return Functional(nodes, outputs, written, states, problems)


_IN_PLACE = "write it without the in-place op, or clone what it shows first"


def _live(
    nodes: list[PureNode], outputs: Iterable[Argument], states: list[State]
) -> tuple[list[PureNode], set[str], list[State]]:
    """The nodes that `outputs` depend on, in order, all names that are read, and the states that are.

    A state whose old value nothing reads but its own update is of no consequence.
    """
    needed = {name for value in outputs for name in references(value)}
    kept, waiting = list[State](), list(states)
    while True:
        live = list[PureNode]()
        for pure in reversed(nodes):
            if needed.intersection(pure.node.results()):
                live.append(pure)
                needed.update(pure.node.uses())
        found = [state for state in waiting if needed.intersection(state.names)]
        if not found:
            return live[::-1], needed, [state for state in states if state in kept]
        waiting = [state for state in waiting if state not in found]
        kept += found
        needed.update(name for state in found for name in references(state.value))


def writes_in_place(target: str) -> bool:
    """Whether the op writes its first argument: ``relu_``, but neither ``__and__`` nor ``_softmax``."""
    name = operation(target).rpartition(".")[2]
    return target.startswith("aten.") and name.endswith("_") and not name.endswith("__")


_TRAINED = ("batch_norm.default", "native_batch_norm.default", "_native_batch_norm_legit.default")


def updates_statistics(node: Node) -> bool:
    """Whether `node` is a batch norm in training mode, which writes its running statistics."""
    named = node.target.removeprefix("aten.") in _TRAINED
    return named and node.argument("training") is True and isinstance(node.argument("running_mean"), Ref)


def _writes_unseen(node: Node) -> bool:
    """Whether `node` can only have been called for what it writes: it has tensors but no results."""
    name = operation(node.target).rpartition(".")[2]
    quiet = name.startswith(("_assert", "sym_constrain", "_check", "assert", "_guard", "_print", "record_"))
    return not node.outputs and bool(node.uses()) and not quiet


class _Writer:
    """Walks the nodes once, keeping for every name how it sees which memory."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.nodes: list[PureNode] = []
        self.clashes: list[tuple[str, set[str], Node]] = []
        self._seen: dict[str, _Seen] = {}
        self._last_use = _last_uses(graph)
        self._fresh = itertools.count()
        self._owners: dict[str, _Seen] = {}
        for entry in graph.inputs:
            if isinstance(entry.value, Ref):
                self._own(entry.value.name)
        known: dict[object, _Seen] = {}
        memories: dict[object, list[_Memory]] = {}
        for name, constant in graph.constants.items():
            identity = constant.data.identity
            if identity in known:
                self._name(name, known[identity])
                self._owners[name] = known[identity]
                continue
            known[identity] = self._own(name)
            # Another window on the same memory: what is written to one shows in the other.
            for other in memories.setdefault(identity[0], []):
                self._suspect(other, known[identity].memory)
            memories[identity[0]].append(known[identity].memory)

    def _own(self, name: str) -> _Seen:
        memory = _Memory()
        seen = _Seen(memory, name)
        memory.views.append(seen)
        self._name(name, seen)
        self._owners[name] = seen
        return seen

    @staticmethod
    def _suspect(one: _Memory, other: _Memory) -> None:
        one.suspects.append(other)
        other.suspects.append(one)

    def _name(self, name: str, seen: _Seen) -> None:
        seen.names.append(name)
        seen.last_use = max(seen.last_use, self._last_use.get(name, -1))
        self._seen[name] = seen

    def current(self, value: Argument) -> Argument:
        """`value` with every reference turned to the newest value of that tensor."""
        if isinstance(value, Ref):
            seen = self._seen.get(value.name)
            return Ref(self._read(seen)) if seen else value
        return tuple(self.current(part) for part in value) if isinstance(value, tuple) else value

    def _read(self, seen: _Seen) -> str:
        """The newest value of `seen`: its view op done again when the memory was written since."""
        if seen.version != seen.memory.version and seen.base is not None and seen.view is not None:
            base = self._read(seen.base)
            argument = viewed_argument(seen.view) or "self"
            arguments = tuple((key, Ref(base) if key == argument else value) for key, value in seen.view.arguments)
            names = [self._new_name(name) for name in seen.view.results()]
            flat = iter(names)
            outputs = tuple(
                tuple(ref and Ref(next(flat)) for ref in output)
                if isinstance(output, tuple)
                else output and Ref(next(flat))
                for output in seen.view.outputs
            )
            self.nodes.append(PureNode(replace(seen.view, name=names[0], arguments=arguments, outputs=outputs)))
            seen.current = _flat(outputs)[seen.index] or ""
        seen.version = seen.memory.version
        return seen.current

    def _new_name(self, name: str) -> str:
        return f"{name.partition('@')[0]}@{next(self._fresh)}"

    def visit(self, index: int, node: Node) -> None:
        """Say one node as a value, and note what it shows or writes."""
        pure = replace(node, arguments=tuple((name, self.current(value)) for name, value in node.arguments))
        base = node.argument("self")
        seen = self._seen.get(base.name) if isinstance(base, Ref) else None
        if operation(node.target) in SEEN_ANEW and seen is not None:
            target = node.target.replace("_.", ".", 1).replace("transpose.default", "transpose.int")
            self._see(replace(pure, target=target), seen)
            self._rename(seen, self._seen[node.results()[0]])
        elif writes_in_place(node.target) and seen is not None:
            self._write(index, node, pure, seen)
        elif updates_statistics(node):
            self._train(index, node, pure)
        else:
            if writes_in_place(node.target) or _writes_unseen(node):
                self._write_unknown(index, node)
            self.nodes.append(PureNode(pure))
            self._results(node, pure)

    def _train(self, index: int, node: Node, pure: Node) -> None:
        """A batch norm whose last two results are the running statistics after it."""
        read = (node.argument(key) for key in ("running_mean", "running_var"))
        places = [self._seen[name] for value in read for name in references(value)]
        names = [self._new_name(seen.current) for seen in places]
        first = (*pure.outputs, None, None)[:3]
        self.nodes.append(PureNode(replace(pure, outputs=(*first, *(Ref(name) for name in names)))))
        self._results(node, pure)
        for seen, name in zip(places, names, strict=True):
            self._clash(index, node, seen.memory)
            self._update(seen, name)

    def _results(self, node: Node, pure: Node) -> None:
        argument = viewed_argument(node)
        value = node.argument(argument) if argument else None
        sources = [self._seen[name] for name in references(value) if name in self._seen]
        shows = is_view(node, self.graph.values) if sources else False
        if shows and not isinstance(value, tuple):
            self.nodes.pop()
            self._see(pure, sources[0])
            return
        for name in node.results():
            seen = self._own_result(name)
            for source in sources if shows is None else ():
                self._suspect(source.memory, seen.memory)

    def _own_result(self, name: str) -> _Seen:
        memory = _Memory()
        seen = _Seen(memory, name)
        memory.views.append(seen)
        self._name(name, seen)
        return seen

    def _see(self, view: Node, base: _Seen) -> None:
        """Add a view op on `base`."""
        self.nodes.append(PureNode(view))
        for index, name in enumerate(_flat(view.outputs)):
            if name is not None:
                seen = _Seen(base.memory, name, base, view, index, base.memory.version)
                base.memory.views.append(seen)
                self._name(name, seen)

    def _rename(self, old: _Seen, new: _Seen) -> None:
        """All names of `old` are names of `new` from here on."""
        for name in [name for name, seen in self._seen.items() if seen is old]:
            self._name(name, new)

    def _write(self, index: int, node: Node, pure: Node, seen: _Seen) -> None:
        name, _, overload = node.target.rpartition(".")
        self.nodes.append(PureNode(replace(pure, target=f"{name.removesuffix('_')}.{overload}"), True))
        self._clash(index, node, seen.memory)
        results = node.results()
        if results:
            self._update(seen, results[0])
        for result in results:
            self._name(result, seen)

    def _update(self, seen: _Seen, value: str) -> None:
        """Let `value` be the newest value of `seen`, and put it back into what it is a view of."""
        memory = seen.memory
        chain, at = list[tuple[_Seen, str]](), seen
        while at.base is not None and at.view is not None:
            chain.append((at, self._read(at.base)))
            at = at.base
        memory.version += 1
        seen.current, seen.version = value, memory.version
        for shown, old in chain:
            base, view = shown.base, shown.view
            assert base is not None and view is not None
            argument = viewed_argument(view) or "self"
            inner = tuple((f"view.{key}", Ref(old) if key == argument else arg) for key, arg in view.arguments)
            first: tuple[tuple[str, Argument], ...] = (
                ("base", Ref(old)), ("source", Ref(value)), ("view", view.target), ("result", shown.index),
            )  # fmt: skip
            value = self._new_name(old)
            self.nodes.append(PureNode(Node(value, INSERT_VIEW, (*first, *inner), (Ref(value),), view.location)))
            base.current, base.version = value, memory.version

    def _write_unknown(self, index: int, node: Node) -> None:
        """A write of which only the arguments are known: whatever is read of their memory later is a problem."""
        for name in node.uses():
            seen = self._seen.get(name)
            if seen is not None:
                self._clash(index, node, seen.memory)
                self._note(index, node, seen.memory)

    def _clash(self, index: int, node: Node, memory: _Memory) -> None:
        for other in memory.suspects:
            self._note(index, node, other)

    def _note(self, index: int, node: Node, memory: _Memory) -> None:
        for view in memory.views:
            if view.last_use > index or view in self._owners.values():
                self.clashes.append((view.names[0], {*view.names, view.current}, node))

    def written_inputs(self) -> list[tuple[str, Argument]]:
        """Inputs of the graph with the values that writes left in them."""
        found: dict[str, Argument] = {}
        names = {entry.name: entry.value.name for entry in self.graph.inputs if isinstance(entry.value, Ref)}
        for name in names.values():
            if self._owners[name].memory.version:
                found[name] = Ref(self._read(self._owners[name]))
        for mutation in self.graph.mutations:
            name = names.get(mutation.target, mutation.target)
            if mutation.kind == "input" and name in names.values():
                found[name] = self.current(mutation.value)
        return [(name, found[name]) for name in names.values() if name in found]

    def states(self) -> list[State]:
        """Constants that are written, with their last values."""
        names: dict[int, list[str]] = {}
        for name in self.graph.constants:
            names.setdefault(id(self._owners[name]), []).append(name)
        paths = {constant.name: name for name, constant in self.graph.constants.items()}
        values: dict[int, Argument] = {}
        for name in self.graph.constants:
            if self._owners[name].memory.version:
                values[id(self._owners[name])] = Ref(self._read(self._owners[name]))
        for mutation in self.graph.mutations:
            name = paths.get(mutation.target, mutation.target)
            if mutation.kind != "input" and name in self._owners:
                values[id(self._owners[name])] = self.current(mutation.value)
        return [State(tuple(names[key]), value) for key, value in values.items()]


def _flat(outputs: tuple[Ref | tuple[Ref | None, ...] | None, ...]) -> list[str | None]:
    """The names of all results, None for those that are not offered."""
    parts = [part for output in outputs for part in (output if isinstance(output, tuple) else (output,))]
    return [None if part is None else part.name for part in parts]


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
