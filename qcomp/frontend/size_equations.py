# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equal sizes in one form: guards that are equations are solved for a symbol, which is replaced in the whole graph.

    s mod 4 == 0, where the program divides s      s becomes 4 * s_4
    t == s + 1                                     t becomes s + 1

So ``4 * (s floordiv 4)``, which a U-Net comes back to, and ``s`` are the same size, as if the program had been exported
with ``4 * Dim("s_4")``. Which sizes a call may have is the same as before: the input's shape says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import lcm
from typing import cast

from qcomp.dialects.dim import Atom, Call, Dim, floor_divide, substitute, symbols_of, terms_of
from qcomp.dialects.dim import symbol as sized
from qcomp.dialects.guard import Guard
from qcomp.frontend.graph import Argument, Graph, Meta, Node, ScalarMeta, Subgraph, SymbolRange, TensorMeta
from qcomp.frontend.specialize import symbol_of
from qcomp.frontend.symbol_text import make
from qcomp.frontend.symbols import Expr, Number, symbol

MAX_PERIOD = 4096
"""Largest period of an equation that is solved."""
_PLAIN = ("symbol", "add", "mul")
Part = Expr | Number | str
Size = int | Expr


class Equal(Exception):
    """Two sizes that an op makes equal: the import starts again with the guard."""

    def __init__(self, guard: Guard):
        super().__init__(str(guard))
        self.guard = guard


def solve_guards(graph: Graph, fixed: Mapping[str, int], demanded: Sequence[Guard] = ()) -> Graph:
    """`graph` with the equations among its guards and those `demanded` solved where that brings sizes into one form.

    fixed: symbols that become numbers anyway.
    """
    graph = replace(graph, guards=(*graph.guards, *demanded))
    divided = {name for guard in demanded for name in symbols_of([guard.size])} | _divided(graph)
    for name in sorted(divided - fixed.keys()):
        found = _residue(name, graph.guards)
        if found is not None:
            remainder, period = found
            fresh = _fresh(f"{name}_{period}", graph)
            times = make("mul", period, symbol(fresh))
            graph = replace_symbol(graph, name, times if not remainder else make("add", times, remainder))
            limits = symbol_of(graph, name)
            low = max(0, -((remainder - limits.low) // period))
            ends = SymbolRange(low, None if limits.high is None else (limits.high - remainder) // period)
            ranges = {**graph.ranges, fresh: ends}
            example = dict(graph.example)
            if name in example:
                example[fresh] = (example[name] - remainder) // period
            # A least size of 2 or less is not taken from the ranges; see `symbol_of`.
            guards = (Guard(sized(fresh) - low),) if 0 < low <= 2 else ()
            graph = replace(graph, ranges=ranges, example=example, guards=(*graph.guards, *guards))
    for guard in demanded:
        graph = _solve(graph, guard, fixed)
    return graph


def _solve(graph: Graph, guard: Guard, fixed: Mapping[str, int]) -> Graph:
    """Replace a symbol that is a sum of others by the demanded equation `guard`."""
    for monomial, factor in guard.size.terms if isinstance(guard.size, Dim) else ():
        if len(monomial) != 1 or not isinstance(monomial[0], str) or abs(factor) != 1 or monomial[0] in fixed:
            continue
        name = monomial[0]
        rest = guard.size - sized(name) * factor
        if name in symbols_of([rest]):
            continue
        value, limits = -rest * factor, symbol_of(graph, name)
        kept = [Guard(value - limits.low, note=guard.note)]
        kept += [] if limits.high is None else [Guard(limits.high - value, note=guard.note)]
        graph = replace_symbol(graph, name, _expression(value))
        return replace(graph, guards=(*graph.guards, *kept))
    return graph


def _residue(name: str, guards: Sequence[Guard]) -> tuple[int, int] | None:
    """(r, m) when the equations among `guards` say that a symbol is r modulo m, m above 1, and no more than that."""
    equations = [_primitive(guard.size, name) for guard in guards if guard.relation == "=="]
    sizes = [size for size in equations if symbols_of([size]) == [name]]
    periods = [(size, _period(size)) for size in sizes]
    repeating = [(size, each) for size, each in periods if each and _at(size, name, each) == _at(size, name, 0)]
    period = lcm(*(each for _, each in repeating))
    if not 1 < period <= MAX_PERIOD:
        return None
    left = list(range(period))
    for size, each in repeating:
        left = [number for number in left if _at(size, name, number % each) == 0]
    if not left or period % len(left):
        return None
    step = period // len(left)
    if step == 1 or any(number != left[0] + step * place for place, number in enumerate(left)):
        return None
    return left[0], step


def _primitive(size: int, name: str) -> int:
    """`size` without the other symbols that all its terms are multiplied by: only of empty tensors they are 0."""
    for other in symbols_of([size]):
        while other != name and all(other in monomial for monomial, _ in terms_of(size)):
            size = floor_divide(size, sized(other))
    return size


def _at(size: int, name: str, number: int) -> int:
    return substitute(size, {name: number})


def _period(size: int) -> int:
    """A number by which the symbol can grow so that `size` grows by the same each time; 0 when none is known."""
    period = 1
    for monomial, _ in size.terms if isinstance(size, Dim) else ():
        if len(monomial) > 1:
            return 0
        for atom in monomial:
            if isinstance(atom, Call):
                top, under = atom.args
                inner = _period(top) if atom.name == "floordiv" and not isinstance(under, Dim) else 0
                if not inner:
                    return 0
                period = lcm(period, inner * under)
    return period if period <= MAX_PERIOD else 0


def _divided(graph: Graph) -> set[str]:
    """The symbols that take part in divisions, minima and the like among the sizes of the graph."""
    found: set[str] = set()
    seen: set[int] = set()

    def visit(value: Part) -> None:
        if not isinstance(value, Expr) or id(value) in seen:
            return
        seen.add(id(value))
        if value.op not in _PLAIN:
            found.update(value.symbols())
        else:
            for part in value.args:
                visit(part)

    for meta in _metas(graph):
        for value in meta.shape if isinstance(meta, TensorMeta) else (meta.value,):
            visit(value)
    return found


def _metas(graph: Graph) -> Iterator[Meta]:
    yield from graph.values.values()
    for inner in _subgraphs(graph):
        yield from _metas(inner)


def _subgraphs(graph: Graph) -> Iterator[Graph]:
    for node in graph.nodes:
        for _, value in node.arguments:
            if isinstance(value, Subgraph):
                yield value.graph


def _fresh(name: str, graph: Graph) -> str:
    while name in graph.ranges or name in graph.example:
        name += "_"
    return name


def replace_symbol(graph: Graph, name: str, value: Expr | Number) -> Graph:
    """`graph` with a symbol replaced in all types and guards."""
    known: dict[int, Part] = {}

    def replaced(part: Part) -> Part:
        if not isinstance(part, Expr):
            return part
        if part.op == "symbol":
            return value if part.args[0] == name else part
        if id(part) not in known:
            args = tuple(replaced(arg) for arg in part.args)
            known[id(part)] = part if args == part.args else Expr(part.op, args)
        return known[id(part)]

    guards = tuple(guard.at({name: _size(value)}) for guard in graph.guards)
    return _mapped(replace(graph, guards=tuple(guard for guard in guards if guard.known() is not True)), replaced)


def _mapped(graph: Graph, act: Callable[[Part], Part]) -> Graph:
    """`graph` with `act` done to every size in its types, subgraphs included."""

    def meta(item: Meta) -> Meta:
        if isinstance(item, ScalarMeta):
            return replace(item, value=cast("Expr | Number", act(item.value)))
        return replace(item, shape=tuple(cast("Size", act(size)) for size in item.shape))

    def argument(item: Argument) -> Argument:
        return Subgraph(item.name, _mapped(item.graph, act)) if isinstance(item, Subgraph) else item

    def node(item: Node) -> Node:
        return replace(item, arguments=tuple((key, argument(value)) for key, value in item.arguments))

    nodes = tuple(node(item) for item in graph.nodes) if any(True for _ in _subgraphs(graph)) else graph.nodes
    return replace(graph, values={key: meta(item) for key, item in graph.values.items()}, nodes=nodes)


def _size(value: Expr | Number) -> int:
    return value.dim() if isinstance(value, Expr) else int(value)


def _expression(size: int) -> Expr | Number:
    """A size as the export would write it."""
    total: Expr | Number = 0
    for monomial, factor in size.terms if isinstance(size, Dim) else (((), size),):
        term: Expr | Number = factor
        for atom in monomial:
            term = make("mul", term, _atom(atom)) if term != 1 else _atom(atom)
        total = make("add", total, term) if total != 0 else term
    return total


def _atom(atom: Atom) -> Expr | Number:
    return symbol(atom) if isinstance(atom, str) else make(atom.name, *map(_expression, atom.args))
