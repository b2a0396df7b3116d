# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrappers around a part of a program that only say how to run it: their body takes their place.

``torch.no_grad`` and autocast regions, nested compile regions and activation checkpoints appear in exports as higher
order ops with a subgraph. A region that autocasts computes in another type than its graph says: that one stays, and is
refused like any op that is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qcomp.frontend.graph import Argument, Graph, Meta, Node, Output, Ref, Subgraph

_WRAPPERS = {
    "higher_order.wrap_with_set_grad_enabled": 0,
    "higher_order.wrap_with_autocast": 0,
    "higher_order.tag_activation_checkpoint": 0,
    "higher_order.wrap_activation_checkpoint": 0,
    "higher_order.wrap": 0,
    "higher_order.invoke_subgraph": 1,
}
"""Wrapper -> how many arguments after the subgraph are not operands."""


def inline_wrappers(graph: Graph) -> Graph:
    """`graph` without wrappers; the same object when there are none."""
    if not any(_body(node) for node in graph.nodes):
        return graph
    work = _Inliner(graph)
    nodes = tuple(work.expand(graph.nodes, {}))
    outputs = tuple(_renamed(value, work.results) for value in graph.outputs)
    mutations = tuple(replace(item, value=_ref(item.value, work.results)) for item in graph.mutations)
    return replace(graph, nodes=nodes, values=work.values, outputs=outputs, mutations=mutations)


def _body(node: Node) -> Subgraph | None:
    """The subgraph of a wrapper that changes no number."""
    if node.target not in _WRAPPERS:
        return None
    values = [value for _, value in node.arguments]
    if node.target.endswith("autocast"):
        # device, dtype, enabled, cache_enabled: only False says that the body runs as written.
        flags = [value for value in values if isinstance(value, bool)]
        if not flags or flags[0]:
            return None
    return next((value for value in values if isinstance(value, Subgraph)), None)


class _Inliner:
    """Gives the nodes of bodies names that no other value has."""

    def __init__(self, graph: Graph):
        self.values: dict[str, Meta] = dict(graph.values)
        self.results: dict[str, Argument] = {}
        """Results of wrappers as the values that the bodies return for them."""
        self._taken = {*graph.constants, *(name for node in graph.nodes for name in node.results())}
        self._taken.update(entry.value.name for entry in graph.inputs if isinstance(entry.value, Ref))

    def expand(self, nodes: tuple[Node, ...], names: dict[str, Argument]) -> Iterator[Node]:
        """`nodes` with wrappers replaced by their bodies; `names` says what the inputs of a body are."""
        for node in nodes:
            known = {**self.results, **names}
            renamed = replace(
                node,
                arguments=tuple((name, _renamed(value, known)) for name, value in node.arguments),
                outputs=tuple(_output(output, names) for output in node.outputs),
            )
            body = _body(renamed)
            if body is None:
                yield renamed
            else:
                yield from self._inline(renamed, body)

    def _inline(self, node: Node, body: Subgraph) -> Iterator[Node]:
        values = [value for _, value in node.arguments]
        operands = values[values.index(body) + 1 + _WRAPPERS[node.target] :]
        names = {
            entry.value.name: operand
            for entry, operand in zip(body.graph.inputs, operands, strict=False)
            if isinstance(entry.value, Ref)
        }
        for name in (name for inner in body.graph.nodes for name in inner.results()):
            names[name] = Ref(self._fresh(name, node.name))
            if name in body.graph.values:
                self.values[_ref(Ref(name), names).name] = body.graph.values[name]
        yield from self.expand(body.graph.nodes, names)
        known = {**self.results, **names}
        returned = [part for value in body.graph.outputs for part in (value if isinstance(value, tuple) else (value,))]
        for name, value in zip(node.results(), returned, strict=False):
            self.results[name] = _renamed(value, known)

    def _fresh(self, name: str, wrapper: str) -> str:
        candidate = name
        while candidate in self._taken:
            candidate = f"{candidate}_{wrapper}"
        self._taken.add(candidate)
        return candidate


def _renamed(value: Argument, names: dict[str, Argument]) -> Argument:
    if isinstance(value, Ref):
        return names.get(value.name, value)
    return tuple(_renamed(part, names) for part in value) if isinstance(value, tuple) else value


def _ref(value: Ref, names: dict[str, Argument]) -> Ref:
    found = _renamed(value, names)
    return found if isinstance(found, Ref) else value


def _output(output: Output, names: dict[str, Argument]) -> Output:
    if isinstance(output, tuple):
        return tuple(None if part is None else _ref(part, names) for part in output)
    return None if output is None else _ref(output, names)
