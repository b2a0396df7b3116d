# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of dense and grouped convolutions and of linear: implicit GEMM over channels-last buffers, never im2col.

For each kernel row the elements (kw, c) that one output pixel reads are contiguous: a *run*. The kernel accumulates a
register tile of output pixels x output channels over those runs. A linear is a convolution of one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import LocationAttr, MemRefType, f32, i8, i16, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from qcomp.backend.target import Target
from qcomp.dialects import loop
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import memref_of
from qcomp.transforms.lower_to_loop.buffers import Border
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.epilogue import Epilogue, Operands, apply_epilogue
from qcomp.transforms.lower_to_loop.halves import HALVES
from qcomp.transforms.lower_to_loop.stored import Decoder, Storage, decoder
from qcomp.transforms.lower_to_loop.tiles import Region, Tile, choose_tile, regions

UNPACKING = 2.0
"""Cost of making reals of a register of codes, in multiply-adds."""
_LONG_GROUP = 16
"""From so many weights on a sum of many pixels is scaled faster than the weights; measured, as all such numbers are."""


@dataclass(frozen=True)
class Geometry:
    """The loop nest of a contraction.

    batch, height, width, channels: of the output, channels per group; groups; kernel_rows and runs: for each of
    kernel_rows there are `runs` runs of `run` elements, `run_step` elements apart; row_step: input rows between
    kernel rows; stride: (rows, columns); pixel, group: input elements between pixels and between groups;
    origin: input row, and element in it, of the first tap of output pixel (0, 0). In three dimensions an image has
    `depth` planes of output and the kernel `planes`; plane_stride, plane_step: input rows between those.
    """

    batch: int
    height: int
    width: int
    channels: int
    groups: int
    kernel_rows: int
    runs: int
    run: int
    run_step: int
    row_step: int
    stride: tuple[int, int]
    pixel: int
    group: int
    origin: tuple[int, int]
    depth: int = 1
    planes: int = 1
    plane_stride: int = 0
    plane_step: int = 0

    @property
    def rows(self) -> int:
        """Rows of runs that the kernel has in all its planes."""
        return self.planes * self.kernel_rows


@dataclass(frozen=True)
class ContractionKernel:
    """All that the code of a kernel depends on; equal ones are one function.

    output_planes, residual_planes: how many planes the buffer of an image has, and which one is the first.
    spread: planes, rows and columns of the buffer from one element of the output to the next. half: "f16" or "bf16"
    when weights of a float contraction are held in those; storage: when they are held in codes.
    """

    geometry: Geometry
    epilogue: Epilogue
    tile: Tile
    lanes: int
    dot: int
    unsigned: bool
    input: tuple[int, int, int]
    output: tuple[int, ...]
    output_border: Border
    residual: tuple[int, ...] | None
    residual_border: Border
    output_planes: tuple[int, int] = (1, 0)
    residual_planes: tuple[int, int] = (1, 0)
    spread: tuple[int, int, int] = (1, 1, 1)
    half: str | None = None
    storage: Storage | None = None

    @property
    def block(self) -> int:
        """Output channels of a full tile."""
        return self.tile.vectors * self.lanes

    @property
    def blocks(self) -> int:
        """Tiles over the channels of a group, the last one possibly cut."""
        return -(-self.geometry.channels // self.block)

    @property
    def steps(self) -> int:
        """Dot groups per run."""
        return -(-self.geometry.run // self.dot)

    def pack_weight(self, weight: Array) -> Array:
        """[groups * channels, kernel_rows * runs, run] laid out as the tile reads it, padded with zeros."""
        g = self.geometry
        rows, run = weight.shape[1:]
        steps = -(-run // self.dot)
        padded = np.zeros((g.groups, self.blocks * self.block, rows, steps * self.dot), weight.dtype)
        padded[:, : g.channels, :, :run] = weight.reshape(g.groups, g.channels, rows, run)
        shape = (g.groups, self.blocks, self.tile.vectors, self.lanes, rows, steps, self.dot)
        order = padded.reshape(shape).transpose(0, 1, 4, 5, 2, 3, 6)
        return np.ascontiguousarray(order).reshape(g.groups * self.blocks, *order.shape[2:])

    def pack_channels(self, values: Array) -> Array:
        """One value per output channel, laid out like the tile, padded with zeros."""
        g = self.geometry
        padded = np.zeros((g.groups, self.blocks * self.block), values.dtype)
        padded[:, : g.channels] = values.reshape(g.groups, g.channels)
        return padded.reshape(g.groups * self.blocks, self.tile.vectors, self.lanes)

    def arguments(self) -> list[tuple[str, MemRefType[Attribute]]]:
        """The buffers the function takes, in order."""
        g, spec = self.geometry, self.epilogue
        element = i8 if spec.integer else f32
        blocks = g.groups * self.blocks
        channel = (blocks, self.tile.vectors, self.lanes)
        found: list[tuple[str, MemRefType[Attribute]]] = [
            ("x", memref_of(element, self.input)),
            *self._weights(element if self.half is None else i16, blocks),
            ("start", memref_of(i32 if spec.integer else f32, channel)),
        ]
        if spec.integer:
            found.append(("multiplier", memref_of(f32, channel)))
            if spec.biased:
                found.append(("bias", memref_of(f32, channel)))
            found += spec.arguments()
            if spec.runtime:
                pixels = g.width if spec.per_row else 1
                found += [("sums", memref_of(i32, channel)), ("scale", memref_of(f32, (pixels,)))]
                found.append(("zero", memref_of(i32, (pixels,))))
        if spec.residual and self.residual is not None:
            found.append(("residual", memref_of(i8, self.residual)))
        found.append(("y", memref_of(i8 if spec.quantized else f32, self.output)))
        return found

    def _weights(self, element: Attribute, blocks: int) -> list[tuple[str, MemRefType[Attribute]]]:
        """The buffers that hold the weight, as `pack_weight` lays them out."""
        rows, tile = self.geometry.rows * self.geometry.runs, (self.tile.vectors, self.lanes, self.dot)
        held = self.storage
        if held is None:
            return [("weight", memref_of(element, (blocks, rows, self.steps, *tile)))]
        kinds = [("weight", i8, rows, held.groups * held.held)]
        kinds += [(name, kind, held.rows, held.groups) for name, kind in held.parameters]
        found = [(name, memref_of(kind, (blocks, down, across, *tile))) for name, kind, down, across in kinds]
        return [*found, ("weight_table", memref_of(f32, (16,)))] if held.table else found


def contraction_kernel(
    target: Target, geometry: Geometry, epilogue: Epilogue, unsigned: bool, source: tuple[int, int, int],
    output: tuple[tuple[int, ...], Border], residual: tuple[tuple[int, ...], Border] | None,
    storage: Storage | None = None, packed: Callable[[int, float], int | None] | None = None,
) -> ContractionKernel:  # fmt: skip
    """The kernel for `target`, its tile chosen by cost. packed: `TiedTables.vectors` of the weight."""
    dot = target.dot_group if epilogue.integer else 1
    steps = geometry.rows * geometry.runs * -(-geometry.run // dot)
    distance = geometry.stride[1] * geometry.pixel * (1 if epilogue.integer else 4)
    unpacking = 0.0 if storage is None else UNPACKING
    pixels, channels = (geometry.height, geometry.width), geometry.channels
    vectors = None if packed is None else packed(dot, unpacking)
    tile = choose_tile(target, *pixels, channels, steps, distance, unpacking, vectors)
    held = residual or (None, (0, 0, 0, 0))
    return ContractionKernel(
        geometry, epilogue, tile, target.lanes, dot, unsigned, source, *output, *held, storage=storage
    )


def build_contraction(spec: ContractionKernel, name: str, where: LocationAttr) -> FuncOp:
    """The function of `spec`."""
    arguments = spec.arguments()
    func, b, values = kernel(name, arguments, where)
    use = {hint: value for (hint, _), value in zip(arguments, values, strict=True)}
    _Body(spec, b, use).emit()
    return finish(func)


class _Body:
    def __init__(self, spec: ContractionKernel, b: Builder, use: dict[str, SSAValue]):
        self.spec = spec
        self.b = b
        self.use = use
        self.epilogue = Operands()
        self.plane = Index()

    def emit(self) -> None:
        g, spec, b = self.spec.geometry, self.spec, self.b
        self.epilogue.load_scalars(b, spec.epilogue, self.use)
        with ExitStack() as stack:
            image = stack.enter_context(b.loop(0, g.batch, kind="parallel")).index if g.batch != 1 else Index()
            if g.depth != 1:
                self.plane = stack.enter_context(b.loop(0, g.depth, kind="parallel")).index
            group = stack.enter_context(b.loop(0, g.groups, kind="parallel")).index if g.groups > 1 else Index()
            whole, rest = divmod(g.channels, spec.block)
            if whole:
                with b.loop(0, whole, kind="parallel") as block:
                    self._block(image, group, block.index, spec.tile.vectors, None)
            if rest:
                vectors = -(-rest // spec.lanes)
                if rest // spec.lanes:
                    self._block(image, group, Index.of(whole), rest // spec.lanes, None)
                if rest % spec.lanes:
                    self._block(image, group, Index.of(whole), 1, rest % spec.lanes, vectors - 1)

    def _block(self, image: Index, group: Index, block: Index, vectors: int, valid: int | None, first: int = 0) -> None:
        g = self.spec.geometry
        tile = self.spec.tile
        for region in regions(Tile(tile.rows, tile.columns, vectors), g.height, g.width):
            with self.b.loop(region.top, region.bottom, region.rows, kind="parallel") as row:
                with self.b.loop(region.left, region.right, region.columns) as column:
                    places = (image, group, block, row.index, column.index)
                    self._tile(places, region, vectors, valid, first)

    def _tile(self, places: tuple[Index, ...], region: Region, vectors: int, valid: int | None, first: int) -> None:
        spec, b = self.spec, self.b
        image, group, block, row, column = places
        shape = (region.rows, region.columns, vectors, spec.lanes)
        packed = group * spec.blocks + block
        start = b.broadcast(b.load(self.use["start"], [packed, first, 0], shape[2:], (1, 2)), shape)
        if spec.storage is not None and spec.storage.scaled and spec.storage.per_channel:
            # One scale for all products of a sum.
            acc = self._accumulate(b.real(0.0, shape), places, packed, shape, first)
            scale = b.load(self.use["weight_scale"], [packed, 0, 0, first, 0, 0], shape[2:], (3, 4))
            acc = b.add(loop.MultiplyAddOp(start, acc, b.broadcast(scale, shape)))
        else:
            acc = self._accumulate(start, places, packed, shape, first)
        use = self.epilogue
        for role in ("multiplier", "bias", "sums"):
            if role in self.use:
                setattr(use, role, b.load(self.use[role], [packed, first, 0], shape[2:], (1, 2)))
        if spec.epilogue.per_row:
            # The same number for all channels of a pixel.
            over, steps = (0, 0, 0, 0), (0, 1, 0, 0)
            use.scale, use.zero = (b.load(self.use[role], [column], shape, over, steps) for role in ("scale", "zero"))
        channel = group * spec.geometry.channels + block * spec.block + first * spec.lanes
        steps = (*spec.spread[1:], spec.lanes, 1)
        if "residual" in self.use:
            place = self._pixel(image, row, column, channel, spec.residual_border, spec.residual_planes)
            use.residual = b.load(self.use["residual"], place, shape, (1, 2, 3, 3), steps, valid)
        result = apply_epilogue(b, spec.epilogue, acc, use)
        place = self._pixel(image, row, column, channel, spec.output_border, spec.output_planes)
        b.store(result, self.use["y"], place, (1, 2, 3, 3), steps, valid)

    def _accumulate(
        self, acc: SSAValue, places: tuple[Index, ...], packed: Index, shape: tuple[int, ...], first: int
    ) -> SSAValue:
        g, spec, b = self.spec.geometry, self.spec, self.b
        image, group, _, row, column = places
        pixels, apart = (*shape[:2], spec.dot), (g.stride[0], g.stride[1] * g.pixel, 1)

        def run(plane: Index, kernel_row: Index, run: Index, carried: SSAValue) -> SSAValue:
            planes = self.plane * g.plane_stride + plane * g.plane_step
            element = column * (g.stride[1] * g.pixel) + run * g.run_step + group * g.group + g.origin[1]
            source_row = row * g.stride[0] + kernel_row * g.row_step + planes + g.origin[0]
            taps = [packed, plane * (g.kernel_rows * g.runs) + kernel_row * g.runs + run]

            def at(place: Index, right: SSAValue, carried: SSAValue) -> SSAValue:
                left = b.load(self.use["x"], [image, source_row, element + place], pixels, (1, 2, 2), apart)
                return b.add(loop.ContractOp(carried, left, right, spec.unsigned and spec.epilogue.integer))

            if spec.storage is not None:
                return self._coded_run(spec.storage, taps, first, shape, carried, at)
            with b.loop(0, spec.steps, carry=[carried]) as steps:
                place = [*taps, steps.index, first, 0, 0]
                right = b.load(self.use["weight"], place, (*shape[2:], spec.dot), (3, 4, 5))
                right = right if spec.half is None else b.add(loop.WidenHalfOp(right, HALVES[spec.half]))
                steps.carry(at(steps.index * spec.dot, right, steps.carried[0]))
            return steps.results[0]

        def plane(index: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            with b.loop(0, g.kernel_rows, carry=carried) as rows:
                with b.loop(0, g.runs, carry=rows.carried) as runs:
                    runs.carry(run(index, rows.index, runs.index, runs.carried[0]))
                rows.carry(*runs.results)
            return rows.results

        if g.planes == 1:
            return plane(Index(), [acc])[0]
        with b.loop(0, g.planes, carry=[acc]) as planes:
            planes.carry(*plane(planes.index, planes.carried))
        return planes.results[0]

    def _coded_run(
        self, held: Storage, taps: Sequence[Index], first: int, shape: tuple[int, ...], acc: SSAValue,
        at: Callable[[Index, SSAValue, SSAValue], SSAValue],
    ) -> SSAValue:  # fmt: skip
        """A run of a weight in codes, made reals group by group."""
        b, tile = self.b, (*shape[2:], 1)
        # Sums of groups are scaled where that takes less than scaling the weights, which all pixels of a tile share.
        least = 4 if shape[:2] == (1, 1) else _LONG_GROUP
        late = held.group >= least and held.scaled and not held.per_channel and (least == 4 or not held.nibbles)

        def scaled(group: Index, acc: SSAValue) -> SSAValue:
            place = [taps[0], taps[1] if held.rows > 1 else 0, group, first, 0, 0]

            def load(name: str) -> SSAValue:
                return b.load(self.use[name], place, tile, (3, 4, 5))

            early = not held.per_channel and not late
            use = decoder(b, held, load, self.use.get("weight_table"), early)
            if not late:
                return self._group(use, [*taps, group * held.held], first, tile, acc, group * held.group, at)
            total = self._group(
                use, [*taps, group * held.held], first, tile, b.real(0.0, shape), group * held.group, at
            )
            factor = b.load(self.use["weight_scale"], place, shape[2:], (3, 4))
            return b.add(loop.MultiplyAddOp(acc, total, b.broadcast(factor, shape)))

        with b.loop(0, held.groups, carry=[acc]) as groups:
            groups.carry(scaled(groups.index, groups.carried[0]))
        return groups.results[0]

    def _group(
        self, use: Decoder, place: Sequence[Index], first: int, tile: tuple[int, ...], acc: SSAValue, element: Index,
        at: Callable[[Index, SSAValue, SSAValue], SSAValue],
    ) -> SSAValue:  # fmt: skip
        """The products of one group; of an odd number of nibbles the last one has a byte to itself."""
        b, held = self.b, use.storage
        codes = 2 if held.nibbles else 1

        def reals(step: Index | int) -> list[SSAValue]:
            here = [*place[:2], place[2] + step, first, 0, 0]
            return use.reals(b.load(self.use["weight"], here, tile, (3, 4, 5)))

        with b.loop(0, held.group // codes, carry=[acc]) as nest:
            total = nest.carried[0]
            for half, right in enumerate(reals(nest.index)):
                total = at(element + nest.index * codes + half, right, total)
            nest.carry(total)
        if held.group % codes == 0:
            return nest.results[0]
        return at(element + (held.group - 1), reals(held.held - 1)[0], nest.results[0])

    def _pixel(
        self, image: Index, row: Index, column: Index, channel: Index, border: Border, planes: tuple[int, int]
    ) -> list[Index | int]:
        outer, down, across = self.spec.spread
        plane = image * planes[0] + self.plane * outer + planes[1]
        return [plane, row * down + border[0], column * across + border[2], channel]
