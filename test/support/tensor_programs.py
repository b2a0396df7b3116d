# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs at tensor level, built by a function from SSA values to SSA values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding, quantized_type

Add = Callable[[Operation], SSAValue]


def program(build: Callable[..., SSAValue | Sequence[SSAValue]], *kinds: TensorType[Attribute]) -> ModuleOp:
    """The verified module whose main computes `build(add, *arguments)`; `add` inserts an op and gives its result."""
    block = Block(arg_types=kinds)
    builder = Builder(InsertPoint.at_end(block))
    built = build(lambda op: builder.insert(op).results[0], *block.args)
    results = [built] if isinstance(built, SSAValue) else list(built)
    builder.insert(ReturnOp(*results))
    module = ModuleOp([FuncOp("main", (kinds, [value.type for value in results]), Region(block))])
    module.verify()
    return module


def floats(*shape: int, element: Attribute = f32) -> TensorType[Attribute]:
    """A float tensor type."""
    return TensorType(element, shape)


def quantized(encoding: Encoding, *shape: int) -> TensorType[Attribute]:
    """A quantized tensor type."""
    return quantized_type(TensorType(encoding.expressed, shape), encoding)


def constant(array: np.ndarray[Any, Any], encoding: Encoding | None = None) -> nn.ConstantOp:
    """A constant; with an encoding, `array` holds the codes."""
    return nn.ConstantOp(array, None if encoding is None else quantized(encoding, *array.shape))


def random_codes(rng: np.random.Generator, encoding: Encoding, *shape: int) -> np.ndarray[Any, Any]:
    """Codes over the whole range of `encoding`, its ends included."""
    codes = rng.integers(encoding.qmin, encoding.qmax, shape, endpoint=True)
    if codes.size > 2:
        codes.reshape(-1)[rng.permutation(codes.size)[:2]] = encoding.qmin, encoding.qmax
    return codes.astype(encoding.dtype)


def same_bits(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Equal dtype, shape and bits; any NaN equals any NaN."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    left, right = np.ascontiguousarray(left).reshape(-1), np.ascontiguousarray(right).reshape(-1)
    equal = left.view(f"u{left.itemsize}") == right.view(f"u{left.itemsize}")
    return bool((equal | ((left != left) & (right != right))).all())
