# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of elementwise kernels.

One kernel form serves all: load tiles of the operands, dequantize those that hold codes, compute in float32, quantize
the result if it holds codes. That is what these ops mean on quantized tensors, so the result is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, f32, f64, i8, i16, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop, quant
from qcomp.dialects.dims import memref_of
from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.interpreter.reference.quantize import reciprocal
from qcomp.transforms.lower_to_loop.access import Seen, load_lanes, store_lanes
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.tiles import nominal

Compute = Callable[[Builder, Sequence[SSAValue]], SSAValue]
_MIN_LANES = 16
ELEMENTS = {"f32": f32, "f64": f64, "i8": i8, "i16": i16, "i32": i32, "i64": i64}
IN_LANES = ("f32", "i8", "i16", "i32")
"""What vector registers hold."""


@dataclass(frozen=True)
class Codes:
    """How codes become reals and back. inverse: the float32 reciprocal of the scale (results only)."""

    scale: float
    zero_point: int
    low: int
    high: int
    unsigned: bool
    inverse: float = 0.0
    nan: int = 0

    @staticmethod
    def of(encoding: Encoding, recipe: quant.Recipe | None = None) -> Codes:
        """The constants of a per-tensor encoding. Raises QcompError for per-channel ones."""
        if not encoding.per_tensor:
            raise QcompError("per-channel activations are not lowered to loops", code="lower")
        inverse = float(reciprocal(encoding, recipe).reshape(()))
        return Codes(
            float(np.float32(encoding.scale)), encoding.zero_point, encoding.qmin, encoding.qmax,
            not encoding.signed, inverse, min(max(0, encoding.qmin), encoding.qmax),
        )  # fmt: skip


@dataclass(frozen=True)
class ElementwiseKernel:
    """All that the code of an elementwise kernel depends on; `function` names the computation."""

    function: tuple[object, ...]
    operands: tuple[Seen, ...]
    result: Seen
    operand_codes: tuple[Codes | None, ...]
    result_codes: Codes | None
    lanes: int


def lower_elementwise(
    lowering: Lowering,
    operands: Sequence[Buffer],
    target: Buffer,
    where: LocationAttr,
    name: str,
    function: tuple[object, ...],
    compute: Compute,
    recipe: quant.Recipe | None = None,
    scalar: bool = False,
) -> None:
    """Emit the call that computes `target` = function(operands), elementwise with broadcasting.

    scalar: one element at a time, for functions that vector registers lack.
    """
    in_lanes = all(str(buffer.element) in IN_LANES for buffer in (*operands, target)) and not scalar
    spec = ElementwiseKernel(
        function,
        tuple(Seen.of(buffer) for buffer in operands),
        Seen.of(target),
        tuple(None if buffer.encoding is None else Codes.of(buffer.encoding) for buffer in operands),
        None if target.encoding is None else Codes.of(target.encoding, recipe),
        lowering.target.lanes if in_lanes else 1,
    )
    flat = flattened(spec)
    arguments = [
        _argument(lowering, buffer, seen)
        for buffer, seen in zip([*operands, target], [*flat.operands, flat.result], strict=True)
    ]
    alias = [
        (len(operands), position)
        for position, buffer in enumerate(operands)
        if buffer.type == target.type and buffer.layout == target.layout
    ]
    lowering.call(flat, name, lambda symbol: _build(flat, symbol, where, compute), arguments, where, alias)


def _argument(lowering: Lowering, buffer: Buffer, seen: Seen) -> SSAValue:
    return buffer.value if seen.sizes == buffer.sizes else lowering.view(buffer, memref_of(buffer.element, seen.sizes))


def flattened(spec: ElementwiseKernel) -> ElementwiseKernel:
    """The same kernel over one dimension, when all tensors lie alike and without gaps."""
    every = [*spec.operands, spec.result]
    alike = all((seen.sizes, seen.layout) == (spec.result.sizes, spec.result.layout) for seen in every)
    if not alike or not spec.result.dense():
        return spec
    size = math.prod(spec.result.sizes)
    one = [replace(seen, sizes=(size,), layout=Layout(False)) for seen in every]
    return replace(spec, operands=tuple(one[:-1]), result=one[-1])


def _build(spec: ElementwiseKernel, name: str, where: LocationAttr, compute: Compute) -> FuncOp:
    from qcomp.transforms.lower_to_loop.buffers import physical_shape

    every = [*spec.operands, spec.result]
    names = [f"x{position}" for position in range(len(spec.operands))] + ["y"]
    kinds = [memref_of(ELEMENTS[seen.element], physical_shape(seen.sizes, seen.layout)) for seen in every]
    func, b, values = kernel(name, list(zip(names, kinds, strict=True)), where)
    for indices, dim, part in iterate(b, spec.result, spec.lanes):
        _point(b, spec, values, indices, dim, part, compute)
    return finish(func)


Place = tuple[list[Index | int], int, Chunk]


def iterate(b: Builder, result: Seen, lanes: int, element: Attribute = f32) -> Iterator[Place]:
    """Opens loops over all elements of `result` and yields (logical indices, lane dimension, chunk) inside them.

    element: what tiles hold; i8 for kernels that take whole registers of bytes.
    """
    sizes, dim = result.sizes, lane_choice(result)
    if dim is None:
        yield [], 0, Chunk(0, 1, 1, ())
        return
    with ExitStack() as stack:
        indices: list[Index | int] = [0] * len(sizes)
        for other in result.order:
            if other != dim and sizes[other] != 1:
                indices[other] = stack.enter_context(b.loop(0, sizes[other])).index
        for part in chunks(sizes[dim], element, lanes):
            with b.loop(part.start, part.stop, part.step) as nest:
                indices[dim] = nest.index
                yield list(indices), dim, part


def lane_choice(result: Seen) -> int | None:
    """The logical dimension whose elements fill the lanes; None for a tensor of one element without dimensions."""
    if not result.sizes:
        return None
    innermost = result.order[-1]
    if result.layout.nhwc and nominal(result.sizes[innermost]) < min(_MIN_LANES, nominal(result.sizes[-1])):
        return len(result.sizes) - 1
    return innermost


def _point(
    b: Builder, spec: ElementwiseKernel, values: Sequence[SSAValue], indices: Sequence[Index | int], dim: int,
    part: Chunk, compute: Compute,
) -> None:  # fmt: skip
    reals = [
        dequantized(b, load_lanes(b, value, seen, indices, dim, part.shape, part.valid), codes)
        for value, seen, codes in zip(values, spec.operands, spec.operand_codes, strict=False)
    ]
    result = quantized(b, compute(b, reals), spec.result_codes)
    store_lanes(b, result, values[-1], spec.result, indices, dim, part.shape, part.valid)


def dequantized(b: Builder, tile: SSAValue, codes: Codes | None) -> SSAValue:
    """(float(q) - zero_point) * scale; the tile itself when it holds reals."""
    if codes is None:
        return tile
    shape = loop.tile_shape(tile.type)
    wide = b.add(loop.ExtendOp(tile, codes.unsigned))
    if codes.zero_point:
        wide = b.difference(wide, b.integer(codes.zero_point, shape))
    return b.add(arith.MulfOp(b.add(loop.ToFloatOp(wide)), b.real(codes.scale, shape)))


def codes_in(buffer: Buffer) -> Codes | None:
    """How the codes of a buffer become reals and back; None when it holds reals. Raises QcompError as `Codes.of`."""
    return None if buffer.encoding is None else Codes.of(buffer.encoding)


def in_reals(b: Builder, buffer: SSAValue, codes: Codes | None) -> None:
    """Let a kernel's body see a buffer of codes as reals: they are dequantized when loaded, quantized when stored."""
    if codes is not None:
        b.conversions[buffer] = (
            lambda b, tile: dequantized(b, tile, codes), lambda b, tile: quantized(b, tile, codes),
        )  # fmt: skip


def quantized(b: Builder, tile: SSAValue, codes: Codes | None) -> SSAValue:
    """clamp(round(x * inverse) + zero_point); the tile itself when the result holds reals."""
    if codes is None:
        return tile
    shape = loop.tile_shape(tile.type)
    scaled = b.add(arith.MulfOp(tile, b.real(codes.inverse, shape)))
    rounded = b.add(loop.RoundOp(scaled, False, codes.nan - codes.zero_point))
    if codes.zero_point:
        rounded = b.sum(rounded, b.integer(codes.zero_point, shape))
    return b.add(loop.NarrowOp(rounded, codes.low, codes.high))
