# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embeddings from tables of codes in 8, 4 and 2 bits, which ExecuTorch's quantization of embeddings leaves in a graph.

A row of a table in fewer bits than 8 has several codes in a byte, counted from the least one: in 4 bits the first one
in the upper half, in 2 bits the first one lowest. A scale, and a zero point, holds for a row or for a group of it.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects.nn import ConstantOp, EmbeddingOp
from qcomp.dialects.quant import DequantizeDynamicOp, Encoding
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.dynamic import scale_of, zero_point_of
from qcomp.frontend.ops.quantized import STORAGE, dequantize_codes
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

_SHIFTS = {4: (4, 0), 2: (0, 2, 4, 6)}
"""Where the codes of a byte begin, in order."""


@op("quantized_decomposed.embedding_byte.default", "quantized_decomposed.embedding_byte.dtype")
def embedding_byte(b: Builder, node: Node) -> Result:
    """Rows of a table of bytes."""
    return _embedding(b, node, b.raw(node, "weight"))


@op("quantized_decomposed.embedding_4bit.default", "quantized_decomposed.embedding_4bit.dtype")
def embedding_4bit(b: Builder, node: Node) -> Result:
    """Rows of a table with two codes in a byte."""
    return _embedding(b, node, _unpacked(b, node, 4))


@op("quantized_decomposed.embedding_2bit.default", "quantized_decomposed.embedding_2bit.dtype")
def embedding_2bit(b: Builder, node: Node) -> Result:
    """Rows of a table with four codes in a byte."""
    return _embedding(b, node, _unpacked(b, node, 2))


def _unpacked(b: Builder, node: Node, bits: int) -> SSAValue:
    """The codes of a packed table, each in a byte of its own."""
    owner = b.raw(node, "weight").owner
    if not isinstance(owner, ConstantOp) or owner.array.dtype != np.uint8 or owner.array.ndim != 2:
        raise QcompError(f"{node.target} takes a constant matrix of uint8", code="malformed-graph")
    key = ("unpacked", owner, bits)
    if key not in b.shared:
        held = owner.array.astype(np.uint8)
        parts = [(held >> shift) % (1 << bits) for shift in _SHIFTS[bits]]
        codes = np.stack(parts, axis=-1).astype(np.int8) - np.int8(1 << (bits - 1))
        b.shared[key] = b.constant(codes.reshape(len(held), -1), "int8")
    return cast(SSAValue, b.shared[key])


def _embedding(b: Builder, node: Node, codes: SSAValue) -> Result:
    scales = b.tensor(node, "weight_scales")
    output = b.dtype(node) if node.target.endswith(".dtype") and node.argument("dtype") is not None else None
    if (output or dtype_of(scales)) != "float32":
        raise QcompError(f"{node.target} is supported in float32 only", code="unsupported-dtype")
    rows, size = shape_of(codes)
    groups = shape_of(scales)[1] if len(shape_of(scales)) == 2 else 1
    if not groups or size % groups or shape_of(scales)[0] != rows:
        raise QcompError(
            f"scales of {list(shape_of(scales))} do not fit a table of {[rows, size]}", code="malformed-graph"
        )
    encoding = _encoding(b, node, dtype_of(codes), (rows, groups), size)
    if encoding is not None:
        table = dequantize_codes(b, codes, encoding)
    else:
        wide, held = (rows, groups, size // groups), (rows, groups, 1)
        scale, zero = scale_of(b, node, "weight_scales", held), zero_point_of(b, node, "weight_zero_points", held)
        real = b.add(DequantizeDynamicOp(reshape_to(b, b.plain(codes), wide), scale, zero))
        table = reshape_to(b, real, (rows, size))
    return b.add(EmbeddingOp(table, b.tensor(node, "indices")))


def _encoding(b: Builder, node: Node, dtype: str, grid: tuple[int, int], size: int) -> Encoding | None:
    """The encoding of the table, when its parameters are constants and the zero points such that a type can hold."""
    owner = b.raw(node, "weight_scales").owner
    zero = None if node.argument("weight_zero_points") is None else b.raw(node, "weight_zero_points").owner
    if dtype not in STORAGE or not isinstance(owner, ConstantOp) or not (zero is None or isinstance(zero, ConstantOp)):
        return None
    low, high = b.integer(node, "weight_quant_min"), b.integer(node, "weight_quant_max")
    zeros = np.zeros(grid) if zero is None else zero.array.astype(np.float64).reshape(grid)
    scales = owner.array.astype(np.float64).reshape(grid)
    sound = (zeros == np.rint(zeros)) & (zeros >= low) & (zeros <= high) & np.isfinite(scales) & (scales > 0)
    if not sound.all():
        return None
    signed, width = STORAGE[dtype]
    whole = zeros.astype(np.int64)
    if grid[1] == 1:
        scales, whole = scales.reshape(-1), whole.reshape(-1)
        return Encoding.make(scales, whole, signed=signed, width=width, qmin=low, qmax=high, axis=0)
    blocks = ((0, 1), (1, size // grid[1]))
    return Encoding.make(scales, whole, signed=signed, width=width, qmin=low, qmax=high, blocks=blocks)
