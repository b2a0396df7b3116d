# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The quant dialect: quantized types and the ops between reals and codes."""

from xdsl.ir import Dialect

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

Quant = Dialect("quant", [ObserveOp, QuantizeOp, DequantizeOp, RequantizeOp, CastStorageOp], [UniformQuantizedType])

__all__ = [
    "CastStorageOp",
    "DequantizeOp",
    "Encoding",
    "ObserveOp",
    "Quant",
    "QuantizeOp",
    "Recipe",
    "RequantizeOp",
    "UniformQuantizedType",
    "default_recipe",
    "encoding_of",
    "expanded_types",
    "expressed_type",
    "parameter_arrays",
    "quantized_type",
    "storage_range",
    "storage_type",
]
