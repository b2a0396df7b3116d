# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop-level modules as programs: compiles functions on their first call, and runs main on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects.binding import bind, check_sizes
from qcomp.dialects.dims import argument_names, declared_guards, declared_symbols, sizes_of
from qcomp.dialects.loop import ForOp, IfOp, WhileOp, memref_bytes, tile_shape
from qcomp.dialects.specialize import specialize
from qcomp.dialects.state import STATE, marked
from qcomp.errors import QcompError
from qcomp.interpreter.loop import access, compute, real
from qcomp.interpreter.loop.batching import plan
from qcomp.interpreter.loop.runtime import MAX_ITERATIONS, Array, Bytes, allocate, element_dtype, padded
from qcomp.interpreter.loop.writer import Writer, is_buffer
from qcomp.interpreter.state import State

MemRef = MemRefType[Attribute]
RULES = cast(dict[type[Operation], Callable[[Writer, Any], None]], access.RULES | compute.RULES | real.RULES)


def interpret_loop(
    module: ModuleOp, inputs: Sequence[Array], *, checked: bool = False, state: State | None = None
) -> tuple[Array, ...]:
    """Run main of the loop-level `module` on `inputs`; see `LoopProgram`."""
    return LoopProgram(module, checked=checked).run(inputs, state)


class LoopProgram:
    """A loop-level module, each function compiled once. The module must not change while the program is in use.

    checked: accesses outside a buffer raise QcompError naming the op. batching: iterations of parallel loops run
    together; without it in order, one by one.
    """

    def __init__(self, module: ModuleOp, *, checked: bool = False, batching: bool = True):
        self.module = module
        self.checked = checked
        self.batching = batching
        self._module = module
        self._static: dict[tuple[tuple[str, int], ...], LoopProgram] = {}
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
        self._compiled: dict[str, Callable[..., Any]] = {}

    def run(self, inputs: Sequence[Array], state: State | None = None) -> tuple[Array, ...]:
        """The outputs of main: one array per argument marked ``qcomp.output``, in order.

        inputs: arrays of the shapes and element sizes of the other arguments, but for ``qcomp.arena``; signedness is
        not looked at. Outputs of i8 are int8, uint8 with ``qcomp.unsigned``, bool with ``qcomp.bool``; those of i16
        with ``qcomp.half`` are float16. Raises QcompError for inputs that do not fit and for what the module does
        wrong.
        state: what arguments marked ``nn.state`` start from, and what they hold in the end is left in it; by default
        they start from their initial values.
        """
        main = self._functions.get("main")
        if main is None:
            raise QcompError("the module has no function main", code="no-main")
        symbols = declared_symbols(main)
        if symbols:
            values = bind(symbols, *_shapes(main, inputs))
            check_sizes(declared_guards(main), values)
            return self._at(values).run(inputs, state)
        given = list(inputs)
        states = iter(State(self.module).values() if state is None else state.values())
        places = marked(main.arg_attrs, STATE)
        for place in places:
            given.insert(_input_position(main, place), next(states))
        buffers, outputs = _arguments(main, given)
        self.call("main", *buffers)
        if state is not None:
            kept = [(cast(MemRef, main.body.block.args[place].type), buffers[place]) for place in places]
            old = list(state.values())
            state.update(_result(kind, buffer, array.dtype) for (kind, buffer), array in zip(kept, old, strict=True))
        return tuple(_result(kind, buffer, dtype) for kind, buffer, dtype in outputs)

    def _at(self, sizes: dict[str, int]) -> LoopProgram:
        """The program with these sizes of its symbols."""
        key = tuple(sizes.items())
        if key not in self._static:
            module = self._module.clone()
            specialize(module, sizes)
            self._static[key] = LoopProgram(module, checked=self.checked, batching=self.batching)
        return self._static[key]

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function with buffers (flat uint8 arrays) and scalars."""
        with np.errstate(all="ignore"):
            try:
                return self.function(name)(*arguments)
            except MemoryError:
                raise QcompError(f"{name} needs more memory than there is", code="memory") from None
            except ZeroDivisionError:
                raise QcompError(f"an index of {name} is divided by 0", code="division") from None
            except (IndexError, ValueError, TypeError) as problem:
                if self.checked:
                    raise
                hint = "interpret with checked=True to see which op"
                text = f"{name} accesses memory outside a buffer: {problem}"
                raise QcompError(text, code="out-of-bounds", hint=hint) from problem

    def function(self, name: str) -> Callable[..., Any]:
        """The compiled function `name`."""
        if name not in self._compiled:
            self._compiled[name] = self._compile(name)
        return self._compiled[name]

    def source(self, name: str) -> str:
        """The Python source that the function `name` is compiled to."""
        return self._write(self._functions[name])[0]

    def _compile(self, name: str) -> Callable[..., Any]:
        source, names = self._write(self._functions[name])
        exec(compile(source, f"<loop {name}>", "exec"), names)
        return cast(Callable[..., Any], names["compiled"])

    def _write(self, op: func.FuncOp) -> tuple[str, dict[str, object]]:
        if op.is_declaration:
            raise QcompError.at(op, f"function {op.sym_name.data} has no body", code="no-body")
        w = Writer(self.checked, self.batching, self._callee)
        head = f"def compiled({', '.join(w.bind(argument) for argument in op.body.block.args)}):"
        for argument in op.body.block.args:
            if is_buffer(argument):
                w.view_elements(argument)
        w.block(op.body.block, _write_op)
        last = op.body.block.last_op
        values = [w.read(value) for value in last.operands] if last is not None else []
        w.line(f"return {', '.join(values)}{',' if values else ''}")
        return "\n".join([head, *w.lines]), w.globals

    def _callee(self, op: Operation, name: str) -> Callable[..., Any]:
        if name not in self._functions:
            raise QcompError.at(op, f"no function {name} in the module", code="unknown-symbol")
        return lambda *arguments: self.function(name)(*arguments)


def _shapes(
    main: func.FuncOp, inputs: Sequence[Array]
) -> tuple[list[str], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Names, shapes wanted and shapes given of the inputs of `main`."""
    marks = main.arg_attrs.data if main.arg_attrs is not None else (DictionaryAttr({}),) * len(main.body.block.args)
    rows = [
        (name, sizes_of(cast(MemRef, kind)))
        for name, kind, mark in zip(argument_names(main), main.function_type.inputs, marks, strict=True)
        if "qcomp.output" not in mark.data and "qcomp.arena" not in mark.data
    ]
    if len(rows) != len(inputs):
        raise QcompError.at(main, f"main takes {len(rows)} inputs, got {len(inputs)}", code="input-count")
    return [name for name, _ in rows], [sizes for _, sizes in rows], [np.shape(array) for array in inputs]


def _write_op(w: Writer, op: Operation) -> None:
    if isinstance(op, ForOp):
        _write_loop(w, op)
    elif isinstance(op, IfOp):
        _write_if(w, op)
    elif isinstance(op, WhileOp):
        _write_while(w, op)
    elif isinstance(op, func.CallOp):
        _write_call(w, op)
    elif type(op) in RULES:
        RULES[type(op)](w, op)
    else:
        raise QcompError.at(op, f"{op.name} has no meaning at the loop level", code="unsupported-op")


def _write_if(w: Writer, op: IfOp) -> None:
    for head, region in ((f"if {w.read(op.flag)} != 0:", op.then), ("else:", op.orelse)):
        w.line(head)
        with w.indented(op):
            w.block(region.block, _write_op)
            w.line("pass")


def _write_while(w: Writer, op: WhileOp) -> None:
    w.line(f"for _ in range({MAX_ITERATIONS}):")
    with w.indented(op):
        w.block(op.test.block, _write_op)
        w.line(f"if {w.read(op.flag)} == 0: break")
        w.block(op.body.block, _write_op)
    w.line(f"else: endless({w.constant(op)})")


def _write_call(w: Writer, op: func.CallOp) -> None:
    function = w.constant(w.callee(op, op.callee.string_value()))
    names = [w.bind(value) for value in op.results]
    target = f"{', '.join(names)}, = " if names else ""
    w.line(f"{target}{function}({', '.join(w.read(value) for value in op.operands)})")
    for value in op.results:
        if is_buffer(value):
            w.view_elements(value)


def _write_loop(w: Writer, op: ForOp) -> None:
    planned = plan(op) if w.batching and not w.batch else None
    if planned is not None:
        _write_batch(w, *planned)
        return
    for init, argument, output in zip(op.inits, op.body.block.args[1:], op.outputs, strict=True):
        # The carried value and the result are one variable.
        w.assign(argument, _carried(w, init, argument))
        w.names[output] = w.read(argument)
    w.line(f"for {w.bind(op.induction)} in {_range(w, op)}:")
    with w.indented(op):
        w.block(op.body.block, _write_op)
        arguments = op.body.block.args[1:]
        values = ", ".join(_carried(w, *pair) for pair in zip(op.terminator.values, arguments, strict=True))
        w.line(f"{', '.join(map(w.read, arguments))} = {values}" if values else "pass")


def _carried(w: Writer, value: SSAValue, argument: SSAValue) -> str:
    """`value` as it is carried in `argument`: a batch when any value that comes there is one."""
    if is_buffer(value):
        raise QcompError(f"a loop cannot carry a {value.type}", code="unsupported-op")
    if w.is_batched(argument) and not w.is_batched(value):
        shape = ", ".join(map(str, tile_shape(value.type)))
        return f"spread(np.asarray({w.read(value)}), ({w.batch}.size, {shape}))"
    return w.read(value)


def _write_batch(w: Writer, chain: list[ForOp], values: set[SSAValue], limit: int) -> None:
    ranges = ", ".join(_range(w, loop) for loop in chain)
    variables = ", ".join(w.bind(loop.induction) for loop in chain)
    w.line(f"for {variables}, in batches(({ranges},), {limit}):")
    w.batched, w.batch = values, w.read(chain[0].induction)
    with w.indented(chain[0]):
        w.block(chain[-1].body.block, _write_op)
        w.line("pass")
    w.batched, w.batch = set(), ""


def _range(w: Writer, op: ForOp) -> str:
    lower = w.expressions(op.lower.data, op.lower_operands)
    upper = w.expressions(op.upper.data, op.upper_operands)
    first = lower[0] if len(lower) == 1 else f"max({', '.join(lower)})"
    last = upper[0] if len(upper) == 1 else f"min({', '.join(upper)})"
    return f"range({first}, {last}, {op.step.value.data})"


def _input_position(main: func.FuncOp, place: int) -> int:
    """How many inputs come before argument `place`."""
    marks = main.arg_attrs.data[:place] if main.arg_attrs is not None else ()
    return sum("qcomp.output" not in mark.data and "qcomp.arena" not in mark.data for mark in marks)


def _arguments(main: func.FuncOp, inputs: list[Array]) -> tuple[list[Bytes], list[tuple[MemRef, Bytes, np.dtype[Any]]]]:
    """The buffers to call main with, and (type, buffer, dtype) of its outputs."""
    buffers: list[Bytes] = []
    outputs: list[tuple[MemRef, Bytes, np.dtype[Any]]] = []
    marks = main.arg_attrs.data if main.arg_attrs is not None else (DictionaryAttr({}),) * len(main.body.block.args)
    for argument, mark in zip(main.body.block.args, marks, strict=True):
        if not is_buffer(argument):
            raise QcompError.at(main, f"arguments of main are buffers, got {argument.type}", code="main-signature")
        kind = cast(MemRef, argument.type)
        names = mark.data
        if "qcomp.output" in names or "qcomp.arena" in names:
            buffers.append(allocate(memref_bytes(kind)))
            if "qcomp.output" in names:
                outputs.append((kind, buffers[-1], _output_dtype(kind, names)))
        elif inputs:
            buffers.append(_input(main, kind, inputs.pop(0)))
        else:
            raise QcompError.at(main, "main takes more inputs", code="input-count")
    if inputs:
        raise QcompError.at(main, f"main takes {len(inputs)} inputs fewer", code="input-count")
    return buffers, outputs


def _input(main: func.FuncOp, kind: MemRef, array: Array) -> Bytes:
    array = np.asarray(array)
    dtype = element_dtype(kind.element_type)
    if (
        array.shape != kind.get_shape()
        or array.dtype.itemsize != dtype.itemsize
        or (_is_float(array.dtype) != _is_float(dtype) and array.dtype != np.float16)
    ):
        text = f"an input of {array.dtype}{list(array.shape)} does not fit {kind}"
        raise QcompError.at(main, text, code="input-type")
    return padded(array)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f"


def _output_dtype(kind: MemRef, marks: Mapping[str, Attribute]) -> np.dtype[Any]:
    dtype = element_dtype(kind.element_type)
    if "qcomp.bool" in marks:
        return np.dtype(bool)
    if "qcomp.half" in marks:
        return np.dtype(np.float16)
    return np.dtype(f"u{dtype.itemsize}") if "qcomp.unsigned" in marks else dtype


def _result(kind: MemRef, buffer: Bytes, dtype: np.dtype[Any]) -> Array:
    return buffer[: memref_bytes(kind)].view(dtype).reshape(kind.get_shape()).copy()
