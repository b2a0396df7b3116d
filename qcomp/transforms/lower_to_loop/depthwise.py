# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Depthwise convolutions: channels lie in the lanes, a few output pixels are accumulated together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import LocationAttr, MemRefType, f32, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import memref_of
from qcomp.interpreter.reference.integer_plan import IntegerPlan
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.buffers import Border, Buffer
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.epilogue import Epilogue, Operands, apply_epilogue
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.stored import Storage, decoder, parameter_constants, store
from qcomp.transforms.lower_to_loop.tiles import cuts, nominal
from qcomp.transforms.lower_to_loop.weighted import Task, start_values

PIXELS = 7
"""Output pixels of a row that are accumulated together."""


@dataclass(frozen=True)
class Strided:
    """How the kernel moves: its size, stride and dilation, and the element of the buffer of the first tap.

    output: rows and columns of the result that are computed; the first ones, and the steps from one to the next.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    origin: tuple[int, int]
    output: tuple[int, int]
    first: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class DepthwiseKernel:
    """All that the code of a depthwise kernel depends on."""

    batch: int
    height: int
    width: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    origin: tuple[int, int]
    epilogue: Epilogue
    unsigned: bool
    lanes: int
    input: tuple[int, ...]
    output: tuple[int, ...]
    output_border: Border
    residual: tuple[int, ...] | None
    residual_border: Border
    first: tuple[int, int]
    steps: tuple[int, int]
    storage: Storage | None = None

    @property
    def channels(self) -> int:
        """Channels, and their number rounded up to whole registers."""
        return self.input[3]

    @property
    def padded(self) -> int:
        """Channels rounded up to whole registers: over-reads of constants stay inside them."""
        return -(-self.channels // self.lanes) * self.lanes

    def pack(self, values: Array) -> Array:
        """[..., channels] padded with zeros to whole registers."""
        wide = np.zeros((*values.shape[:-1], self.padded), values.dtype)
        wide[..., : self.channels] = values
        return wide

    def arguments(self) -> list[tuple[str, MemRefType[Attribute]]]:
        """The buffers the function takes, in order."""
        spec = self.epilogue
        element = i8 if spec.integer else f32
        taps = self.kernel[0] * self.kernel[1]
        found: list[tuple[str, MemRefType[Attribute]]] = [
            ("x", memref_of(element, self.input)),
            ("weight", memref_of(element if self.storage is None else i8, (taps, self.padded))),
        ]
        if self.storage is not None:
            found += [(name, memref_of(kind, (self.padded,))) for name, kind in self.storage.parameters]
        found.append(("start", memref_of(i32 if spec.integer else f32, (self.padded,))))
        if spec.integer:
            found.append(("multiplier", memref_of(f32, (self.padded,))))
            if spec.biased:
                found.append(("bias", memref_of(f32, (self.padded,))))
            found += spec.arguments()
        if spec.residual and self.residual is not None:
            found.append(("residual", memref_of(i8, self.residual)))
        found.append(("y", memref_of(i8 if spec.quantized else f32, self.output)))
        return found


def lower_depthwise(
    lowering: Lowering, task: Task, taps: Array | CodedWeight, sliding: Strided,
    images: tuple[Buffer, Buffer, Buffer | None], where: LocationAttr,
) -> None:  # fmt: skip
    """Emit the call of a depthwise kernel. taps: [channels, rows * columns]; images: input, result, residual."""
    (x, y, residual), plan = images, task.plan
    stored = store(taps[:, None], 1, halves=False) if isinstance(taps, CodedWeight) else None
    if stored is not None and stored.storage.groups != 1:
        stored = None
    values = taps if not isinstance(taps, CodedWeight) else taps.reals() if stored is None else taps.codes
    spec = DepthwiseKernel(
        y.sizes[0], *sliding.output, sliding.kernel, sliding.stride, sliding.dilation, sliding.origin,
        task.epilogue, x.unsigned, lowering.target.lanes, x.physical, y.physical, y.layout.border,
        residual.physical if residual else None, residual.layout.border if residual else (0, 0, 0, 0),
        sliding.first, sliding.steps, None if stored is None else stored.storage,
    )  # fmt: skip
    element = i8 if plan is not None or stored is not None else f32
    arguments = [x.value, lowering.constant(spec.pack(np.ascontiguousarray(values.T)), element)]
    arguments += parameter_constants(lowering, stored, lambda array: spec.pack(array.reshape(-1)))
    arguments += _channel_constants(lowering, task.bias, plan, spec, values)
    if residual is not None and plan is not None:
        arguments.append(residual.value)
    arguments.append(y.value)
    lowering.call(spec, "depthwise", lambda name: build_depthwise(spec, name, where), arguments, where)


def _channel_constants(
    lowering: Lowering, bias: Array | None, plan: IntegerPlan | None, spec: DepthwiseKernel, taps: Array
) -> list[SSAValue]:
    if plan is None:
        start = np.zeros(spec.channels, np.float32) if bias is None else bias
        return [lowering.constant(spec.pack(start), f32)]
    start = spec.pack(start_values(plan, taps))
    found = [lowering.constant(start, i32), lowering.constant(spec.pack(plan.multiplier), f32)]
    if plan.bias is not None:
        found.append(lowering.constant(spec.pack(plan.bias), f32))
    return found + spec.epilogue.constants(lowering, plan)


def build_depthwise(spec: DepthwiseKernel, name: str, where: LocationAttr) -> FuncOp:
    """The function of `spec`."""
    arguments = spec.arguments()
    func, b, values = kernel(name, arguments, where)
    use = {hint: value for (hint, _), value in zip(arguments, values, strict=True)}
    scalars = Operands()
    scalars.load_scalars(b, spec.epilogue, use)
    columns = 1 if spec.lanes == 1 else max(1, min(PIXELS, nominal(spec.width)))
    with b.loop(0, spec.batch) as image, b.loop(0, spec.height, kind="parallel") as row:
        for part in chunks(spec.channels, f32, spec.lanes):
            with b.loop(part.start, part.stop, part.step) as channel:
                for low, high, step in cuts(spec.width, columns):
                    with b.loop(low, high, step) as column:
                        places = (image.index, row.index, column.index, channel.index)
                        _tile(spec, b, use, scalars, places, step, part)
    return finish(func)


def _tile(
    spec: DepthwiseKernel, b: Builder, use: dict[str, SSAValue], operands: Operands,
    places: tuple[Index, Index, Index, Index], columns: int, part: Chunk,
) -> None:  # fmt: skip
    image, row, column, channel = places
    lanes = part.shape or (1,)
    shape = (columns, *lanes)
    per_channel = {
        role: b.load(use[role], [channel], lanes, (0,)) for role in ("start", "multiplier", "bias") if role in use
    }
    acc = b.broadcast(per_channel["start"], shape)
    held = None
    if spec.storage is not None:
        held = decoder(b, spec.storage, lambda name: b.load(use[name], [channel], lanes, (0,)), None)
    with b.loop(0, spec.kernel[0], carry=[acc], kind="unroll") as tap_row:
        with b.loop(0, spec.kernel[1], carry=tap_row.carried, kind="unroll") as tap:
            x = [
                image,
                row * spec.stride[0] + tap_row.index * spec.dilation[0] + spec.origin[0],
                column * spec.stride[1] + tap.index * spec.dilation[1] + spec.origin[1],
                channel,
            ]
            left = b.load(use["x"], x, shape, (2, 3), (spec.stride[1], 1), part.valid)
            right = b.load(use["weight"], [tap_row.index * spec.kernel[1] + tap.index, channel], lanes, (1,))
            if held is not None:
                (right,) = held.reals(right)
            wide = b.broadcast(right, shape)
            tap.carry(b.add(loop.MultiplyAddOp(tap.carried[0], left, wide, spec.unsigned and spec.epilogue.integer)))
        tap_row.carry(*tap.results)
    steps = (spec.steps[1], 1)
    operands.multiplier, operands.bias = per_channel.get("multiplier"), per_channel.get("bias")
    if "residual" in use:
        place = _pixel(spec, places, spec.residual_border)
        operands.residual = b.load(use["residual"], place, shape, (2, 3), steps, part.valid)
    result = apply_epilogue(b, spec.epilogue, tap_row.results[0], operands)
    b.store(result, use["y"], _pixel(spec, places, spec.output_border), (2, 3), steps, part.valid)


def _pixel(spec: DepthwiseKernel, places: tuple[Index, Index, Index, Index], border: Border) -> list[Index | int]:
    image, row, column, channel = places
    down, across = (side + start for side, start in zip(border[::2], spec.first, strict=True))
    return [image, row * spec.steps[0] + down, column * spec.steps[1] + across, channel]
