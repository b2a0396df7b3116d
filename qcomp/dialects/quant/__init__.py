# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The quant dialect: quantized types and the ops between reals and codes."""

from xdsl.ir import Dialect

from qcomp.dialects.quant.dynamic import (
    ChooseScaleOp,
    ChooseZeroPointOp,
    DequantizeDynamicOp,
    ObserveDynamicOp,
    QuantizeDynamicOp,
    code_bits,
    is_unsigned,
)
from qcomp.dialects.quant.encoding import Encoding, parameter_arrays, storage_range
from qcomp.dialects.quant.ops import (
    CastStorageOp,
    DequantizeOp,
    ObserveOp,
    QuantizeOp,
    Recipe,
    RequantizeOp,
    default_recipe,
    expressed_type,
    quantized_type,
    storage_type,
)
from qcomp.dialects.quant.type import UniformQuantizedType, encoding_of, expanded_types

Quant = Dialect(
    "quant",
    [
        ObserveOp, QuantizeOp, DequantizeOp, RequantizeOp, CastStorageOp, ObserveDynamicOp, ChooseScaleOp,
        ChooseZeroPointOp, QuantizeDynamicOp, DequantizeDynamicOp,
    ],
    [UniformQuantizedType],
)  # fmt: skip

__all__ = [
    "CastStorageOp",
    "ChooseScaleOp",
    "ChooseZeroPointOp",
    "DequantizeDynamicOp",
    "DequantizeOp",
    "Encoding",
    "ObserveDynamicOp",
    "ObserveOp",
    "Quant",
    "QuantizeDynamicOp",
    "QuantizeOp",
    "Recipe",
    "RequantizeOp",
    "UniformQuantizedType",
    "code_bits",
    "default_recipe",
    "encoding_of",
    "expanded_types",
    "expressed_type",
    "is_unsigned",
    "parameter_arrays",
    "quantized_type",
    "storage_range",
    "storage_type",
]
