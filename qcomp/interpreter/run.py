# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interpretation of a module at tensor level, op by op on whole arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from qcomp.dialects.binding import bind, check_sizes
from qcomp.dialects.dims import argument_names, declared_symbols, sizes_of
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn.conditions import size_conditions
from qcomp.dialects.nn.control import CondOp, IterateOp, WhileOp, YieldOp, is_control, yielded
from qcomp.dialects.quant import encoding_of, storage_type
from qcomp.dialects.specialize import specialize
from qcomp.dialects.state import states_of
from qcomp.errors import QcompError
from qcomp.interpreter.dispatch import evaluate_op
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.state import State
from qcomp.reading import require_memory
from qcomp.suggestions import did_you_mean

Observer = Callable[[Operation, tuple[Array, ...]], None]
"""Called after each op with the op and its results, as they are stored. Must not modify them."""

MAX_CALLS = 100
MAX_ITERATIONS = 1 << 20
"""Of one loop whose end depends on data."""
V = TypeVar("V")


class Evaluator(Protocol[V]):
    """Evaluates ops on values of its own kind."""

    def load(self, array: Array, kind: TensorType[Attribute]) -> V: ...
    def store(self, value: V, kind: TensorType[Attribute]) -> Array: ...
    def evaluate(self, op: Operation, operands: Sequence[V]) -> V: ...


class NumpyEvaluator:
    """The reference: values are the stored arrays themselves."""

    def load(self, array: Array, kind: TensorType[Attribute]) -> Array:
        return array

    def store(self, value: Array, kind: TensorType[Attribute]) -> Array:
        return value

    def evaluate(self, op: Operation, operands: Sequence[Array]) -> Array:
        return evaluate_op(op, operands)


def interpret(
    module: ModuleOp,
    *inputs: Array,
    evaluator: str = "numpy",
    observer: Observer | None = None,
    function: str = "main",
    state: State | None = None,
) -> tuple[Array, ...]:
    """Run `function` of `module` on `inputs` and return its results as fresh arrays.

    A function with state is given its other inputs only, starts from the initial values, or from `state`, in which the
    new ones are left, and returns its other results. Given all arguments it returns all results.

    inputs and results are stored arrays: codes for quantized types, uint16 bits for bf16. evaluator: "numpy", the
    reference, or "torch", which calls torch's own kernels where an op is in float and the reference where it is not.
    Symbols take the sizes that the inputs have.
    At loop level (memref arguments) the loop interpreter runs and `evaluator` must be "numpy".
    Raises QcompError for inputs that do not fit (code "input") and ops without a meaning (code "unsupported-op").
    """
    functions = _functions(module)
    if function not in functions:
        raise QcompError(f"the module has no function {function}", code="no-function")
    main = functions[function]
    loops = any(isinstance(kind, MemRefType) for kind in main.function_type.inputs)
    states = () if loops else states_of(main)
    if states and (state is not None or len(inputs) != len(main.function_type.inputs)):
        state = State(module) if state is None else state
        results = interpret(
            module, *inputs, *state.values(), evaluator=evaluator, observer=observer, function=function
        )
        state.update(results[len(results) - len(states) :])
        return results[: len(results) - len(states)]
    if loops:
        return _interpret_loop(module, inputs, evaluator, observer, function, state)
    if declared_symbols(main):
        static = _at_sizes_of(module, main, inputs)
        observer = None if observer is None else _observed_as(module, static, observer)
        functions = _functions(static)
    return _interpret_tensors(functions, function, inputs, _Run(functions, _evaluator(evaluator), observer))


def _interpret_tensors(
    functions: dict[str, FuncOp], function: str, inputs: Sequence[Array], run: _Run[Any]
) -> tuple[Array, ...]:
    main = functions[function]
    _check_inputs(main, inputs)
    _check_memory(main)
    return run.main(main, inputs)


def _evaluator(name: str) -> Evaluator[Any]:
    if name == "numpy":
        return NumpyEvaluator()
    if name == "torch":
        from qcomp.interpreter.torch_evaluator import TorchEvaluator

        return TorchEvaluator()
    raise QcompError(f"unknown evaluator {name}", code="option", hint=did_you_mean(name, ("numpy", "torch")))


def _at_sizes_of(module: ModuleOp, main: FuncOp, inputs: Sequence[Array]) -> ModuleOp:
    """A copy of the module with the sizes that `inputs` give its symbols."""
    values = bind(declared_symbols(main), *_shapes(main, inputs))
    check_sizes(size_conditions(module), values)
    static = module.clone()
    specialize(static, values)
    return static


def _observed_as(module: ModuleOp, static: ModuleOp, observer: Observer) -> Observer:
    """`observer`, told of the ops of `module` when those of its copy `static` run."""
    originals = dict(zip(static.walk(), module.walk(), strict=True))
    return lambda op, results: observer(originals[op], results)


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp)}


def _shapes(main: FuncOp, inputs: Sequence[Array]) -> tuple[list[str], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Names, shapes wanted and shapes given of the tensor arguments of `main`."""
    kinds = [cast(TensorType[Attribute], kind) for kind in main.function_type.inputs if isinstance(kind, TensorType)]
    if len(kinds) != len(inputs):
        raise QcompError(f"{main.sym_name.data} takes {len(kinds)} inputs, got {len(inputs)}", code="input")
    return argument_names(main), [sizes_of(kind) for kind in kinds], [np.shape(array) for array in inputs]


def _interpret_loop(
    module: ModuleOp, inputs: Sequence[Array], evaluator: str, observer: Observer | None, function: str,
    state: State | None,
) -> tuple[Array, ...]:  # fmt: skip
    if evaluator != "numpy" or observer is not None or function != "main":
        raise QcompError("a module at loop level runs main with the numpy evaluator, unobserved", code="option")
    from qcomp.interpreter.loop import interpret_loop

    return interpret_loop(module, inputs, state=state)


class _Run(Generic[V]):
    """One interpretation; values are dropped after their last use."""

    def __init__(self, functions: dict[str, FuncOp], evaluator: Evaluator[V], observer: Observer | None):
        self.functions = functions
        self.evaluator = evaluator
        self.observer = observer
        self.depth = 0
        self.last_uses: dict[Block, dict[Operation, list[SSAValue]]] = {}

    def main(self, function: FuncOp, inputs: Sequence[Array]) -> tuple[Array, ...]:
        pairs = zip(inputs, function.function_type.inputs, strict=True)
        arguments = [self.evaluator.load(array, cast(TensorType[Attribute], kind)) for array, kind in pairs]
        results = zip(self.call(function, arguments), function.function_type.outputs, strict=True)
        return tuple(np.array(self._stored(value, kind)) for value, kind in results)

    def call(self, function: FuncOp, arguments: Sequence[V]) -> list[V]:
        if len(function.body.blocks) != 1:
            raise QcompError.at(function, "function must have one block to be interpreted", code="unsupported-op")
        return self.block(function.body.block, dict(zip(function.body.block.args, arguments, strict=True)))

    def block(self, block: Block, values: dict[SSAValue, V]) -> list[V]:
        """Run `block` with its arguments and all it reads from outside in `values`; what it returns or yields."""
        if block not in self.last_uses:
            self.last_uses[block] = _last_uses(block)
        dying = self.last_uses[block]
        for op in block.ops:
            operands = [values[operand] for operand in op.operands]
            results = self.control(op, operands, values) if is_control(op) else []
            for value in dying.get(op, ()):
                values.pop(value, None)
            if isinstance(op, ReturnOp | YieldOp):
                return operands
            results = results or self.evaluate(op, operands)
            if self.observer is not None:
                pairs = zip(results, op.result_types, strict=True)
                self.observer(op, tuple(self._stored(value, kind) for value, kind in pairs))
            values.update((r, v) for r, v in zip(op.results, results, strict=True) if r.first_use is not None)
        place = block.parent_op()
        assert place is not None
        raise QcompError.at(place, "block does not return", code="verify")

    def control(self, op: Operation, operands: list[V], values: dict[SSAValue, V]) -> list[V]:
        """The results of an op with regions."""
        match op:
            case CondOp():
                return self.block((op.then if self._holds(operands[0], op.condition) else op.orelse).block, values)
            case WhileOp():
                return self._while(op, operands, values)
            case _:
                return self._scan(cast(IterateOp, op), operands, values)

    def _holds(self, value: V, flag: SSAValue) -> bool:
        return bool(self._stored(value, flag.type).reshape(-1)[0])

    def _while(self, op: WhileOp, carried: list[V], values: dict[SSAValue, V]) -> list[V]:
        (flag,) = yielded(op.test)
        for _ in range(MAX_ITERATIONS):
            values.update(zip(op.test.block.args, carried, strict=True))
            if not self._holds(self.block(op.test.block, values)[0], flag):
                return carried
            values.update(zip(op.body.block.args, carried, strict=True))
            carried = self.block(op.body.block, values)
        raise QcompError.at(op, f"does not end within {MAX_ITERATIONS} iterations", code="endless")

    def _scan(self, op: IterateOp, operands: list[V], values: dict[SSAValue, V]) -> list[V]:
        count = len(op.inits)
        carried, inputs = operands[:count], operands[count:]
        rows: list[list[Array]] = [[] for _ in op.outputs[count:]]
        kinds = [value.type for value in yielded(op.body)[count:]]
        for place in range(sizes_of(cast(TensorType[Attribute], op.inputs[0].type))[0]):
            parts = [cast(V, cast(Any, value)[place]) for value in inputs]
            values.update(zip(op.body.block.args, [*carried, *parts], strict=True))
            results = self.block(op.body.block, values)
            carried = results[:count]
            for row, value, kind in zip(rows, results[count:], kinds, strict=True):
                row.append(self._stored(value, kind))
        return [*carried, *(self._stacked(row, out.type) for row, out in zip(rows, op.outputs[count:], strict=True))]

    def _stacked(self, rows: list[Array], kind: Attribute) -> V:
        plain = cast(TensorType[Attribute], kind)
        stored = storage_type(plain)
        empty = np.zeros(tuple(stored.get_shape()), numpy_dtype(stored.element_type))
        return self.evaluator.load(np.stack(rows) if rows else empty, plain)

    def evaluate(self, op: Operation, operands: list[V]) -> list[V]:
        if not isinstance(op, CallOp):
            return [self.evaluator.evaluate(op, operands)]
        callee = self.functions.get(op.callee.string_value())
        if callee is None or self.depth >= MAX_CALLS:
            reason = "is not defined" if callee is None else "calls itself too deeply"
            raise QcompError.at(op, f"function {op.callee.string_value()} {reason}", code="no-function")
        self.depth += 1
        results = self.call(callee, operands)
        self.depth -= 1
        return results

    def _stored(self, value: V, kind: Attribute) -> Array:
        return self.evaluator.store(value, cast(TensorType[Attribute], kind))


def evaluate_control(op: Operation, values: dict[SSAValue, Array]) -> list[Array]:
    """The results of an op with regions; all that it and they read is in `values`."""
    return _Run({}, NumpyEvaluator(), None).control(op, [values[operand] for operand in op.operands], dict(values))


def _last_uses(block: Block) -> dict[Operation, list[SSAValue]]:
    """Values of `block` that nothing in it, regions included, reads after an op."""
    last: dict[SSAValue, Operation] = {}
    for op in block.ops:
        for inner in op.walk() if op.regions else (op,):
            last.update(dict.fromkeys(inner.operands, op))
    own = {*block.args, *(result for op in block.ops for result in op.results)}
    dying: dict[Operation, list[SSAValue]] = {}
    for value, op in last.items():
        if value not in own:
            continue
        dying.setdefault(op, []).append(value)
    return dying


def _check_inputs(function: FuncOp, inputs: Sequence[Array]) -> None:
    kinds = list(function.function_type.inputs)
    name = function.sym_name.data
    if len(inputs) != len(kinds):
        raise QcompError(f"{name} takes {len(kinds)} inputs, got {len(inputs)}", code="input")
    for index, (array, kind) in enumerate(zip(inputs, kinds, strict=True)):
        if not isinstance(kind, TensorType):
            raise QcompError(f"input {index} of {name} has type {kind}, only tensors are interpreted", code="input")
        problem = _misfit(array, cast(TensorType[Attribute], kind))
        if problem:
            raise QcompError(f"input {index} of {name}: {problem}", code="input")


def _check_memory(main: FuncOp) -> None:
    """Refuse a program with an op whose operands and results do not go into memory together."""
    known: dict[Attribute, int] = {}
    largest = max((_bytes_around(op, known) for op in main.walk()), default=0)
    require_memory(largest, "the largest op of the program")


def _bytes_around(op: Operation, known: dict[Attribute, int]) -> int:
    total = 0
    for value in (*op.operands, *op.results):
        kind = value.type
        if kind not in known:
            known[kind] = _stored_bytes(kind)
        total += known[kind]
    return total


def _stored_bytes(kind: Attribute) -> int:
    """Bytes of a tensor of static shape; 0 for what this does not know."""
    if not isinstance(kind, TensorType):
        return 0
    stored = storage_type(cast(TensorType[Attribute], kind))
    if not stored.has_static_shape() or math.prod(stored.get_shape()) < 1 << 20:
        return 0
    return math.prod(stored.get_shape()) * numpy_dtype(stored.element_type).itemsize


def _misfit(array: Array, kind: TensorType[Attribute]) -> str | None:
    if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        return f"expected a numpy array, got {type(array).__name__}"
    stored = storage_type(kind)
    dtype, shape = numpy_dtype(stored.element_type), stored.get_shape()
    if array.dtype != dtype:
        return f"expected dtype {dtype}, got {array.dtype}"
    if len(shape) != array.ndim or any(a >= 0 and a != b for a, b in zip(shape, array.shape, strict=True)):
        return f"expected shape {[size if size >= 0 else '?' for size in shape]}, got {list(array.shape)}"
    encoding = encoding_of(kind)
    if encoding is not None and array.size and not encoding.qmin <= array.min() <= array.max() <= encoding.qmax:
        return f"codes outside the storage range <{encoding.qmin}:{encoding.qmax}>"
    return None
