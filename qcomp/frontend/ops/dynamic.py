# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization with parameters computed at run time: torch's ``choose_qparams`` ops and what reads their results.

torch gives scales as float64 and zero points as int64 whose values are float32 and small integers; the ops here work on
those, and the casts that other readers see cost nothing when there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import SSAValue

from qcomp.dialects.element import element_type
from qcomp.dialects.nn import CastOp, ConstantOp, ExpandOp, ReshapeOp
from qcomp.dialects.quant import DequantizeDynamicOp, ObserveDynamicOp, QuantizeDynamicOp, Recipe
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, element_of, shape_of
from qcomp.frontend.graph import Node, Observer
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op
from qcomp.transforms.dynamic_parameters import Parameters, parameters_of

_FLOAT32_EPS = float(np.finfo(np.float32).eps)


def float_input(b: Builder, node: Node) -> SSAValue:
    """The value to quantize. Raises QcompError unless it is float32: torch computes the parameters in its type."""
    value = b.tensor(node, "input")
    if dtype_of(value) != "float32":
        raise QcompError(
            f"{node.target} of {dtype_of(value)} is not supported", code="unsupported-dtype", hint="use float32"
        )
    return value


def _choose(b: Builder, node: Node, rule: Parameters, axes: Sequence[int] | None, shape: Sequence[int]) -> Result:
    """Scales and zero points as torch types them; the constant zero point repeated for every scale."""
    scale, zero_point = parameters_of(b.add, float_input(b, node), rule, axes)
    scale = reshape_to(b, scale, shape)
    if rule.zero_point is None:
        zero_point = reshape_to(b, zero_point, shape)
    else:
        zero_point = b.expand(b.scalar(rule.zero_point, "int32"), shape)
    return [b.cast(scale, "float64"), b.cast(zero_point, "int64")]


@op("quantized_decomposed.choose_qparams.tensor", "quantized_decomposed.choose_qparams_symmetric.tensor")
def choose_qparams(b: Builder, node: Node) -> Result:
    """One scale and zero point from the range of all elements, 0 included."""
    low, high = b.integer(node, "quant_min"), b.integer(node, "quant_max")
    storage = element_type(b.dtype(node) or "")
    rule = Parameters.per_tensor(low, high, b.real(node, "eps"), "symmetric" in node.target, storage)
    return _choose(b, node, rule, None, (1,))


@op("quantized_decomposed.choose_qparams_per_token.default")
def choose_qparams_per_token(b: Builder, node: Node) -> Result:
    """A scale for each row: the largest magnitude, at least 1e-5, over 127."""
    floor = float(np.float32(1e-5) / np.float32(127))
    return _per_token(b, node, Parameters(-128, 127, 127.0, floor, True, 0))


@op(
    "quantized_decomposed.choose_qparams_per_token_asymmetric.default",
    "quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default",
)
def choose_qparams_per_token_asymmetric(b: Builder, node: Node) -> Result:
    """A scale and zero point for each row."""
    return _per_token(b, node, Parameters(-128, 127, 255.0, _FLOAT32_EPS, False, None, nearest=True))


def _per_token(b: Builder, node: Node, rule: Parameters) -> Result:
    if b.dtype(node) != "int8":
        raise QcompError(f"{node.target} to {b.dtype(node)} is not supported", code="unsupported-dtype", hint="int8 is")
    shape = shape_of(b.tensor(node, "input"))
    return _choose(b, node, rule, (len(shape) - 1,), (*shape[:-1], 1))


def scale_of(b: Builder, node: Node, name: str, shape: Sequence[int]) -> SSAValue:
    """A scale operand as float32, reshaped. Raises QcompError for one that is computed in float64."""
    value = b.tensor(node, name)
    value = _before_cast(value, f32)
    if element_of(value) == f64 and isinstance(value.owner, ConstantOp):
        array = value.owner.array
        held = array.astype(np.float32)
        if (held == array).all():
            value = b.constant(held, "float32")
    if element_of(value) != f32:
        raise QcompError(
            f"{name} of {node.target} is computed in {dtype_of(value)}", code="unsupported-dtype",
            hint="choose_qparams ops compute it in float32",
        )  # fmt: skip
    return _shaped(b, value, shape)


def zero_point_of(b: Builder, node: Node, name: str, shape: Sequence[int]) -> SSAValue:
    """A zero point operand as int32, or float32 when it is fractional; 0 when the argument is missing."""
    if node.argument(name) is None:
        return b.scalar(0, "int32")
    value = _before_cast(b.tensor(node, name), i32)
    owner = value.owner
    if dtype_of(value) in ("float32", "float64") and isinstance(owner, ConstantOp) and _is_whole(owner.array):
        value = b.constant(owner.array.astype(np.int32), "int32")
    elif dtype_of(value) not in ("float32", "int32"):
        value = b.cast(value, "int32")
    return _shaped(b, value, shape)


def _shaped(b: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """`value` reshaped; what a former reshape made it of when that has the shape."""
    owner = value.owner
    if isinstance(owner, ReshapeOp) and shape_of(owner.input) == tuple(shape):
        return owner.input
    return reshape_to(b, value, shape)


def _is_whole(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    return bool((array == np.rint(array)).all())  # pyright: ignore[reportArgumentType, reportCallIssue]


def _before_cast(value: SSAValue, element: object) -> SSAValue:
    """What `value` was widened from, when that has the type `element`."""
    while isinstance(value.owner, CastOp | ReshapeOp):
        inner = value.owner.input
        if element_of(inner) == element and isinstance(value.owner, CastOp):
            return inner if shape_of(inner) == shape_of(value) else value
        if not isinstance(value.owner, CastOp):
            break
        value = inner
    return value


def is_dynamic(b: Builder, node: Node) -> bool:
    """Whether a parameter of a q/dq node is computed at run time."""
    for name in ("scale", "zero_point"):
        value = node.argument(name)
        if value is not None and not b.is_number(value) and not isinstance(b.raw(node, name).owner, ConstantOp):
            return True
    return False


def quantize(b: Builder, node: Node, shape: Sequence[int], names: tuple[str, str], recipe: Recipe | None) -> SSAValue:
    """Codes by parameters of `shape`, which broadcasts over the value."""
    value = float_input(b, node)
    dtype = b.dtype(node) or b.dtype(node, "output_dtype") or "int8"
    low, high = b.integer(node, "quant_min"), b.integer(node, "quant_max")
    scale, zero_point = scale_of(b, node, names[0], shape), zero_point_of(b, node, names[1], shape)
    return b.add(QuantizeDynamicOp(value, scale, zero_point, element_type(dtype), low, high, recipe))


def dequantize(b: Builder, node: Node, shape: Sequence[int], names: tuple[str, str], dtype: str | None) -> SSAValue:
    """Reals by parameters of `shape`, which broadcasts over the codes."""
    if dtype not in (None, "float32"):
        raise QcompError(f"{node.target} to {dtype} is not supported", code="unsupported-dtype", hint="float32 is")
    scale, zero_point = scale_of(b, node, names[0], shape), zero_point_of(b, node, names[1], shape)
    return b.add(DequantizeDynamicOp(b.tensor(node, "input"), scale, zero_point))


def _row_shape(b: Builder, node: Node) -> tuple[int, ...]:
    shape = shape_of(b.tensor(node, "input"))
    for name in ("scales", "zero_points"):
        if prod(shape_of(b.tensor(node, name))) != prod(shape[:-1]):
            raise QcompError(f"{node.target} needs one of {name} for each row", code="malformed-graph")
    return (*shape[:-1], 1)


@op("quantized_decomposed.quantize_per_token.default")
def quantize_per_token(b: Builder, node: Node) -> Result:
    """Codes of one scale per row. torch computes in the type of the scales: float64 from the asymmetric chooser."""
    shape = _row_shape(b, node)
    scales = b.tensor(node, "scales")
    wide = dtype_of(scales) == "float64"
    if _is_zero(b.tensor(node, "zero_points")):
        # The symmetric chooser is exported with float64 scales, but computes float32 ones.
        wide &= isinstance(scales.owner, ConstantOp)
    elif not wide:
        raise QcompError(f"{node.target} with float32 scales and zero points is not supported", code="unsupported-op")
    return quantize(b, node, shape, ("scales", "zero_points"), f64 if wide else None)


def _is_zero(value: SSAValue) -> bool:
    """Whether `value` is a constant 0, repeated or converted or not."""
    while isinstance(value.owner, CastOp | ReshapeOp | ExpandOp):
        value = value.owner.input
    return isinstance(value.owner, ConstantOp) and not value.owner.array.any()


@op("quantized_decomposed.dequantize_per_token.default")
def dequantize_per_token(b: Builder, node: Node) -> Result:
    """Reals of one scale per row."""
    return dequantize(b, node, _row_shape(b, node), ("scales", "zero_points"), b.dtype(node, "output_dtype"))


def observe(b: Builder, node: Node, observer: Observer) -> SSAValue:
    """The value, annotated as one that is quantized by its range at run time."""
    value = float_input(b, node)
    storage = element_type(observer.dtype)
    return b.add(
        ObserveDynamicOp(value, storage, observer.quant_min, observer.quant_max, observer.floor, observer.symmetric)
    )
