# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of nn.dynamic_linear: the kernel of a linear on codes, with scale and zero point read in the epilogue."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import memref_of
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import encoding_of, is_unsigned
from qcomp.transforms.lower_to_loop.buffers import NO_BORDER, Layout
from qcomp.transforms.lower_to_loop.contraction import (
    ContractionKernel,
    Geometry,
    build_contraction,
    contraction_kernel,
)
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.epilogue import Epilogue
from qcomp.transforms.lower_to_loop.registry import lowers
from qcomp.transforms.lower_to_loop.weighted import constant, in_arena


@lowers(nn.DynamicLinearOp, elements=frozenset({"i8", "ui8"}), symbolic=True)
def lower_dynamic_linear(lowering: Lowering, op: nn.DynamicLinearOp) -> None:
    """Each row of the input is a pixel of a convolution of one run, as for `nn.linear`."""
    where = op.location
    x = lowering.row_major(op.input, where)
    y = lowering.define(op.result, where, Layout(False))
    weight = constant(lowering, op.weight, "weight")
    channels, run = weight.shape
    rows = math.prod(x.sizes[:-1])
    per_row = math.prod(shape(op.scale)) != 1
    bounds = op.activation.bounds if op.activation is not None else None
    epilogue = Epilogue(True, op.bias is not None, clamp=bounds, runtime=True, per_row=per_row)
    geometry = Geometry(1, 1, rows, channels, 1, 1, 1, run, 0, 0, (1, 1), run, 0, (0, 0))
    unsigned = is_unsigned(tensor(op.input).element_type)
    spec = contraction_kernel(
        lowering.target, geometry, epilogue, unsigned, (1, 1, rows * run), ((1, 1, rows, channels), NO_BORDER), None,
        packed=partial(lowering.tied.vectors, op.weight),
    )  # fmt: skip
    x = in_arena(lowering, x, run, where)
    packed = lowering.constant(spec.pack_weight(weight[:, None]), i8)
    lowering.tied.note(op.weight, spec, [packed])
    arguments = [lowering.view(x, memref_of(i8, spec.input)), packed]
    arguments += _constants(lowering, op, spec, weight)
    pixels = rows if per_row else 1
    for value, kind in ((op.scale, f32), (op.zero_point, i32)):
        arguments.append(lowering.view(lowering.row_major(value, where), memref_of(kind, (pixels,))))
    arguments.append(lowering.view(y, memref_of(f32, spec.output)))
    lowering.call(spec, "linear", lambda symbol: build_contraction(spec, symbol, where), arguments, where)


def _constants(lowering: Lowering, op: nn.DynamicLinearOp, spec: ContractionKernel, weight: Array) -> list[SSAValue]:
    """The buffers per output channel: start, multiplier, the bias if there is one, sums of weights."""
    channels = weight.shape[0]
    encoding = encoding_of(op.weight.type)
    assert encoding is not None
    scales = np.broadcast_to(encoding.scales.astype(np.float32), (channels,))
    sums = weight.astype(np.int64).sum(axis=1).astype(np.int32)
    rows: list[tuple[Array, Attribute]] = [(np.zeros(channels, np.int32), i32), (scales, f32), (sums, i32)]
    if op.bias is not None:
        rows.insert(2, (constant(lowering, op.bias, "bias"), f32))
    return [lowering.constant(spec.pack_channels(values), element) for values, element in rows]
