# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one op each, made from the examples in test/filecheck/dialects, where every op has one: with all sizes
symbolic, with any element type, and with the ops around it that rewrites look for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32, i1
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects import nn, quant
from qcomp.dialects.binding import Symbol
from qcomp.dialects.constant import DataAttr
from qcomp.dialects.dim import is_symbolic, substitute, symbol, symbols_of
from qcomp.dialects.dims import declare_symbols, sizes_of, tensor_of
from qcomp.dialects.element import is_float, numpy_dtype
from qcomp.dialects.location import location
from qcomp.dialects.nn.base import UNKNOWN, NNOp, RoleOp, shape, tensor
from qcomp.dialects.quant import Encoding, encoding_of, storage_type
from qcomp.dialects.text import parse
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import is_narrow, narrow

Tensor = TensorType[Attribute]
FOLDER = Path(__file__).resolve().parents[1] / "filecheck" / "dialects"
_PARAMETERS = ("weight", "bias", "running_mean", "running_var", "projection", "indices", "weights")
"""Operands that a layer holds as constants, by the names they have in op classes."""
_LAYERS = (RoleOp, nn.ResampleOp)


@dataclass(frozen=True)
class Example:
    """One op: where it stands, its operand and result types, and which operands a layer holds as constants."""

    name: str
    op: Operation
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    parameters: frozenset[int]

    def build(self, operands: Sequence[SSAValue]) -> Operation:
        """The op on `operands`."""
        return type(self.op).create(
            operands=operands, result_types=self.results, properties=dict(self.op.properties),
            attributes=dict(self.op.attributes),
        )  # fmt: skip

    def symbols(self) -> list[Symbol]:
        """The symbols of its sizes: s3 stands for the size 3."""
        sizes = {size for kind in (*self.operands, *self.results) for size in sizes_of(kind) if is_symbolic(size)}
        names = symbols_of(sizes)
        return [Symbol(name, 1, 64) for name in sorted(names, key=lambda name: int(name[1:]))]


Neighbour = Callable[[SSAValue], "Sequence[Operation] | None"]
"""The ops that go with a value, () for none; None when they do not go with its type."""
Form = tuple[Neighbour, Neighbour]


@cache
def examples() -> list[Example]:
    """All ops of nn and quant that are in the examples and have tensors only: no control flow, no constants."""
    found: list[Example] = []
    for path in sorted(p for name in ("nn", "quant") for p in (FOLDER / name).glob("ops*.mlir")):
        for op in parse(path).walk():
            tensors = all(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))
            known = all(UNKNOWN not in shape(value) for value in (*op.operands, *op.results) if tensors)
            if not isinstance(op, NNOp | quant.QuantizeOp | quant.DequantizeOp) and op.name.split(".")[0] != "quant":
                continue
            if op.operands and op.results and tensors and known and not op.regions and not _symbolic(op):
                operands = tuple(tensor(value) for value in op.operands)
                held = [getattr(op, role, None) for role in _PARAMETERS] if isinstance(op, _LAYERS) else []
                places = frozenset(at for at, value in enumerate(op.operands) if value in held)
                name = f"{op.name}:{op.results[0].name_hint}@{path.name}"
                found.append(Example(name, op, operands, tuple(tensor(value) for value in op.results), places))
    return found


def _symbolic(op: Operation) -> bool:
    return any(is_symbolic(size) for value in (*op.operands, *op.results) for size in shape(value))


def with_element(example: Example, element: Attribute) -> Example | None:
    """The example on tensors of `element` in place of plain floats; None when no such op is lawful."""
    if any(encoding_of(kind) is not None for kind in (*example.operands, *example.results)):
        return None
    change: Callable[[Tensor], Tensor] = lambda kind: (  # noqa: E731
        tensor_of(element, sizes_of(kind)) if kind.element_type == f32 else kind
    )
    made = replace(
        example, operands=tuple(map(change, example.operands)), results=tuple(map(change, example.results)),
        name=f"{example.name}:{element}",
    )  # fmt: skip
    if made.operands == example.operands and element != f32:
        return None
    op = made.build([_value(kind) for kind in made.operands])
    if isinstance(op, NNOp) and not isinstance(op, nn.CastOp):
        made = replace(made, results=(tensor_of(op.infer_element(), shape(op.results[0])),))
    return made if _lawful(made) else None


def with_symbols(example: Example, parameters: bool) -> Example:
    """The example with all its sizes symbolic that can be. parameters: those of its parameters, too.

    Sizes above 1 that are equal are one symbol; one that the op needs as a number stays.
    """
    numbers = sorted({size for kind in example.operands for size in sizes_of(kind) if size > 1})
    for number in numbers:
        changed = _substituted(example, number, parameters)
        if changed is not None:
            example = changed
    return replace(example, name=f"{example.name}:symbolic{'-parameters' * parameters}")


def _substituted(example: Example, number: int, parameters: bool) -> Example | None:
    named = symbol(f"s{number}")

    def change(kind: Tensor) -> Tensor:
        encoding = encoding_of(kind)
        axis = None if encoding is None else encoding.axis
        sizes = [named if size == number and at != axis else size for at, size in enumerate(sizes_of(kind))]
        return tensor_of(kind.element_type, sizes)

    fixed = frozenset[int]() if parameters else example.parameters
    operands = tuple(kind if at in fixed else change(kind) for at, kind in enumerate(example.operands))
    moved = replace(example, operands=operands)
    op = moved.build([_value(kind) for kind in operands])
    try:
        results = [_result(op, kind, change) for kind in example.results]
    except (VerifyException, QcompError):
        return None
    if isinstance(op, nn.WeightedOp) and op.residual is not None:
        # Its sizes are those of the result, which may be computed.
        operands = (*operands[:-1], tensor_of(operands[-1].element_type, sizes_of(results[0])))
    moved = replace(moved, operands=operands, results=tuple(results))
    return moved if _lawful(moved) else None


def _result(op: Operation, kind: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    if isinstance(op, nn.ReshapeOp):
        rows, *rest = shape(op.input)
        return tensor_of(kind.element_type, (rows * rest[0], *rest[1:])) if len(rest) > 1 else change(kind)
    if isinstance(op, NNOp) and not isinstance(op, nn.ExpandOp):
        return tensor_of(kind.element_type, op.infer_shape())
    return change(kind)


def _value(kind: Tensor) -> SSAValue:
    return Block(arg_types=[kind]).args[0]


def _lawful(example: Example) -> bool:
    try:
        op = example.build([_value(kind) for kind in example.operands])
        op.verify()
    except (VerifyException, QcompError, ValueError):
        return False
    return True


def program(items: Sequence[Example], constants: bool, forms: Sequence[Form] | None = None) -> ModuleOp:
    """A module that computes all `items`, each with the ops of each of `forms` (default: alone).

    constants: parameters of fixed sizes are constants.
    """
    block, results = Block(), list[SSAValue]()
    for item in items:
        values: list[SSAValue] = []
        for at, kind in enumerate(item.operands):
            if constants and at in item.parameters and not any(map(is_symbolic, sizes_of(kind))):
                data = DataAttr.of(sample(kind, len(results) + at), storage_type(kind).element_type)
                block.add_op(made := nn.ConstantOp(data, kind))
                values.append(made.result)
            else:
                values.append(block.insert_arg(kind, len(block.args)))
        for form in forms or [(_none, _none)]:
            results += _form(block, item, values, *form)
    kinds = [cast(Tensor, value.type) for value in results]
    block.add_op(ReturnOp(*results))
    main = FuncOp("main", FunctionType.from_lists([arg.type for arg in block.args], kinds), Region(block))
    main.location = location("main", "ops.mlir", 1)
    symbols = {one.name: one for item in items for one in item.symbols()}
    declare_symbols(main, [symbols[name] for name in sorted(symbols)])
    module = ModuleOp([main])
    module.verify()
    return module


def arguments(module: ModuleOp) -> list[np.ndarray[Any, Any]]:
    """An array for each argument of main."""
    main = module.body.block.first_op
    assert isinstance(main, FuncOp)
    return [np.asarray(sample(cast(Tensor, kind), seed)) for seed, kind in enumerate(main.function_type.inputs)]


def _form(block: Block, item: Example, values: list[SSAValue], before: Neighbour, after: Neighbour) -> list[SSAValue]:
    head = before(values[0])
    if head is None or (head and head[-1].results[0].type != values[0].type):
        return []
    op = item.build([head[-1].results[0] if head else values[0], *values[1:]])
    tail = after(op.results[0])
    if tail is None:
        return []
    for step in (*head, op, *tail):
        step.location = location(item.name, "ops.mlir", 1)
    block.add_ops([*head, op, *tail])
    return [tail[-1].results[0]] if tail else list(op.results)


def _none(value: SSAValue) -> Sequence[Operation] | None:
    return ()


def _clamped(value: SSAValue) -> Sequence[Operation] | None:
    first = nn.ReluOp(value)
    return [first, nn.ClampOp.of(first.result, -1.0, 6.0)]


def _moved(value: SSAValue) -> Sequence[Operation] | None:
    """Turned and flattened there and back, in each of the ways that rewrites take apart."""
    encoding, sizes = encoding_of(value.type), shape(value)
    if not sizes or (encoding is not None and not encoding.per_tensor):
        return None
    order = tuple(range(len(sizes)))[::-1]
    turn = nn.PermuteOp(value, order)
    back = nn.PermuteOp(turn.result, order)
    flat = nn.ReshapeOp(back.result, (prod(sizes),))
    return [turn, back, flat, nn.ReshapeOp(flat.result, sizes)]


def _padded(value: SSAValue) -> Sequence[Operation] | None:
    """Enlarged, and cut to its size again."""
    sizes = shape(value)
    if not sizes or encoding_of(value.type) is not None:
        return None
    ends = (0,) * (len(sizes) - 1)
    wide = nn.PadOp(value, (*ends, 1), (*ends, 1), 0.0)
    return [wide, nn.SliceOp(wide.result, len(sizes) - 1, 1, sizes[-1] + 1)]


def _affine(value: SSAValue) -> Sequence[Operation] | None:
    """Times a number, plus one number for each place along the last dimension."""
    element = tensor(value).element_type
    if encoding_of(value.type) is not None or element == i1:
        return None
    factor = _number(3, (), element)
    scaled = nn.MulOp(value, factor.result)
    addend = _number(2, (1,), element)
    total = nn.AddOp(scaled.result, addend.result, tensor(value) if shape(value) else None)
    return [factor, scaled, addend, total]


def _coded(value: SSAValue) -> Sequence[Operation] | None:
    if tensor(value).element_type != f32 or encoding_of(value.type) is not None:
        return None
    codes = quant.QuantizeOp(value, Encoding.make(0.0235, 114, signed=False))
    return [codes, quant.DequantizeOp(codes.result)]


_NEIGHBOURS: tuple[Neighbour, ...] = (_none, _clamped, _moved, _padded, _affine, _coded)
ALL_FORMS: list[Form] = [(before, after) for before in _NEIGHBOURS for after in _NEIGHBOURS]
"""What stands before and after the op: everything with everything."""
FEW_FORMS: list[Form] = [(_none, _affine), (_coded, _clamped), (_moved, _coded), (_padded, _moved)]
"""What rewrites look for in front of the op and behind it, each once."""


def _number(value: int, sizes: tuple[int, ...], element: Attribute) -> nn.ConstantOp:
    return nn.ConstantOp(DataAttr.of(_stored(np.full(sizes, value, np.float64), element), element))


def _stored(values: np.ndarray[Any, Any], element: Attribute) -> np.ndarray[Any, Any]:
    return narrow(values.astype(np.float32), element) if is_narrow(element) else values.astype(numpy_dtype(element))


def sample(kind: Tensor, seed: int) -> np.ndarray[Any, Any]:
    """An array of that type: floats around 0, codes and integers over their range, 0 and 1 for 64 bits, which are
    indices in the examples. Symbols have the sizes that they stand for."""
    rng = np.random.default_rng(seed)
    sizes = [substitute(size, {name: int(name[1:]) for name in symbols_of([size])}) for size in sizes_of(kind)]
    encoding = encoding_of(kind)
    if encoding is not None:
        return rng.integers(encoding.qmin, encoding.qmax, sizes, endpoint=True).astype(encoding.dtype)
    element = kind.element_type
    if is_float(element):
        return _stored(np.asarray(rng.standard_normal(sizes) * 2), element)
    held = numpy_dtype(element)
    if held == np.bool_ or held.itemsize == 8:
        return rng.integers(0, 2, sizes).astype(held)
    limits, most = np.iinfo(held.name), 2**20  # 32 bits are zero points, too.
    return rng.integers(max(limits.min, -most), min(limits.max, most), sizes, held.type, endpoint=True)
