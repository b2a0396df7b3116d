# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The second evaluator: torch's own kernels, so that a float program with quantize and dequantize gives the bits that
the graph of convert_pt2e gives. Values are torch tensors, codes included; ops on quantized types use the reference.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float32Type, TensorType
from xdsl.ir import Attribute, Operation

from qcomp.dialects.quant import (
    DequantizeOp,
    Encoding,
    ObserveOp,
    QuantizeOp,
    Recipe,
    RequantizeOp,
    default_recipe,
    encoding_of,
    parameter_arrays,
)
from qcomp.errors import QcompError
from qcomp.interpreter.dispatch import evaluate_op
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.quantize import reciprocal

Tensor = TensorType[Attribute]


class TorchEvaluator:
    """Evaluates ops with torch on CPU. Raises QcompError when torch is not installed."""

    def __init__(self) -> None:
        try:
            self.torch: Any = importlib.import_module("torch")
            importlib.import_module("torch.ao.quantization.fx._decomposed")
        except ImportError:
            raise QcompError(
                "the torch evaluator needs torch", code="no-torch", hint="pip install 'qcomp[torch]'"
            ) from None
        from qcomp.interpreter.torch_kernels import kernels

        self.kernels = kernels(self.torch)

    def load(self, array: Array, kind: Tensor) -> Any:
        """`array` as a torch tensor that shares its memory where it can."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable")
            value = self.torch.from_numpy(np.asarray(array, order="C"))
        return value.view(self.torch.bfloat16) if isinstance(kind.element_type, BFloat16Type) else value

    def store(self, value: Any, kind: Tensor) -> Array:
        """The stored array of a torch tensor."""
        if isinstance(kind.element_type, BFloat16Type):
            value = value.contiguous().view(self.torch.uint16)
        return cast(Array, value.numpy())

    def evaluate(self, op: Operation, operands: Sequence[Any]) -> Any:
        """The result of `op`."""
        kinds = [cast(Tensor, kind) for kind in (*op.operand_types, *op.result_types)]
        match op:
            case QuantizeOp():
                return self._quantize(operands[0], op.encoding, op.recipe)
            case DequantizeOp():
                return self._dequantize(operands[0], op.encoding)
            case RequantizeOp():
                source, target = (cast(Encoding, encoding_of(kind)) for kind in kinds)
                return self._quantize(self._dequantize(operands[0], source), target, op.recipe)
            case ObserveOp():
                return operands[0]
            case _:
                kernel = self.kernels.get(type(op))
                if kernel is not None and all(encoding_of(kind) is None for kind in kinds):
                    return kernel(op, operands)
                arrays = [self.store(value, kind) for value, kind in zip(operands, kinds, strict=False)]
                return self.load(evaluate_op(op, arrays), kinds[-1])

    def _quantize(self, value: Any, encoding: Encoding, recipe: Recipe | None) -> Any:
        limits = (encoding.qmin, encoding.qmax, self._dtype(encoding))
        recipe = recipe or default_recipe(encoding)
        if recipe == default_recipe(encoding) and not encoding.blocks:
            if encoding.axis is None:
                return self._decomposed.quantize_per_tensor(value, encoding.scale, encoding.zero_point, *limits)
            return self._decomposed.quantize_per_channel(value, *self._per_channel(encoding), encoding.axis, *limits)
        inverse, zeros = self._spread(encoding, reciprocal(encoding, recipe), value.shape)
        rounded = self.torch.round(value.to(self.torch.float32) * inverse) + zeros
        return self.torch.clamp(rounded, *limits[:2]).to(limits[2])

    def _dequantize(self, codes: Any, encoding: Encoding) -> Any:
        limits = (encoding.qmin, encoding.qmax, self._dtype(encoding))
        out = self._expressed(encoding)
        if encoding.axis is not None and codes.dtype != self.torch.uint16:
            return self._decomposed.dequantize_per_channel(
                codes, *self._per_channel(encoding), encoding.axis, *limits, out_dtype=out
            )
        if encoding.per_tensor:
            return self._decomposed.dequantize_per_tensor(
                codes, encoding.scale, encoding.zero_point, *limits, out_dtype=out
            )
        scales, zeros = self._spread(encoding, encoding.scales.astype(np.float32), codes.shape)
        if encoding.axis is not None:  # torch has no uint16 arithmetic: its formula, in wider integers
            return ((codes.to(self.torch.int64) - zeros.to(self.torch.int64)) * scales).to(out)
        return ((codes.to(out) - zeros.to(out)) * scales).to(out)

    @property
    def _decomposed(self) -> Any:
        return self.torch.ops.quantized_decomposed

    def _per_channel(self, encoding: Encoding) -> tuple[Any, Any]:
        return (
            self.torch.tensor(encoding.scales, dtype=self.torch.float32),
            self.torch.tensor(encoding.zero_points, dtype=self.torch.int64),
        )

    def _spread(self, encoding: Encoding, parameters: Array, shape: Sequence[int]) -> tuple[Any, Any]:
        values, zeros = parameter_arrays(replace(encoding, scales=parameters), tuple(shape))
        return self.torch.tensor(values, dtype=self.torch.float32), self.torch.tensor(zeros, dtype=self.torch.float32)

    def _dtype(self, encoding: Encoding) -> Any:
        return getattr(self.torch, encoding.dtype.name)

    def _expressed(self, encoding: Encoding) -> Any:
        if isinstance(encoding.expressed, Float32Type):
            return self.torch.float32
        return self.torch.bfloat16 if isinstance(encoding.expressed, BFloat16Type) else self.torch.float16
