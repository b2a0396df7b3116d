# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of one layer on quantized or float tensors, with data that exposes mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding, UniformQuantizedType

Build = Callable[["Program"], Sequence[SSAValue]]


class Program:
    """Collects ops of main; `input` adds an argument."""

    def __init__(self, seed: int = 0):
        self.rng = np.random.default_rng(seed)
        self.block = Block()
        self.arrays: list[np.ndarray] = []

    def add(self, op: Operation) -> SSAValue:
        """Append `op`; its result."""
        self.block.add_op(op)
        return op.results[0]

    def input(self, shape: Sequence[int], encoding: Encoding | None = None) -> SSAValue:
        """An argument with random contents, extreme codes included."""
        if encoding is None:
            array = self.rng.standard_normal(shape).astype(np.float32)
        else:
            array = self.rng.integers(encoding.qmin, encoding.qmax + 1, shape).astype(encoding.dtype)
        self.arrays.append(array)
        return self.block.insert_arg(kind(shape, encoding), len(self.block.args))

    def given(self, array: np.ndarray, element: Attribute) -> SSAValue:
        """An argument of plain elements with these contents."""
        self.arrays.append(array)
        return self.block.insert_arg(TensorType(element, array.shape), len(self.block.args))

    def codes(self, shape: Sequence[int], encoding: Encoding) -> SSAValue:
        """A constant of random codes."""
        array = self.rng.integers(encoding.qmin, encoding.qmax + 1, shape).astype(encoding.dtype)
        return self.add(nn.ConstantOp(array, kind(shape, encoding)))

    def reals(self, shape: Sequence[int], scale: float = 1.0) -> SSAValue:
        """A constant of random float32."""
        return self.add(nn.ConstantOp((self.rng.standard_normal(shape) * scale).astype(np.float32)))

    def weight_encoding(self, channels: int, scale: float = 0.01) -> Encoding:
        """Symmetric int8 with a different scale per channel."""
        return Encoding.make(scale * (0.3 + self.rng.random(channels)), axis=0, qmin=-127)

    def module(self, *results: SSAValue) -> ModuleOp:
        """main returning `results`."""
        self.block.add_op(ReturnOp(*results))
        kinds = ([arg.type for arg in self.block.args], [value.type for value in results])
        return ModuleOp([FuncOp("main", kinds, Region(self.block))])


def kind(shape: Sequence[int], encoding: Encoding | None = None) -> TensorType[Attribute]:
    """The tensor type, quantized when there is an encoding."""
    return TensorType(f32 if encoding is None else UniformQuantizedType(encoding), shape)


def activation(scale: float, zero_point: int, signed: bool = False) -> Encoding:
    """A per-tensor 8-bit encoding."""
    return Encoding.make(scale, zero_point, signed=signed)


def contraction_scale(inner: int, source: float, weight: float = 0.01) -> float:
    """A result scale that uses the range of codes for random data."""
    return float(source * weight * 0.8 * 74 * 74 * np.sqrt(inner) / 60)
