# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Observers, quantize and dequantize.

The recipe of the reciprocal (`qcomp.dialects.quant.default_recipe`) follows torch: float64 for per-tensor ops, whose
scales are Python numbers, float32 for per-channel ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import SSAValue

from qcomp.dialects.element import element_type
from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.quant import (
    CastStorageOp,
    DequantizeOp,
    Encoding,
    ObserveOp,
    QuantizeOp,
    encoding_of,
    quantized_type,
    storage_range,
    storage_type,
)
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Number, Result, axis_of, dtype_of, element_of, shape_of, tensor_type
from qcomp.frontend.graph import OBSERVE, Node
from qcomp.frontend.ops import dynamic
from qcomp.frontend.ops.table import op
from qcomp.frontend.tensor_data import FloatArray, IntArray

STORAGE = {"int8": (True, 8), "uint8": (False, 8), "int16": (True, 16), "uint16": (False, 16), "int32": (True, 32)}


def _encode(
    node: Node, dtype: str | None, low: int, high: int, scales: FloatArray, zeros: IntArray, expressed: str,
    axis: int | None = None,
) -> Encoding:  # fmt: skip
    if dtype not in STORAGE:
        raise QcompError(
            f"{node.target} to {dtype} is not supported",
            code="unsupported-dtype",
            hint=f"supported: {', '.join(STORAGE)}",
        )
    signed, width = STORAGE[dtype]
    return Encoding.make(
        scales, zeros, signed=signed, width=width, qmin=low, qmax=high, axis=axis, expressed=element_type(expressed)
    )


@op(OBSERVE)
def observe(b: Builder, node: Node) -> Result:
    """The value, annotated. One object is one encoding, wherever it is called."""
    value = b.tensor(node, "input")
    observer = b.graph.observers[b.text(node, "observer")]
    if observer.dynamic:
        return dynamic.observe(b, node, observer)
    if observer.dtype in ("float16", "bfloat16"):
        return b.add(ObserveOp(value, cast("Float16Type | BFloat16Type", element_type(observer.dtype))))
    axis = None if observer.axis is None else axis_of(observer.axis, len(shape_of(value)))
    encoding = _encode(
        node, observer.dtype, observer.quant_min, observer.quant_max, observer.scales, observer.zero_points,
        dtype_of(value), axis,
    )  # fmt: skip
    key = ("encoding", observer.group, axis, dtype_of(value))
    return b.add(ObserveOp(value, cast(Encoding, b.shared.setdefault(key, encoding))))


def _per_tensor(b: Builder, node: Node, expressed: str) -> Encoding:
    scale, zero = _parameter(b, node, "scale"), _parameter(b, node, "zero_point")
    low, high = b.integer(node, "quant_min"), b.integer(node, "quant_max")
    return _encode(node, b.dtype(node), low, high, np.array(float(scale)), np.array(int(zero)), expressed)


def _parameter(b: Builder, node: Node, name: str) -> Number:
    """A scale or zero point: a literal, or a constant tensor of one element (the ``.tensor`` forms)."""
    if b.is_number(node.argument(name)):
        return b.number(node, name)
    array = _constant(b, node, name)
    if array.size != 1:
        raise QcompError(f"{name} of {node.target} should be one number", code="malformed-graph")
    return cast(Number, array.reshape(-1)[0].item())


def _constant(b: Builder, node: Node, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    owner = b.raw(node, name).owner
    if not isinstance(owner, ConstantOp):
        raise QcompError(
            f"{name} of {node.target} is computed at run time",
            code="dynamic-quantization",
            hint="use a static quantization configuration",
        )
    return owner.array


def _per_channel(b: Builder, node: Node, expressed: str, rank: int) -> Encoding:
    scales = _constant(b, node, "scales").astype(np.float64).reshape(-1)
    given = _constant(b, node, "zero_points") if node.argument("zero_points") is not None else np.zeros(scales.shape)
    zeros = given.reshape(-1).astype(np.int64)
    low, high = b.integer(node, "quant_min"), b.integer(node, "quant_max")
    return _encode(node, b.dtype(node), low, high, scales, zeros, expressed, axis_of(b.integer(node, "axis"), rank))


def _has_whole_zero_points(b: Builder, node: Node) -> bool:
    """Whether the zero points are integers that the codes' type can hold, as those of a quantized type are."""
    if node.argument("zero_points") is None:
        return True
    values = _constant(b, node, "zero_points").astype(np.float64)
    low, high = b.integer(node, "quant_min"), b.integer(node, "quant_max")
    return bool(((values == np.rint(values)) & (values >= low) & (values <= high)).all())


def _along_axis(b: Builder, node: Node, value: SSAValue) -> list[int]:
    """The shape in which parameters along the axis of `node` broadcast over `value`."""
    axis, shape = axis_of(b.integer(node, "axis"), len(shape_of(value))), shape_of(value)
    return [size if dim == axis else 1 for dim, size in enumerate(shape)]


_PER_TENSOR = ("default", "tensor", "tensor2")


@op(*(f"quantized_decomposed.quantize_per_tensor.{form}" for form in _PER_TENSOR))
def quantize_per_tensor(b: Builder, node: Node) -> Result:
    """Codes of one scale."""
    value = b.tensor(node, "input")
    if dynamic.is_dynamic(b, node):
        return dynamic.quantize(b, node, (), ("scale", "zero_point"), None)
    return b.add(QuantizeOp(value, _per_tensor(b, node, dtype_of(value))))


@op("quantized_decomposed.quantize_per_channel.default")
def quantize_per_channel(b: Builder, node: Node) -> Result:
    """Codes of one scale per channel; zero points of embeddings may be fractions."""
    value = b.tensor(node, "input")
    if not _has_whole_zero_points(b, node):
        return dynamic.quantize(b, node, _along_axis(b, node, value), ("scales", "zero_points"), None)
    return b.add(QuantizeOp(value, _per_channel(b, node, dtype_of(value), len(shape_of(value)))))


@op(*(f"quantized_decomposed.dequantize_per_tensor.{form}" for form in _PER_TENSOR))
def dequantize_per_tensor(b: Builder, node: Node) -> Result:
    """Reals of one scale."""
    if dynamic.is_dynamic(b, node):
        return dynamic.dequantize(b, node, (), ("scale", "zero_point"), b.dtype(node, "out_dtype"))
    return dequantize_codes(b, b.raw(node, "input"), _per_tensor(b, node, b.dtype(node, "out_dtype") or "float32"))


@op("quantized_decomposed.dequantize_per_channel.default")
def dequantize_per_channel(b: Builder, node: Node) -> Result:
    """Reals of one scale per channel; zero points of embeddings may be fractions."""
    value = b.raw(node, "input")
    if not _has_whole_zero_points(b, node):
        shape = _along_axis(b, node, value)
        return dynamic.dequantize(b, node, shape, ("scales", "zero_points"), b.dtype(node, "out_dtype"))
    expressed = b.dtype(node, "out_dtype") or "float32"
    return dequantize_codes(b, value, _per_channel(b, node, expressed, len(shape_of(value))))


def dequantize_codes(b: Builder, value: SSAValue, encoding: Encoding) -> SSAValue:
    """Reals of `value` by `encoding`, whichever op made the codes.

    torch ignores quant_min and quant_max here; codes outside them widen the encoding to its storage.
    """
    if encoding_of(value.type) == encoding:
        return b.add(DequantizeOp(value))
    kind = storage_type(tensor_type(value))
    if kind.element_type != encoding.storage:
        raise QcompError(f"dequantize of {kind.element_type} codes as {encoding.storage}", code="malformed-graph")
    owner = value.owner
    if isinstance(owner, ConstantOp) and element_of(value) == encoding.storage:
        array = owner.array
        if (
            array.size
            and not encoding.qmin <= int(cast(int, array.min())) <= int(cast(int, array.max())) <= encoding.qmax
        ):
            low, high = storage_range(encoding.signed, encoding.width)
            encoding = replace(encoding, qmin=low, qmax=high)
        key = ("codes", owner, encoding)
        if key not in b.shared:
            b.shared[key] = b.add_quantized_constant(owner, quantized_type(kind, encoding))
        return b.add(DequantizeOp(cast(SSAValue, b.shared[key])))
    return b.add(DequantizeOp(b.add(CastStorageOp(b.plain(value), quantized_type(kind, encoding)))))


@op("quantized_decomposed.fake_quant_per_channel.default")
def fake_quantize_per_channel(b: Builder, node: Node) -> Result:
    """Quantize and dequantize in one."""
    value = b.tensor(node, "input")
    low = b.integer(node, "quant_min")
    dtype = "int8" if low < 0 else "uint8"
    scales = _constant(b, node, "scales").astype(np.float64).reshape(-1)
    zeros = _constant(b, node, "zero_points").astype(np.int64).reshape(-1)
    axis = axis_of(b.integer(node, "axis"), len(shape_of(value)))
    encoding = _encode(node, dtype, low, b.integer(node, "quant_max"), scales, zeros, dtype_of(value), axis)
    return b.add(DequantizeOp(b.add(QuantizeOp(value, encoding))))
