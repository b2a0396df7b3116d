# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a neutral graph to a module: one public ``main`` of nn and quant ops.

Types are inferred here; where the export knows them too, the two are compared. All ops that cannot be imported are
reported in one error. main's arguments and results carry ``nn.name``, main itself ``nn.in_tree`` and ``nn.out_tree``
(`qcomp.frontend.pytree.Tree.dump`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.binding import Symbol, can_bind
from qcomp.dialects.constant import ConstantData, DataAttr
from qcomp.dialects.dim import symbols_of
from qcomp.dialects.dims import declare_guards, declare_symbols, sizes_of, tensor_of
from qcomp.dialects.element import element_type
from qcomp.dialects.facts import deciding, independent
from qcomp.dialects.location import location
from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.quant import storage_type
from qcomp.dialects.state import STATE, WRITTEN
from qcomp.dialects.verification import type_problem
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Complex, Result, Tensor, attribute_location, tensor_type
from qcomp.frontend.functional import Functional, PureNode, functionalize
from qcomp.frontend.graph import OBSERVE, Argument, Graph, Location, Meta, Node, Ref, ScalarMeta, TensorMeta
from qcomp.frontend.known_values import bind_result_sizes, has_known_operands, read_item
from qcomp.frontend.ops import HANDLERS
from qcomp.frontend.ops.complexes import complex_handler
from qcomp.frontend.ops.table import hint_for
from qcomp.frontend.pytree import Tree
from qcomp.frontend.size_equations import Equal, solve_guards
from qcomp.frontend.size_facts import agree, assumptions_of
from qcomp.frontend.specialize import symbol_of
from qcomp.frontend.symbols import Expr, Number
from qcomp.refusals import Refusal, refusal_error


def import_graph(graph: Graph, symbols: Mapping[str, int] | None = None) -> ModuleOp:
    """The module of `graph`; `symbols` fixes symbolic sizes. Raises QcompError listing everything unsupported."""
    work = _imported(graph, symbols)
    if work.refusals:
        raise refusal_error(work.refusals)
    return work.module()


def import_supported(graph: Graph, symbols: Mapping[str, int] | None = None) -> tuple[ModuleOp, list[Refusal]]:
    """A module of `graph` and everything in it that cannot be imported.

    Where there is such, the module is a stand-in that computes the rest: what a refused op would have given is an
    argument, what nobody reads a result.
    """
    work = _imported(graph, symbols)
    return (work.stand_in_module() if work.refusals else work.module()), work.refusals


def list_refusals(graph: Graph, symbols: Mapping[str, int] | None = None) -> list[Refusal]:
    """Everything in `graph` that cannot be imported; empty when `import_graph` succeeds."""
    return _imported(graph, symbols).refusals


def _imported(graph: Graph, symbols: Mapping[str, int] | None) -> _Importer:
    """The ops of `graph` imported; from the start where an op makes two sizes equal, which then have one form."""
    fixed = dict(symbols or {})
    graph = solve_guards(graph, fixed)
    for _ in range(MAX_RESTARTS):
        try:
            return _Importer(graph, fixed)
        except Equal as found:
            graph = solve_guards(graph, fixed, [found.guard])
    raise QcompError("the sizes of the program are too many that have to be equal", code="dynamic-shape")


# Faults of the file, not of an op: reading a weight found them.
_FATAL = ("archive-bomb", "malformed-pt2", "malformed-tensor", "missing-record", "pickled")


MAX_RESTARTS = 64
"""Each makes two sizes one."""
MAX_INPUTS, MAX_STAND_INS = 8192, 2000
"""A block takes time quadratic in its arguments."""


_NO_HANDLER = "no-handler"
_EVALUATED = "its operands are constants: torch evaluates it if you pass the ExportedProgram in place of the file"
_RETURN_PARTS = "return torch.view_as_real of it"
_RETURN_TENSOR = "leave it out, or return a tensor in its place"


class _Importer:
    """Runs the handlers over the live nodes. After a refusal it goes on with a stand-in, so that later ones show."""

    def __init__(self, graph: Graph, symbols: dict[str, int]):
        self.graph: Graph = graph
        self.refusals: list[Refusal] = []
        if len(graph.inputs) > MAX_INPUTS:
            raise QcompError(f"the program takes {len(graph.inputs)} inputs, at most {MAX_INPUTS} are supported")
        bindable = _bindable(graph)
        self.builder: Builder = Builder(
            graph, Block(), cast("dict[str, Number]", symbols), bindable=bindable,
            assumptions=assumptions_of(graph, bindable, symbols),
        )  # fmt: skip
        self.builder.import_body = self._body
        self.functional: Functional = functionalize(graph)
        self._unknown: set[str] = set()
        self._stand_ins = Block()
        self._users: dict[str, Node] = _first_users(self.functional)
        self._locations: dict[str, Location] = {}
        for reason, hint, node in self.functional.problems:
            self._refuse(node, reason, hint)
        with deciding(self.builder.assumptions):
            self._arguments()
            self._states()
            for pure in self.functional.nodes:
                self._node(pure)
        for value in self.functional.outputs:
            if isinstance(value, Ref) and self.builder.is_complex(value.name):
                self._refuse(Node(value.name, "output", (), ()), "complex outputs are not supported", _RETURN_PARTS)
            elif isinstance(value, Ref) and isinstance(meta := graph.values.get(value.name), ScalarMeta):
                if isinstance(meta.value, Expr) and not meta.value.symbols() <= set(symbols):
                    reason = f"an output that is a number, {meta.value}, is not supported"
                    self._refuse(Node(value.name, "output", (), ()), reason, _RETURN_TENSOR)

    def _body(self, graph: Graph, block: Block, inputs: Sequence[SSAValue]) -> list[SSAValue]:
        """The nodes of a subgraph in `block`; see `Builder.body`."""
        outer = self.graph, self.builder, self.functional, self._users, self._unknown
        self.builder = self.builder.nested(graph, block)
        self.graph, self.functional, self._unknown = graph, functionalize(graph), set()
        self._users = _first_users(self.functional)
        try:
            if self.functional.written:
                raise QcompError("a subgraph that writes to its inputs is not supported", code="unsupported-op")
            given = [entry.value.name for entry in graph.inputs if isinstance(entry.value, Ref)]
            # Sizes are known by their symbols; see `ops.control`.
            names = [name for name in given if not isinstance(graph.values.get(name), ScalarMeta)]
            if len(names) != len(inputs):
                raise QcompError(f"a subgraph of {len(names)} inputs is given {len(inputs)}", code="malformed-graph")
            self.builder.values.update(zip(names, inputs, strict=True))
            for reason, hint, node in self.functional.problems:
                self._refuse(node, reason, hint)
            for pure in self.functional.nodes:
                self._node(pure)
            if self._unknown or not all(isinstance(value, Ref) for value in self.functional.outputs):
                raise QcompError("a subgraph that returns more than tensors is not supported", code="unsupported-op")
            refs = [value for value in self.functional.outputs if isinstance(value, Ref)]
            return [self.builder.plain(self.builder.of(value)) for value in refs]
        finally:
            self.graph, self.builder, self.functional, self._users, self._unknown = outer

    def _refuse(self, node: Node, reason: str, hint: str | None) -> None:
        target = "observer" if node.target == OBSERVE else node.target
        self.refusals.append(Refusal(target, reason, str(self._locations.get(node.name, node.location)), hint))

    def _arguments(self) -> None:
        for entry in self.graph.inputs:
            if not isinstance(entry.value, Ref):
                continue
            node = Node(entry.name, "input", (), ())
            try:
                kind = self._type(self.graph.values.get(entry.value.name), entry.name)
            except QcompError as error:
                self._refuse(node, f"{entry.name}: {error.message}", error.hint)
                self._unknown.add(entry.value.name)
                continue
            argument = self.builder.block.insert_arg(kind, len(self.builder.block.args))
            argument.name_hint = entry.name if SSAValue.is_valid_name(entry.name) else None
            argument.location = location(entry.name)
            self.builder.values[entry.value.name] = argument

    def _states(self) -> None:
        """Arguments for the tensors that live on between calls, under all their names."""
        for state in self.functional.states:
            constant = self.graph.constants[state.names[0]]
            kind = TensorType(element_type(constant.data.dtype), constant.data.shape)
            argument = self.builder.block.insert_arg(kind, len(self.builder.block.args))
            argument.name_hint = state.names[0] if SSAValue.is_valid_name(state.names[0]) else None
            argument.location = location(constant.name)
            self.builder.values.update(dict.fromkeys(state.names, argument))

    def _type(self, meta: Meta | None, name: str) -> TensorType[Attribute]:
        """The tensor type that the export gives a value."""
        if isinstance(meta, TensorMeta):
            kind = tensor_of(element_type(meta.dtype), [self.builder.size(dim) for dim in meta.shape])
            if (problem := type_problem(kind)) is not None:
                raise QcompError(f"{name} is {problem}", code="limit", hint="docs/limits.md lists the limits")
            return kind
        if isinstance(meta, ScalarMeta):
            raise QcompError(
                "numbers as inputs are not supported", hint="export with the number fixed, or pass a tensor"
            )
        raise QcompError(f"the type of {name} is not known", hint="pass example_inputs")

    def _node(self, pure: PureNode) -> None:
        node = pure.node
        if all(isinstance(self.graph.values.get(name), ScalarMeta) for name in node.results()):
            if self._unknown.isdisjoint(node.uses()):
                read_item(self.builder, node)
            return  # read through its metadata, see Builder.number
        self._locations[node.name] = where = self._where(node)
        if self._unknown.intersection(node.uses()):
            self._unknown.update(node.results())
            return
        self.builder.place = attribute_location(where)
        self.builder.assumptions.place = f"{node.target} at {where}" if str(where) else node.target
        try:
            self._bind(pure, self._results(pure))
        except QcompError as error:
            if error.code in _FATAL:
                raise
            named = replace(node, target=_written(node.target)) if pure.inplace and error.code == _NO_HANDLER else node
            self._refuse(named, error.message, error.hint)
            self._stand_in(node)
        except (VerifyException, ValueError, IndexError, OverflowError) as error:
            self._refuse(node, f"cannot be imported: {error}", None)
            self._stand_in(node)

    def _results(self, pure: PureNode) -> Result:
        """The results of a node; by torch, where it is there, when only torch can evaluate an op on constants."""
        node, builder = pure.node, self.builder
        try:
            handler = complex_handler(builder, node) or HANDLERS.get(node.target)
            if handler is not None:
                return handler(builder, node)
            problem = QcompError("is not supported", code=_NO_HANDLER, hint=hint_for(node.target))
        except QcompError as error:
            problem = error
        if problem.code not in (*_FATAL, "constant-limit", "limit") and has_known_operands(builder, node):
            if not builder.graph.in_memory:
                raise QcompError(problem.message, code=problem.code, hint=problem.hint or _EVALUATED)
            from qcomp.frontend.torch_folding import fold_by_torch

            if (results := fold_by_torch(builder, node)) is not None:
                return results
        raise problem

    def _bind(self, pure: PureNode, results: Result) -> None:
        """Give the results their names in the graph, and compare their types with the export's."""
        node = pure.node
        listed = [results] if isinstance(results, SSAValue | Complex | None) else list(results)
        names = [part for output in node.outputs for part in (output if isinstance(output, tuple) else (output,))]
        if len(listed) < len(names):
            raise QcompError(f"has {len(names)} results, {len(listed)} are known")
        for ref, value in zip(names, listed, strict=False):
            if ref is None:
                continue
            if ref.name in self.builder.values:
                raise QcompError(f"value {ref.name[:80]} is defined twice", code="malformed-pt2")
            if value is None:
                if ref.name in self._users:
                    raise QcompError(f"result {ref.name} is not supported", hint="only the first result is")
                continue
            if isinstance(value, Complex):
                self._bind_complex(pure, ref.name, value)
                continue
            if pure.inplace:
                value = self._as_written(node, value)
            self._compare(ref.name, value)
            if value.name_hint is None and SSAValue.is_valid_name(ref.name):
                value.name_hint = ref.name
            self.builder.values[ref.name] = value

    def _bind_complex(self, pure: PureNode, name: str, value: Complex) -> None:
        meta = self.graph.values.get(name)
        found = sizes_of(tensor_type(value.real))
        if found != sizes_of(tensor_type(value.imag)):
            raise QcompError(f"result {name} has parts of two shapes", code="internal")
        if isinstance(meta, TensorMeta) and self.graph.exact_types:
            expected = tuple(self.builder.size(dim) for dim in meta.shape)
            if expected != found:
                raise QcompError(f"result {name} was inferred as {list(found)}, the export says {list(expected)}")
        if pure.inplace:
            value = self._as_written_complex(pure.node, value)
        self.builder.complexes[name] = value

    def _as_written_complex(self, node: Node, value: Complex) -> Complex:
        target = node.argument("self")
        if not isinstance(target, Ref) or not self.builder.is_complex(target.name):
            raise QcompError("writes complex numbers to a real tensor in place", code="unsupported-op")
        kind = tensor_type(self.builder.complex(target).real)
        if sizes_of(kind) != sizes_of(tensor_type(value.real)):
            raise QcompError("writes in place a result of another shape")
        return Complex(*(self.builder.cast_to(part, kind.element_type) for part in value))

    def _as_written(self, node: Node, value: SSAValue) -> SSAValue:
        """The result of an in-place op has the type of the tensor it was written to."""
        target = tensor_type(self.builder.tensor(node, "self"))
        if sizes_of(target) != sizes_of(tensor_type(value)):
            raise QcompError("writes in place a result of another shape")
        return value if value.type == target else self.builder.cast_to(value, target.element_type)

    def _compare(self, name: str, value: SSAValue) -> None:
        meta = self.graph.values.get(name)
        if isinstance(meta, TensorMeta) and self.graph.exact_types:
            bind_result_sizes(self.builder, meta, value)
            expected = self._type(meta, name)
            found = storage_type(tensor_type(value))
            same = found.element_type == expected.element_type
            if found != expected and not (same and agree(self.builder, sizes_of(found), sizes_of(expected))):
                raise QcompError(f"result {name} was inferred as {found}, the export says {expected}")

    def _stand_in(self, node: Node) -> None:
        """Let later nodes go on with values of the types that the export gives; without types they are skipped."""
        for name in node.results():
            try:
                kind = self._type(self.graph.values.get(name), name)
            except QcompError:
                self._unknown.add(name)
                continue
            if len(self._stand_ins.args) >= MAX_STAND_INS:
                self._unknown.add(name)
                continue
            self.builder.values[name] = self._stand_ins.insert_arg(kind, len(self._stand_ins.args))

    def _where(self, node: Node) -> Location:
        """Quantize and observe inherit from their producer (constants are none), dequantize from its consumer."""
        if not _moves_codes(node):
            return node.location
        source = node.argument("input")
        producer = self._locations.get(source.name) if isinstance(source, Ref) else None
        consumer = self._consumer(node)
        first, second = (consumer, producer) if ".dequantize" in node.target else (producer, consumer)
        return next((place for place in (first, second, node.location) if place and str(place)), node.location)

    def _consumer(self, node: Node | None) -> Location | None:
        """The location of the first op that reads a result of `node`, quantize and dequantize passed over."""
        for _ in range(4):
            node = self._users.get((node.results() or [""])[0]) if node else None
            if node is None or not _moves_codes(node):
                break
        return node.location if node else None

    def module(self) -> ModuleOp:
        """The finished module. Raises QcompError when it does not verify, which is a fault of qcomp."""
        builder, leaves, results = self.builder, list[Tree](), list[SSAValue]()
        for value in self.functional.outputs:
            leaves.append(self._output(value, results))
        extra = self._kept(results)
        builder.place = None
        builder.add_return(ReturnOp(*results))
        _drop_unread(builder.block)
        out_tree = _fill(self.graph.out_tree, leaves)
        in_tree = _fill(self.graph.in_tree, [_input_leaf(entry.value) for entry in self.graph.inputs])
        kinds = [value.type for value in builder.block.args], [value.type for value in results]
        main = FuncOp(
            "main", kinds, Region(builder.block), "public",
            arg_attrs=self._argument_attributes(),
            res_attrs=ArrayAttr([*_names(_result_names(out_tree)), *extra]),
        )  # fmt: skip
        symbols = self._symbols(kinds[0])
        declare_symbols(main, symbols)
        declare_guards(main, independent(symbols, builder.assumptions.guards))
        main.attributes["nn.in_tree"] = StringAttr(in_tree.dump())
        main.attributes["nn.out_tree"] = StringAttr(out_tree.dump())
        module = ModuleOp([main])
        try:
            module.verify()
        except VerifyException as error:
            raise QcompError(f"the imported module does not verify: {str(error)[:300]}", code="internal") from None
        return module

    def stand_in_module(self) -> ModuleOp:
        """A module of the ops that could be imported."""
        block = self.builder.block
        for value in list(self._stand_ins.args):
            value.replace_all_uses_with(block.insert_arg(value.type, len(block.args)))
        ops = [op for op in block.ops if not isinstance(op, ConstantOp)]
        loose = [result for op in ops for result in op.results if not result.uses]
        block.add_op(ReturnOp(*loose))
        kinds = [value.type for value in block.args], [value.type for value in loose]
        main = FuncOp("main", kinds, Region(block), "public")
        declare_symbols(main, self._symbols(kinds[0]))
        module = ModuleOp([main])
        module.verify()
        return module

    def _symbols(self, kinds: Sequence[Attribute]) -> list[Symbol]:
        """The symbols of the inputs in order. A least size of 2 counts as 0: torch neither checks nor needs it."""
        found: list[Symbol] = []
        for name in symbols_of(size for kind in kinds for size in sizes_of(cast(Tensor, kind))):
            found.append(symbol_of(self.graph, name))
        return found

    def _argument_attributes(self) -> ArrayAttr[DictionaryAttr]:
        """Names of the inputs and states, and the states' initial values."""
        found = _names([entry.name for entry in self.graph.inputs if isinstance(entry.value, Ref)])
        for state in self.functional.states:
            constant = self.graph.constants[state.names[0]]
            initial = DataAttr(ConstantData(constant.data.array, element_type(constant.data.dtype)))
            found.append(DictionaryAttr({"nn.name": StringAttr(constant.name), STATE: initial}))
        return ArrayAttr(found)

    def _kept(self, results: list[SSAValue]) -> list[DictionaryAttr]:
        """Add what outlives the call, written inputs and states, to `results`; their attributes."""
        found: list[DictionaryAttr] = []
        names = {entry.value.name: entry.name for entry in self.graph.inputs if isinstance(entry.value, Ref)}
        for name, value in self.functional.written:
            self._output(value, results)
            title = StringAttr(names[name])
            found.append(DictionaryAttr({"nn.name": StringAttr(f"{names[name]}_written"), WRITTEN: title}))
        for state in self.functional.states:
            self._output(state.value, results)
            name = StringAttr(self.graph.constants[state.names[0]].name)
            found.append(DictionaryAttr({"nn.name": name, STATE: name}))
        return found

    def _output(self, value: Argument, results: list[SSAValue]) -> Tree:
        """Add an output of the program; numbers and None become part of the structure."""
        if isinstance(value, Ref) and not self.builder.is_number(value):
            results.append(self.builder.plain(self.builder.of(value)))
            return Tree()
        if isinstance(value, Ref):
            meta = cast(ScalarMeta, self.graph.values[value.name]).value
            return Tree("literal", value=meta.evaluate(self.builder.symbols) if isinstance(meta, Expr) else meta)
        if value is None or isinstance(value, bool | int | float | str):
            return Tree("literal", value=value)
        raise QcompError(f"an output of type {type(value).__name__} is not supported", code="unsupported-output")


def _bindable(graph: Graph) -> frozenset[str]:
    """The symbols that the shapes of the inputs give."""
    metas = [graph.values.get(entry.value.name) for entry in graph.inputs if isinstance(entry.value, Ref)]
    dims = [dim for meta in metas if isinstance(meta, TensorMeta) for dim in meta.shape]
    return frozenset(can_bind([[dim.dim() for dim in dims if isinstance(dim, Expr)]]))


def _moves_codes(node: Node) -> bool:
    """Whether `node` is an observer, quantize or dequantize."""
    return node.target == OBSERVE or node.target.startswith(("quantized_decomposed.", "torchao."))


def _written(target: str) -> str:
    """The in-place spelling of a target."""
    operation, _, overload = target.rpartition(".")
    return f"{operation}_.{overload}"


def _first_users(functional: Functional) -> dict[str, Node]:
    users: dict[str, Node] = {}
    for pure in functional.nodes:
        for name in pure.node.uses():
            users.setdefault(name, pure.node)
    for value in functional.outputs:
        if isinstance(value, Ref):
            users.setdefault(value.name, Node("output", "output", (), ()))
    return users


def _drop_unread(block: Block) -> None:
    """Erase what nobody reads: a transpose absorbed by a linear layer, integers read in their quantized form."""
    for op in reversed(list(block.ops)):
        if op.results and not any(result.uses for result in op.results):
            op.detach()
            op.erase()


def _input_leaf(value: Argument) -> Tree:
    if isinstance(value, Ref):
        return Tree()
    return Tree("literal", value=value if isinstance(value, bool | int | float | str) else None)


def _fill(tree: Tree | None, leaves: list[Tree]) -> Tree:
    """`tree` with literal leaves in place; without one, a single value or a tuple."""
    if tree is None:
        return leaves[0] if len(leaves) == 1 else Tree("tuple", tuple(leaves))
    if tree.count() != len(leaves):
        raise QcompError(
            f"the program has {len(leaves)} values for a structure of {tree.count()}", code="malformed-graph"
        )
    return tree.fill(leaves)


def _result_names(tree: Tree) -> list[str]:
    """``output`` for a single result; dict keys as they are, positions behind ``output``."""
    names: list[str] = []
    for path in tree.paths():
        text = ".".join(str(part) for part in path)
        names.append(text if path and isinstance(path[0], str) else f"output.{text}" if text else "output")
    return names


def _names(names: list[str]) -> list[DictionaryAttr]:
    return [DictionaryAttr({"nn.name": StringAttr(name)}) for name in names]
