# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn's unary and binary ops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.element import is_float, numpy_dtype
from qcomp.dialects.nn.base import Tensor, shape, tensor
from qcomp.dialects.quant import Encoding, encoding_of, expressed_type, storage_range
from qcomp.interpreter.dispatch import Arrays, meaning, meaning_of, real_value, store
from qcomp.interpreter.reference import elementwise, transcendental
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.elementwise import bitcast, clamp
from qcomp.interpreter.reference.narrow_floats import narrow, widen

_UNARY: dict[type[nn.UnaryOp], Callable[[Array], Array]] = {
    nn.ReluOp: elementwise.relu,
    nn.HardswishOp: elementwise.hardswish,
    nn.HardsigmoidOp: elementwise.hardsigmoid,
    nn.NegOp: elementwise.neg,
    nn.AbsOp: elementwise.absolute,
    nn.SqrtOp: elementwise.sqrt,
    nn.RsqrtOp: elementwise.rsqrt,
    nn.SigmoidOp: transcendental.sigmoid,
    nn.TanhOp: transcendental.tanh,
    nn.SiluOp: transcendental.silu,
    nn.ExpOp: transcendental.exp,
    nn.ErfOp: transcendental.erf,
}
_BINARY: dict[type[nn.BinaryOp], Callable[[Array, Array], Array]] = {
    nn.AddOp: elementwise.add,
    nn.SubOp: elementwise.subtract,
    nn.MulOp: elementwise.multiply,
    nn.DivOp: elementwise.divide,
    nn.MaximumOp: elementwise.maximum,
    nn.MinimumOp: elementwise.minimum,
}


def code_table(op: nn.UnaryOp) -> Array | None:
    """The result's code for every storage value of the operand, smallest first; None unless that is a finite table.

    A table exists when operand and result are quantized per tensor and the operand has at most 8 bits.
    """
    source, target = encoding_of(op.input.type), encoding_of(op.result.type)
    if source is None or target is None or not (source.per_tensor and target.per_tensor) or source.dtype.itemsize > 1:
        return None
    found = meaning_of(type(op))
    assert found is not None
    with np.errstate(all="ignore"):
        return store(found.real(op, [_every_real(source, tensor(op.input))]), op)


def code_table_by_constant(op: nn.BinaryOp | nn.CompareOp) -> tuple[SSAValue, Array] | None:
    """The operand that holds codes and a table as above, for an op whose other operand is a constant of one element.

    The result of arithmetic holds codes of 8 bits too.
    """
    target = encoding_of(op.result.type)
    if not isinstance(op, nn.CompareOp) and (target is None or not target.per_tensor or target.dtype.itemsize > 1):
        return None
    for place, (value, other) in enumerate(((op.lhs, op.rhs), (op.rhs, op.lhs))):
        source, held = encoding_of(value.type), other.owner
        if source is None or not source.per_tensor or source.dtype.itemsize > 1 or shape(value) != shape(op.result):
            continue
        if not isinstance(held, nn.ConstantOp) or held.array.size != 1:
            continue
        found = meaning_of(type(op))
        assert found is not None
        operands = [_every_real(source, tensor(value)), real_value(held.array.reshape(()), tensor(other))]
        with np.errstate(all="ignore"):
            return value, store(found.real(op, operands if place == 0 else operands[::-1]), op)
    return None


def _every_real(encoding: Encoding, kind: Tensor) -> Array:
    """What the storage values of 8 bits stand for, smallest first."""
    low, _ = storage_range(encoding.signed, 8)
    return real_value(np.arange(low, low + 256).astype(encoding.dtype), kind)


def coded_unary(op: nn.UnaryOp, arrays: Arrays) -> Array | None:
    """Per-tensor codes of 8 bits by table; None for others."""
    table = code_table(op)
    if table is None:
        return None
    # Two's complement: flipping the top bit of a signed code gives its index.
    index = arrays[0].view(np.uint8) ^ np.uint8(0x80 if arrays[0].dtype.kind == "i" else 0)
    return np.take(table, index)


@meaning(*_UNARY, coded=coded_unary)
def _unary(op: nn.UnaryOp, arrays: Arrays) -> Array:
    return _UNARY[type(op)](arrays[0])


@meaning(*_BINARY)
def _binary(op: nn.BinaryOp, arrays: Arrays) -> Array:
    result = _BINARY[type(op)](arrays[0], arrays[1])
    if op.activation is None:
        return result
    # Unfused, the op's result is rounded to its type before the activation sees it.
    element = expressed_type(tensor(op.result)).element_type
    return clamp(widen(narrow(result, element), element), *op.activation.bounds)


@meaning(nn.ClampOp, coded=coded_unary)
def _clamp(op: nn.ClampOp, arrays: Arrays) -> Array:
    return clamp(arrays[0], *op.bounds)


@meaning(nn.LeakyReluOp, coded=coded_unary)
def _leaky_relu(op: nn.LeakyReluOp, arrays: Arrays) -> Array:
    return elementwise.leaky_relu(arrays[0], op.negative_slope.value.data)


@meaning(nn.GeluOp, coded=coded_unary)
def _gelu(op: nn.GeluOp, arrays: Arrays) -> Array:
    return transcendental.gelu(arrays[0], op.approximate.data)


@meaning(nn.BitcastOp, raw=True)
def _bitcast(op: nn.BitcastOp, arrays: Arrays) -> Array:
    return bitcast(arrays[0], numpy_dtype(tensor(op.result).element_type))


@meaning(nn.CastOp, raw=True)
def _cast(op: nn.CastOp, arrays: Arrays) -> Array:
    source, target = tensor(op.input).element_type, tensor(op.result).element_type
    wide = widen(arrays[0], source)
    if is_float(target) and numpy_dtype(target).itemsize < 4:
        return narrow(elementwise.cast_to(wide, np.dtype(np.float32)), target)
    return elementwise.cast_to(wide, numpy_dtype(target))
