# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real numbers to codes and back, in the arithmetic of torch's ``quantized_decomposed`` and torchao's affine ops.

quantize: ``clamp(round_half_even(x * inv) + zero_point, qmin, qmax)``, every step in float32, the zero point added
after rounding. `inv` is the reciprocal of the scale: computed in float64 and rounded to float32 (recipe f64), or
the float32 scale's reciprocal in float32 (recipe f32). Never x / scale: the results differ at ties.
NaN becomes code 0, clamped to the range. Where the largest code is not a float32 (32-bit storage) torch's conversion
overflows (undefined in C); here the codes saturate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type

from qcomp.dialects.quant import Encoding, Recipe, default_recipe, parameter_arrays
from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.narrow_floats import narrow, widen

Float32Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def reciprocal(encoding: Encoding, recipe: Recipe | None = None) -> Float32Array:
    """1 / scale as float32, shaped like `encoding.scales`; `recipe` defaults to torch's for the encoding."""
    with np.errstate(over="ignore", divide="ignore"):
        if isinstance(recipe or default_recipe(encoding), Float32Type):
            return np.float32(1.0) / encoding.scales.astype(np.float32)
        return (1.0 / encoding.scales).astype(np.float32)


def quantize(values: Array, encoding: Encoding, recipe: Recipe | None = None) -> Array:
    """The codes of `values` (floats of the encoding's expressed type): an array of `encoding.dtype`, same shape.

    Raises QcompError when the encoding expresses float64, which torch's ops do not take.
    """
    _refuse_float64(encoding)
    values = widen(values, encoding.expressed)
    inverse, zeros = parameter_arrays(replace(encoding, scales=reciprocal(encoding, recipe)), values.shape)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scaled = np.asarray(np.rint(np.multiply(values, inverse, dtype=np.float32)))
        scaled += zeros.astype(np.float32)
        return to_codes(scaled, encoding.qmin, encoding.qmax, encoding)


def to_codes(values: Array, low: int, high: int, encoding: Encoding) -> Array:
    """Integral floats, zero point included, clamped to [low, high] and converted; overwrites `values`. NaN: code 0."""
    nan = np.isnan(values)
    if nan.any():
        values[nan] = 0
    if values.dtype == np.float32 and max(abs(low), abs(high)) > 2**24:
        values = values.astype(np.float64)
    np.clip(values, low, high, out=values)
    return values.astype(encoding.dtype)


def dequantize(codes: Array, encoding: Encoding) -> Array:
    """``(q - zero_point) * scale`` in the expressed type; difference and product are each rounded once.

    Per axis torch subtracts in integers and multiplies in float32 whatever the expressed type; the other forms convert
    first and round the difference to the expressed type. The forms differ for 32-bit codes and 16-bit floats only.
    """
    _refuse_float64(encoding)
    scales, zeros = parameter_arrays(encoding, codes.shape)
    scale = scales.astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        if encoding.axis is not None:
            return narrow((codes.astype(np.int64) - zeros).astype(np.float32) * scale, encoding.expressed)
        real = _round_to(codes.astype(np.float32), encoding)
        difference = _round_to(real - _round_to(zeros.astype(np.float32), encoding), encoding)
        return narrow(difference * scale, encoding.expressed)


def requantize(codes: Array, source: Encoding, target: Encoding, recipe: Recipe | None = None) -> Array:
    """Codes of `source` as codes of `target`: exactly quantize(dequantize(codes))."""
    return quantize(dequantize(codes, source), target, recipe)


def code_of(value: float, encoding: Encoding, recipe: Recipe | None = None) -> int:
    """The code of one real number under a per-tensor encoding."""
    held = narrow(np.array([value], np.float32), encoding.expressed)
    return int(cast(np.int64, quantize(held, encoding, recipe)[0]))


def _round_to(array: Array, encoding: Encoding) -> Array:
    return widen(narrow(array, encoding.expressed), encoding.expressed)


def _refuse_float64(encoding: Encoding) -> None:
    if isinstance(encoding.expressed, Float64Type):
        raise QcompError(
            "a quantized type cannot express f64", code="unsupported-type", hint="cast to f32 before quantizing"
        )
