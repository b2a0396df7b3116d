# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The neutral graph: what a .pt2 file, an ExportedProgram and an fx GraphModule all say, without torch.

Three readers (`pt2`, `exported_program`, `graph_module`) produce it, one importer consumes it. Values are named as in
the export; an op's arguments carry their schema names, in schema order, those left at their default omitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from qcomp.dialects.guard import Guard
from qcomp.frontend.pytree import Tree
from qcomp.frontend.symbols import Dim, Expr
from qcomp.frontend.tensor_data import FloatArray, IntArray, TensorData


@dataclass(frozen=True)
class Ref:
    """A use of the value called `name`."""

    name: str


@dataclass(frozen=True)
class DType:
    """An element type as an argument, in torch's spelling without the prefix: ``float32``, ``bfloat16``, ``bool``."""

    name: str


@dataclass(frozen=True)
class Keyword:
    """A device, layout or memory format as an argument: ``Keyword("memory_format", "channels_last")``."""

    kind: str
    name: str


@dataclass(frozen=True)
class Subgraph:
    """A branch or body of a control flow op."""

    name: str
    graph: Graph


Argument = Ref | DType | Keyword | Subgraph | bool | int | float | complex | str | None | tuple["Argument", ...]
Output = Ref | None | tuple["Ref | None", ...]


@dataclass(frozen=True)
class TensorMeta:
    """What the export knows of a tensor value; the importer infers types itself and checks against this."""

    dtype: str
    shape: tuple[Dim, ...]
    place: tuple[int, ...] | None = field(default=None, compare=False)
    """Offset in its storage and strides, where they are numbers; views by strides and writes to views need to know."""


@dataclass(frozen=True)
class ScalarMeta:
    """A size or number computed in the graph: kind is ``int``, ``float`` or ``bool``."""

    kind: str
    value: Expr | int | float | bool


Meta = TensorMeta | ScalarMeta


@dataclass(frozen=True)
class Location:
    """Where an op came from: dotted module path and the innermost Python line outside torch."""

    module_path: str | None = None
    file: str | None = None
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else ""
        if self.module_path and place:
            return f"{self.module_path} ({place})"
        return self.module_path or place


@dataclass(frozen=True)
class Node:
    """One op. `target` is ``namespace.op.overload``; `outputs` has an entry per result, a tuple for a tensor list."""

    name: str
    target: str
    arguments: tuple[tuple[str, Argument], ...]
    outputs: tuple[Output, ...]
    location: Location = Location()

    def argument(self, name: str, default: Argument = None) -> Argument:
        """The argument called `name`, or `default` when the export left it out."""
        return next((value for key, value in self.arguments if key == name), default)

    def uses(self) -> list[str]:
        """The names of the values the node reads, with repetitions."""
        return [name for _, value in self.arguments for name in references(value)]

    def results(self) -> list[str]:
        """The names of the values the node defines."""
        flat = [part for output in self.outputs for part in (output if isinstance(output, tuple) else (output,))]
        return [part.name for part in flat if part is not None]


def references(value: Argument) -> list[str]:
    """The names of the values that `value` refers to."""
    if isinstance(value, Ref):
        return [value.name]
    if isinstance(value, tuple):
        return [name for part in value for name in references(part)]
    return []


@dataclass(frozen=True)
class Input:
    """An input of the program. `value` is a `Ref` to the graph's name for it, or the literal it was exported with."""

    name: str
    value: Argument


@dataclass(frozen=True)
class Constant:
    """A tensor the program carries: kind is ``parameter``, ``buffer`` or ``constant``; name is its dotted path."""

    name: str
    kind: str
    data: TensorData
    persistent: bool = True


@dataclass(frozen=True)
class Mutation:
    """A write that outlives the call: kind is ``buffer``, ``parameter`` or ``input``."""

    kind: str
    target: str
    value: Ref


OBSERVE = "qcomp.observe.default"
"""Target of the node that stands for a call of an observer; arguments: ``input`` and the name ``observer``."""


@dataclass(frozen=True, eq=False)
class Observer:
    """A calibrated observer or fake-quantize module.

    scales (float64) and zero_points (int64) come from its ``calculate_qparams()``; `axis` is None per tensor. `group`
    is equal for nodes that call the same module object: they share one encoding. A dynamic one has no parameters, but
    `floor`, the least scale, and `symmetric`; one of a narrower float has only its `dtype`.
    """

    name: str
    group: int
    dtype: str
    quant_min: int
    quant_max: int
    scales: FloatArray
    zero_points: IntArray
    axis: int | None = None
    floor: float = 0.0
    symmetric: bool = False

    @property
    def dynamic(self) -> bool:
        """Whether the parameters follow from the values at run time."""
        return self.floor > 0


@dataclass(frozen=True)
class SymbolRange:
    """The sizes a symbol may take; None is unbounded."""

    low: int | None
    high: int | None


@dataclass(frozen=True)
class Graph:
    """A whole program. Every name used by a node is an input, a constant or a result of an earlier node."""

    inputs: tuple[Input, ...]
    outputs: tuple[Argument, ...]
    nodes: tuple[Node, ...]
    values: Mapping[str, Meta]
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    mutations: tuple[Mutation, ...] = ()
    observers: Mapping[str, Observer] = field(default_factory=dict[str, Observer])
    ranges: Mapping[str, SymbolRange] = field(default_factory=dict[str, SymbolRange])
    guards: tuple[Guard, ...] = ()
    """What the export took for granted about sizes, such as the side of a branch."""
    example: Mapping[str, int] = field(default_factory=dict[str, int])
    """The sizes of symbols that the program was exported with."""
    in_tree: Tree | None = None
    out_tree: Tree | None = None
    argument_names: tuple[str, ...] = ()
    exact_types: bool = True
    """Whether `values` can be trusted: rewrites of torchao leave types of their pattern's examples in fx graphs."""
    in_memory: bool = field(default=False, compare=False)
    """Whether the program came as torch's own objects, so that torch is there to evaluate ops on constants."""
