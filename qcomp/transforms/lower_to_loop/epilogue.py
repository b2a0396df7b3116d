# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What happens to an accumulator tile in registers: scale, bias, residual, activation, rounding, narrowing.

The formula is that of `qcomp.interpreter.reference.integer_plan`. Constants that differ between layers of equal shape
come from buffers, so that those layers share a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, f32, i32
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop
from qcomp.dialects.dims import memref_of
from qcomp.interpreter.reference.integer_plan import IntegerPlan, largest_distance
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering

ROUND_LIMIT = 2.0**22


@dataclass(frozen=True)
class Epilogue:
    """What a kernel's code depends on. `integer` False: a float accumulator, where only `clamp` applies.

    biased: a bias is added; quantized: the result is codes in [low, high], its zero point not 0 if `offset`;
    residual: one is added, read as `residual_unsigned`, its zero point not 0 if `residual_offset`; bounded: rounding
    cannot saturate; clamp: real bounds for a float result.
    runtime: scale and zero point of the input are read, one of each or one per output pixel (`per_row`), and the result
    is float.
    """

    integer: bool
    biased: bool = False
    quantized: bool = False
    low: int = 0
    high: int = 0
    residual: bool = False
    residual_unsigned: bool = False
    bounded: bool = False
    clamp: tuple[float, float] | None = None
    offset: bool = False
    residual_offset: bool = False
    runtime: bool = False
    per_row: bool = False

    @property
    def reads_scales(self) -> bool:
        """Whether scales of the result or the residual take part."""
        return self.integer and (self.quantized or self.residual)

    @property
    def reads_zero_points(self) -> bool:
        """Whether zero points of the result or the residual take part."""
        return self.offset or self.residual_offset

    def arguments(self) -> list[tuple[str, MemRefType[Attribute]]]:
        """The kernel's arguments that are the same for all channels."""
        found: list[tuple[str, MemRefType[Attribute]]] = []
        if self.reads_scales:
            found.append(("scales", memref_of(f32, (2,))))
        if self.reads_zero_points:
            found.append(("zero_points", memref_of(i32, (2,))))
        return found

    def constants(self, lowering: Lowering, plan: IntegerPlan) -> list[SSAValue]:
        """The buffers of `arguments`."""
        found: list[SSAValue] = []
        if self.reads_scales:
            scales = [1 if value is None else value for value in (plan.inverse, plan.residual_multiplier)]
            found.append(lowering.constant(np.array(scales, np.float32), f32))
        if self.reads_zero_points:
            zeros = [0 if encoding is None else encoding.zero_point for encoding in (plan.output, plan.residual)]
            found.append(lowering.constant(np.array(zeros, np.int32), i32))
        return found

    @staticmethod
    def of(plan: IntegerPlan) -> Epilogue:
        """The epilogue of an integer contraction."""
        residual = plan.residual
        return Epilogue(
            True, plan.bias is not None, plan.output is not None, plan.act_min, plan.act_max,
            residual is not None, residual is not None and not residual.signed,
            _largest(plan) <= ROUND_LIMIT, None if plan.output is not None else plan.activation,
            plan.output is not None and plan.output.zero_point != 0, residual is not None and residual.zero_point != 0,
        )  # fmt: skip


def _largest(plan: IntegerPlan) -> float:
    """The largest magnitude that is rounded, with a margin for the rounding on the way."""
    reached = plan.bound * plan.multiplier.astype(np.float64)
    if plan.bias is not None:
        reached += np.abs(plan.bias)
    largest = float(reached.max(initial=0.0))
    if plan.residual is not None and plan.residual_multiplier is not None:
        largest += largest_distance(plan.residual) * float(plan.residual_multiplier)
    return largest * float(plan.inverse or 1) * 1.0001


@dataclass
class Operands:
    """Tiles and scalars that an epilogue reads. multiplier, bias, sums: tiles over channels; zero points: i32 scalars;
    scale, zero: of the input, scalars or tiles of the result's shape.
    """

    bias: SSAValue | None = None
    multiplier: SSAValue | None = None
    residual: SSAValue | None = None
    inverse: SSAValue | None = None
    residual_multiplier: SSAValue | None = None
    zero_point: SSAValue | None = None
    residual_zero_point: SSAValue | None = None
    sums: SSAValue | None = None
    scale: SSAValue | None = None
    zero: SSAValue | None = None

    def load_scalars(self, b: Builder, spec: Epilogue, use: Mapping[str, SSAValue]) -> None:
        """Read the scalars that `spec` needs from the kernel's arguments `use`."""
        if spec.offset:
            self.zero_point = b.load(use["zero_points"], [0])
        if spec.residual_offset:
            self.residual_zero_point = b.load(use["zero_points"], [1])
        if spec.quantized:
            self.inverse = b.load(use["scales"], [0])
        if spec.runtime and not spec.per_row:
            self.scale, self.zero = b.load(use["scale"], [0]), b.load(use["zero"], [0])
        if spec.residual:
            self.residual_multiplier = b.load(use["scales"], [1])


def apply_epilogue(b: Builder, spec: Epilogue, acc: SSAValue, use: Operands) -> SSAValue:
    """The result tile of an accumulator tile."""
    shape = loop.tile_shape(acc.type)
    if not spec.integer:
        return _clamped(b, spec, acc)
    factor = use.multiplier
    if spec.runtime:
        acc, factor = _by_parameters(b, acc, use)
    total = _scaled(b, acc, factor, shape)
    if spec.biased and use.bias is not None:
        total = b.add(arith.AddfOp(total, b.broadcast(use.bias, shape)))
    if spec.residual and use.residual is not None:
        codes = b.add(loop.ExtendOp(use.residual, spec.residual_unsigned))
        if use.residual_zero_point is not None:
            codes = b.difference(codes, b.broadcast(use.residual_zero_point, shape))
        total = b.add(arith.AddfOp(total, _scaled(b, codes, use.residual_multiplier, shape)))
    if not spec.quantized:
        return _clamped(b, spec, total)
    if use.inverse is not None:
        total = b.add(arith.MulfOp(total, b.broadcast(use.inverse, shape)))
    codes = b.add(loop.RoundOp(total, spec.bounded))
    if use.zero_point is not None:
        codes = b.sum(codes, b.broadcast(use.zero_point, shape))
    return b.add(loop.NarrowOp(codes, spec.low, spec.high))


def _by_parameters(b: Builder, acc: SSAValue, use: Operands) -> tuple[SSAValue, SSAValue]:
    """acc - zero * sums, and scale * multiplier; see `qcomp.interpreter.reference.dynamic`."""
    shape = loop.tile_shape(acc.type)
    assert use.sums is not None and use.multiplier is not None and use.scale is not None and use.zero is not None
    # One scale for all pixels: the products are those of one pixel.
    inner = shape if loop.tile_shape(use.scale.type) else loop.tile_shape(use.sums.type)
    zeros = b.add(arith.MuliOp(b.broadcast(use.zero, inner), b.broadcast(use.sums, inner)))
    factor = b.add(arith.MulfOp(b.broadcast(use.scale, inner), b.broadcast(use.multiplier, inner)))
    return b.add(arith.SubiOp(acc, b.broadcast(zeros, shape))), factor


def _scaled(b: Builder, codes: SSAValue, factor: SSAValue | None, shape: Sequence[int]) -> SSAValue:
    real = b.add(loop.ToFloatOp(codes))
    return real if factor is None else b.add(arith.MulfOp(real, b.broadcast(factor, shape)))


def _clamped(b: Builder, spec: Epilogue, value: SSAValue) -> SSAValue:
    return value if spec.clamp is None else b.add(loop.ClampOp(value, *spec.clamp))
