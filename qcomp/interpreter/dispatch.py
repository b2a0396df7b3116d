# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which reference function gives the meaning of which op.

``@meaning(AddOp)`` binds a function ``(op, arrays) -> array`` that works on real values; ``coded=`` adds one for
operands or results that are quantized: it gets stored arrays, returns codes or a float32 result, and None where the
general rule applies:

    an op on quantized tensors is  quantize(op(dequantize(operands)))

Operands of f16 and bf16 are widened to float32 and the result rounded, unless ``raw``. Third parties bind their own
ops in the same way.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn.base import UNKNOWN
from qcomp.dialects.quant import Recipe, encoding_of, storage_type
from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.narrow_floats import narrow, widen
from qcomp.interpreter.reference.quantize import dequantize, quantize

Tensor = TensorType[Attribute]
Arrays = Sequence[Array]
Real = Callable[[Any, Arrays], Array]
Coded = Callable[[Any, Arrays], Array | None]
RealT = TypeVar("RealT", bound=Real)


@dataclass(frozen=True)
class Meaning:
    """How an op is evaluated. raw: arrays are passed and returned as they are stored, codes and bf16 bits included."""

    real: Real
    coded: Coded | None = None
    raw: bool = False


_meanings: dict[type[Operation], Meaning] = {}
_BUILT_IN = (
    "writing",
    "quant", "constant", "elementwise", "contraction", "pooling", "norm", "movement", "resampling", "recurrent",
    "symbolic", "dynamic",
    "functions", "indexing",
)  # fmt: skip


def meaning(*ops: type[Operation], coded: Coded | None = None, raw: bool = False) -> Callable[[RealT], RealT]:
    """Decorator that binds a function to op classes."""

    def bind(function: RealT) -> RealT:
        for op in ops:
            _meanings[op] = Meaning(function, coded, raw)
        return function

    return bind


def meaning_of(op: type[Operation]) -> Meaning | None:
    """The meaning bound to an op class, or None."""
    if op not in _meanings:
        for name in _BUILT_IN:
            importlib.import_module(f"qcomp.interpreter.ops.{name}")
    return _meanings.get(op)


def evaluate_op(op: Operation, operands: Arrays) -> Array:
    """The result of one op of one result on stored arrays: codes for quantized types, uint16 bits for bf16.

    Operands are not modified; the result may be a view of one. Raises QcompError for an op without a meaning and for
    operands that it does not take (code "not-integer": quantized types that have no integer form).
    """
    found = meaning_of(type(op))
    if found is None:
        raise QcompError.at(op, "no reference meaning", code="unsupported-op", hint="bind one with @meaning")
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(_apply(found, op, operands))
    except QcompError as problem:
        if problem.op is not None:
            raise
        raise QcompError.at(op, problem.message, code=problem.code, hint=problem.hint) from None
    except VerifyException as problem:
        raise QcompError.at(op, str(problem), code="shape") from None
    except (TypeError, ValueError):
        if not any(array.dtype == np.bool_ for array in operands):
            raise
        # numpy has no arithmetic on truth values, torch mostly neither.
        raise QcompError.at(
            op, f"{op.name} of truth values has no meaning", code="unsupported-type", hint="cast them to i32 first"
        ) from None
    _check_result(op, result)
    return result


def _apply(found: Meaning, op: Operation, operands: Arrays) -> Array:
    if found.raw:
        return found.real(op, operands)
    kinds = [cast(Tensor, kind) for kind in op.operand_types]
    result = cast(Tensor, op.results[0].type)
    if all(encoding_of(kind) is None for kind in (*kinds, result)):
        wide = [widen(array, kind.element_type) for array, kind in zip(operands, kinds, strict=True)]
        return narrow(found.real(op, wide), result.element_type)
    if found.coded is not None:
        codes = found.coded(op, operands)
        if codes is not None:
            return narrow(codes, result.element_type)
    return store(found.real(op, [real_value(a, k) for a, k in zip(operands, kinds, strict=True)]), op)


def real_value(array: Array, kind: Tensor) -> Array:
    """What a stored array of type `kind` stands for: dequantized, f16 and bf16 as float32."""
    encoding = encoding_of(kind)
    if encoding is None:
        return widen(array, kind.element_type)
    return widen(dequantize(array, encoding), encoding.expressed)


def store(real: Array, op: Operation) -> Array:
    """Real values as the result of `op` is stored: quantized by its encoding and recipe, or rounded to its type."""
    kind = cast(Tensor, op.results[0].type)
    encoding = encoding_of(kind)
    if encoding is None:
        return narrow(real, kind.element_type)
    recipe = cast("Recipe | None", getattr(op, "recipe", None))
    return quantize(narrow(real, encoding.expressed), encoding, recipe)


def _check_result(op: Operation, result: Array) -> None:
    kind = storage_type(cast(Tensor, op.results[0].type))
    expected = numpy_dtype(kind.element_type)
    shape = kind.get_shape()
    fits = len(shape) == result.ndim and all(a in (UNKNOWN, b) for a, b in zip(shape, result.shape, strict=True))
    if not fits or result.dtype != expected:
        raise QcompError.at(op, f"evaluates to {result.dtype}{list(result.shape)}, its type is {kind}", code="internal")
