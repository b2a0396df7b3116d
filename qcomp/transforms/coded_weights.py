# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that stay codes: constants that are dequantized, and moved, on their way to ops that dequantize as they read.

    %d = quant.dequantize %codes : tensor<4x8x!quant.uniform<i8:f32:0, {...}>> -> tensor<4x8xf32>
    %y = nn.linear %x, %d

Folding %d would store four bytes for each byte of %codes. Kernels of linear, matmul, convolution and embedding load the
codes and convert them in registers, to the bits that `quant.dequantize` gives. A cast of bytes to f32 is a dequantize
whose scales are 1; so is one of 16-bit floats that all are bytes, which a model in those casts its codes to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.constant import Array
from qcomp.dialects.nn import (
    CastOp,
    ConstantOp,
    ConvolutionOp,
    ConvTransposeOp,
    EmbeddingOp,
    LinearOp,
    MatmulOp,
    PermuteOp,
    ReshapeOp,
)
from qcomp.dialects.nn.base import ints, shape, tensor
from qcomp.dialects.quant import DequantizeDynamicOp, DequantizeOp, Encoding, encoding_of, parameter_arrays
from qcomp.interpreter.reference.narrow_floats import is_narrow, widen
from qcomp.transforms.repeated import Repeated

_MOVES = (ReshapeOp, PermuteOp)
_FEW = 1024
"""So many values tell most real weights from codes."""
_LARGEST_EXACT = 2**24
"""Integers up to here are exact in float32."""


@dataclass(frozen=True, eq=False)
class CodedWeight:
    """Bytes of codes, and for each of them a float32 scale and a zero point.

    The zero points are integers, or float32 where fractions are among them. It is moved and cut as an array is.
    """

    codes: Array
    scales: Repeated
    zeros: Repeated

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.codes.shape

    @property
    def ndim(self) -> int:
        """The rank."""
        return self.codes.ndim

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Of the reals it stands for."""
        return np.dtype(np.float32)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: object) -> CodedWeight:
        codes = cast(Array, self.codes[place])  # pyright: ignore[reportArgumentType, reportCallIssue]
        return CodedWeight(codes, self.scales[place], self.zeros[place])

    def reshape(self, *sizes: int) -> CodedWeight:
        """With other sizes."""
        codes = self.codes.reshape(sizes)
        return CodedWeight(codes, self.scales.reshape(codes.shape), self.zeros.reshape(codes.shape))

    def transpose(self, *order: int) -> CodedWeight:
        """With its dimensions in another order."""
        return CodedWeight(self.codes.transpose(order), self.scales.transpose(order), self.zeros.transpose(order))

    def reals(self) -> Array:
        """What it stands for: each difference and each product is rounded once."""
        with np.errstate(over="ignore", under="ignore"):
            difference = self.codes.astype(np.float32) - self.zeros.whole().astype(np.float32)
            return difference * self.scales.whole().astype(np.float32, copy=False)


def coded_weight(value: SSAValue) -> CodedWeight | None:
    """The codes of a value that is dequantized from constants, and moved or not; None for any other value."""
    moves: list[Operation] = []
    while isinstance(value.owner, _MOVES):
        moves.append(value.owner)
        value = value.owner.input
    found = _dequantized(value.owner) if isinstance(value.owner, Operation) else None
    for move in reversed(moves):
        if found is None:
            break
        if isinstance(move, PermuteOp):
            found = found.transpose(*ints(move.dims))
        else:
            found = found.reshape(*shape(move.results[0]))
    return found


def _dequantized(op: Operation) -> CodedWeight | None:
    if not is_coded(op):
        return None
    arrays = [cast(ConstantOp, operand.owner).array for operand in op.operands]
    codes = arrays[0]
    if isinstance(op, CastOp):
        codes = codes if codes.dtype.itemsize == 1 else _whole_bytes(cast(ConstantOp, op.input.owner))
        return None if codes is None else _spread(codes, np.ones((), np.float32), np.zeros((), np.int64))
    if isinstance(op, DequantizeOp):
        return _encoded(codes, op.encoding)
    scales, zeros = arrays[1:]
    whole = zeros.dtype.kind in "iu" or bool((zeros == np.rint(zeros)).all())  # pyright: ignore[reportArgumentType, reportCallIssue]
    small = bool((np.abs(zeros.astype(np.float64)) < _LARGEST_EXACT).all())
    return _spread(codes, scales, zeros.astype(np.int64) if whole and small else zeros.astype(np.float32))


def _encoded(codes: Array, encoding: Encoding) -> CodedWeight:
    scales, zeros = encoding.scales.astype(np.float32), encoding.zero_points.astype("i2")
    if not encoding.blocks:
        return _spread(codes, *parameter_arrays(replace(encoding, scales=scales, zero_points=zeros), codes.shape))
    sizes = dict(encoding.blocks)
    repeats = [sizes.get(axis, 1) for axis in range(codes.ndim)]
    whole = [size // times for size, times in zip(codes.shape, repeats, strict=True)]
    grid = [size if axis in sizes else 1 for axis, size in enumerate(whole)]
    both = (np.broadcast_to(values.reshape(grid), whole) for values in (scales, zeros))
    return CodedWeight(codes, *(Repeated.of(values, repeats) for values in both))


def _spread(codes: Array, scales: Array, zeros: Array) -> CodedWeight:
    return CodedWeight(codes, *(Repeated.of(np.broadcast_to(each, codes.shape)) for each in (scales, zeros)))


def is_coded(op: Operation) -> bool:
    """Whether `op` dequantizes a constant of bytes to float32 by parameters that are constants too."""
    if not isinstance(op, DequantizeOp | DequantizeDynamicOp | CastOp):
        return False
    held = [operand.owner for operand in op.operands]
    if not all(isinstance(owner, ConstantOp) for owner in held) or tensor(op.results[0]).element_type != f32:
        return False
    codes = cast(ConstantOp, held[0])
    plain = codes.array.dtype.name in ("int8", "uint8")
    return plain or (isinstance(op, CastOp) and _whole_bytes(codes) is not None)


def _whole_bytes(op: ConstantOp) -> Array | None:
    """The values of a constant of 16-bit floats as int8, when all are such; -0.0 is none."""
    element = op.value.data.element
    if not is_narrow(element) or not op.array.size:
        return None
    codes: Array | None = None
    for part in (op.array.reshape(-1)[:_FEW], op.array):
        reals = widen(part, element)
        with np.errstate(invalid="ignore"):
            codes = reals.astype(np.int8)
        if codes.astype(np.float32).tobytes() != reals.tobytes():
            return None
    return codes


def stays_coded(op: Operation) -> bool:
    """Whether `op` is coded and all that read its result, as it is or moved, dequantize weights as they read."""
    return is_coded(op) and _is_read_coded(op.results[0])


def _is_read_coded(value: SSAValue) -> bool:
    uses = list(value.uses)
    return bool(uses) and all(
        _is_read_coded(use.operation.results[0]) if isinstance(use.operation, _MOVES) else _reads(use.operation, value)
        for use in uses
    )


def _reads(op: Operation, value: SSAValue) -> bool:
    """Whether `op` takes `value` for a weight, and for nothing else."""
    match op:
        case LinearOp() | ConvolutionOp() | ConvTransposeOp() | EmbeddingOp():
            place = op.weight
        case MatmulOp():
            place = op.rhs
        case _:
            return False
    others = [operand for operand in op.operands if operand is not place]
    plain = all(encoding_of(held.type) is None for held in (*op.operands, *op.results))
    return place is value and value not in others and plain
