# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization by parameters that are computed."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects.builtin import Float64Type

from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn import DynamicLinearOp
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import (
    ChooseScaleOp,
    ChooseZeroPointOp,
    DequantizeDynamicOp,
    Encoding,
    ObserveDynamicOp,
    QuantizeDynamicOp,
    encoding_of,
)
from qcomp.interpreter.dispatch import Arrays, meaning
from qcomp.interpreter.reference import dynamic
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.elementwise import clamp


@meaning(ObserveDynamicOp)
def _observe(op: ObserveDynamicOp, arrays: Arrays) -> Array:
    return arrays[0]


@meaning(ChooseScaleOp)
def _scale(op: ChooseScaleOp, arrays: Arrays) -> Array:
    low, high = arrays
    return dynamic.choose_scale(low, high, op.divisor.value.data, op.floor.value.data, op.symmetric is not None)


@meaning(ChooseZeroPointOp)
def _zero_point(op: ChooseZeroPointOp, arrays: Arrays) -> Array:
    low, high, scale = arrays
    return dynamic.choose_zero_point(low, high, scale, *op.bounds, op.nearest is not None)


@meaning(QuantizeDynamicOp)
def _quantize(op: QuantizeDynamicOp, arrays: Arrays) -> Array:
    value, scale, zero_point = arrays
    dtype = np.dtype(numpy_dtype(tensor(op.result).element_type))
    wide = isinstance(op.recipe, Float64Type)
    return dynamic.quantize_dynamic(value, scale, zero_point, *op.bounds, dtype, wide, op.nan_code)


@meaning(DequantizeDynamicOp)
def _dequantize(op: DequantizeDynamicOp, arrays: Arrays) -> Array:
    return dynamic.dequantize_dynamic(*arrays)


def _coded_linear(op: DynamicLinearOp, arrays: Arrays) -> Array:
    codes, scale, zero_point, weight, *bias = arrays
    scales = cast(Encoding, encoding_of(op.weight.type)).scales
    real = dynamic.dynamic_linear(codes, scale, zero_point, weight, scales, bias[0] if bias else None)
    return real if op.activation is None else clamp(real, *op.activation.bounds)


@meaning(DynamicLinearOp, coded=_coded_linear)
def _linear(op: DynamicLinearOp, arrays: Arrays) -> Array:
    """The float op it stands for, on dequantized weights: what `verify_rewrites` holds the integers against."""
    codes, scale, zero_point, weight, *bias = arrays
    real = dynamic.dequantize_dynamic(codes, scale, zero_point).astype(np.float64)
    total = np.matmul(real, weight.astype(np.float64).T) + (bias[0] if bias else 0.0)
    return total.astype(np.float32) if op.activation is None else clamp(total.astype(np.float32), *op.activation.bounds)
