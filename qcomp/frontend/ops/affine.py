# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchao's affine ops: a block size per dimension says which elements share a scale.

Blocks of the whole tensor, along one dimension, or groups within rows become encodings where the parameters are
constants; parameters that are computed (per token) become operands. The reciprocal of the scale is a float32 one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from qcomp.dialects.element import element_type
from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.quant import DequantizeDynamicOp, Encoding, QuantizeDynamicOp, QuantizeOp
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.dynamic import float_input, scale_of, zero_point_of
from qcomp.frontend.ops.quantized import STORAGE, dequantize_codes
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op
from qcomp.frontend.tensor_data import FloatArray
from qcomp.interpreter.reference.narrow_floats import is_narrow, widen
from qcomp.transforms.dynamic_parameters import Parameters, parameters_of

_HALVES = ("float16", "bfloat16")
_SMALLEST = float(np.finfo(np.float32).tiny)


def _blocks(b: Builder, node: Node, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = b.integers(node, "block_size")
    fits = all(size > 0 and dim % size == 0 for size, dim in zip(sizes, shape, strict=False))
    if len(sizes) != len(shape) or not fits:
        raise QcompError(f"blocks of {list(sizes)} do not divide {list(shape)}", code="malformed-graph")
    return sizes


def _range(b: Builder, node: Node, dtype: str | None) -> tuple[int, int]:
    """quant_min and quant_max, by default the whole type. Raises QcompError for types that hold no codes."""
    if dtype not in STORAGE:
        raise QcompError(
            f"{node.target} to {dtype} is not supported", code="unsupported-dtype", hint=f"use {', '.join(STORAGE)}"
        )
    signed, width = STORAGE[dtype]
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    given = [node.argument(name) for name in ("quant_min", "quant_max")]
    return (low if given[0] is None else int(b.number(node, "quant_min"))), (
        high if given[1] is None else int(b.number(node, "quant_max"))
    )


def _encoding(
    b: Builder, node: Node, shape: Sequence[int], blocks: Sequence[int], dtype: str, names: tuple[str, str]
) -> Encoding | None:  # fmt: skip
    """The encoding, when scale and zero point are constants that a quantized type can hold."""
    owners = [None if node.argument(name) is None else b.raw(node, name).owner for name in names]
    if not isinstance(owners[0], ConstantOp) or not (owners[1] is None or isinstance(owners[1], ConstantOp)):
        return None
    low, high = _range(b, node, dtype)
    grid = tuple(size // block for size, block in zip(shape, blocks, strict=True))
    scales = _numbers(owners[0]).reshape(grid)
    zeros = np.zeros(grid) if owners[1] is None else _numbers(owners[1]).reshape(grid)
    if not ((zeros == np.rint(zeros)) & (zeros >= low) & (zeros <= high)).all():
        return None
    signed, width = STORAGE[dtype]
    divided = [axis for axis, count in enumerate(grid) if count > 1]
    whole = zeros.astype(np.int64)
    if not divided:
        return Encoding.make(
            scales.reshape(()), whole.reshape(()), signed=signed, width=width, qmin=low, qmax=high
        )  # fmt: skip
    if len(divided) == 1 and blocks[divided[0]] == 1:
        axis = divided[0]
        return Encoding.make(
            scales.reshape(-1), whole.reshape(-1), signed=signed, width=width, qmin=low, qmax=high, axis=axis
        )
    pairs = tuple((axis, blocks[axis]) for axis in divided)
    return Encoding.make(scales, whole, signed=signed, width=width, qmin=low, qmax=high, blocks=pairs)


def _numbers(op: ConstantOp) -> FloatArray:
    """The values of a constant of any type."""
    element = op.value.data.element
    return (widen(op.array, element) if is_narrow(element) else op.array).astype(np.float64)


def _split(shape: Sequence[int], blocks: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """A shape in which blocks lie along own dimensions, that of its parameters, and the dimensions of blocks."""
    wide, held, axes = list[int](), list[int](), list[int]()
    for size, block in zip(shape, blocks, strict=True):
        parts = [size // block, block] if 1 < block < size else [size]
        wide += parts
        if len(parts) == 2 or block == size:
            axes.append(len(wide) - 1)
        held += [parts[0], 1] if len(parts) == 2 else [1 if block == size else size]
    return wide, held, axes


@op("torchao.quantize_affine.default")
def quantize_affine(b: Builder, node: Node) -> Result:
    """Codes by blocks."""
    value, dtype = float_input(b, node), b.dtype(node, "output_dtype") or ""
    shape = shape_of(value)
    blocks, (low, high) = _blocks(b, node, shape), _range(b, node, dtype)
    encoding = _encoding(b, node, shape, blocks, dtype, ("scale", "zero_point"))
    if encoding is not None:
        return b.add(QuantizeOp(value, encoding, f32))
    wide, held, _ = _split(shape, blocks)
    scale, zero = scale_of(b, node, "scale", held), zero_point_of(b, node, "zero_point", held)
    codes = b.add(QuantizeDynamicOp(reshape_to(b, value, wide), scale, zero, element_type(dtype), low, high))
    return reshape_to(b, codes, shape)


@op("torchao.dequantize_affine.default")
def dequantize_affine(b: Builder, node: Node) -> Result:
    """Reals by blocks."""
    value, dtype = b.raw(node, "input"), b.dtype(node, "input_dtype") or ""
    output = b.dtype(node, "output_dtype") or "float32"
    shape = shape_of(value)
    blocks = _blocks(b, node, shape)
    _range(b, node, dtype)
    encoding = _encoding(b, node, shape, blocks, dtype, ("scale", "zero_point"))
    # Differences of bytes are exact in 16-bit floats, so only the product is rounded.
    if encoding is not None and (output == "float32" or (output in _HALVES and encoding.width == 8)):
        return b.cast(dequantize_codes(b, value, encoding), output)
    if output != "float32":
        raise QcompError(f"{node.target} to {output} is not supported", code="unsupported-dtype", hint="float32 is")
    wide, held, _ = _split(shape, blocks)
    scale, zero = scale_of(b, node, "scale", held), zero_point_of(b, node, "zero_point", held)
    return reshape_to(b, b.add(DequantizeDynamicOp(reshape_to(b, b.plain(value), wide), scale, zero)), shape)


@op("torchao.choose_qparams_affine.default")
def choose_qparams_affine(b: Builder, node: Node) -> Result:
    """Scales and zero points from the range of each block."""
    value, mapping = float_input(b, node), b.text(node, "mapping_type")
    low, high = _range(b, node, b.dtype(node, "target_dtype"))
    eps = _SMALLEST if node.argument("eps") is None else b.real(node, "eps")
    if mapping not in ("SYMMETRIC", "ASYMMETRIC") or b.dtype(node, "scale_dtype") not in (None, "float32"):
        raise QcompError(f"{mapping} in {b.dtype(node, 'scale_dtype')} is not supported", code="unsupported-op")
    symmetric, steps = mapping == "SYMMETRIC", float(high - low)
    middle = int((high + low + 1) / 2)
    rule = Parameters(
        low, high, steps / 2 if symmetric else steps, eps, symmetric, middle if symmetric else None
    )  # fmt: skip
    shape = shape_of(value)
    blocks = _blocks(b, node, shape)
    wide, held, axes = _split(shape, blocks)
    scale, zero = parameters_of(b.add, reshape_to(b, value, wide), rule, axes)
    grid = [size // block for size, block in zip(shape, blocks, strict=True)]
    sizes = grid if b.flag(node, "keepdim") else [size for axis, size in enumerate(held) if axis not in axes]
    dtype = b.dtype(node, "zero_point_dtype") or ("float32" if symmetric else "int32")
    zero = b.expand(reshape_to(b, zero, ()), sizes) if symmetric else reshape_to(b, zero, sizes)
    return [reshape_to(b, scale, sizes), b.cast(zero, dtype)]


def _group(b: Builder, node: Node, value: SSAValue) -> tuple[int, int]:
    shape, size = shape_of(value), b.integer(node, "group_size")
    if len(shape) != 2:
        raise QcompError(f"{node.target} takes a matrix", code="malformed-graph")
    size = shape[1] if size > shape[1] and prod(shape_of(b.tensor(node, "scales"))) == shape[0] else size
    if size < 2 or shape[1] % size:
        raise QcompError(f"groups of {size} do not divide rows of {shape[1]}", code="malformed-graph")
    return 1, size


@op("quantized_decomposed.dequantize_per_channel_group.default")
def dequantize_per_channel_group(b: Builder, node: Node) -> Result:
    """Reals of one scale per group of a row."""
    value, dtype = b.raw(node, "input" if node.argument("input") is not None else "w_int8"), b.dtype(node) or ""
    if b.dtype(node, "output_dtype") not in (None, "float32"):
        raise QcompError(f"{node.target} is supported to float32 only", code="unsupported-dtype")
    encoding = _encoding(b, node, shape_of(value), _group(b, node, value), dtype, ("scales", "zero_points"))
    if encoding is None:
        raise QcompError(f"{node.target} needs constant scales and integer zero points", code="unsupported-op")
    return dequantize_codes(b, value, encoding)


@op("quantized_decomposed.quantize_per_channel_group.default")
def quantize_per_channel_group(b: Builder, node: Node) -> Result:
    """Codes of one scale per group of a row. Zero points, which torch adds before rounding, must be 0."""
    value, dtype = float_input(b, node), b.dtype(node) or ""
    encoding = _encoding(b, node, shape_of(value), _group(b, node, value), dtype, ("scales", "zero_points"))
    if encoding is None or encoding.zero_points.any():
        raise QcompError(f"{node.target} needs constant scales and zero points 0", code="unsupported-op")
    return b.add(QuantizeOp(value, encoding))
