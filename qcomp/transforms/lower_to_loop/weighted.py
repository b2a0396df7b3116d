# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What convolutions and linears share before any loop is chosen: constants, the integer plan, what the kernel writes.

Input and weight in codes mean an integer plan; else the kernel computes in float32 on reals, dequantized where they are
codes. What its epilogue does not do follows as elementwise kernels: a residual in reals and the activation after it,
and the quantization of a float32 result.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.memref import AllocOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.constant import Array
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.integer_plan import IntegerPlan, channel_sums, integer_plan
from qcomp.interpreter.reference.quantize import dequantize
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import lower_elementwise
from qcomp.transforms.lower_to_loop.epilogue import Epilogue
from qcomp.transforms.lower_to_loop.halves import half_of
from qcomp.transforms.lower_to_loop.movement import convert
from qcomp.transforms.lower_to_loop.through_reals import reals_of, written_in_reals


@dataclass(frozen=True)
class Task:
    """A contraction to lower. weight: codes with a plan, else reals or what stands for them. bias: reals, for a
    contraction in float32.

    target: what the kernel writes. residual: whether its epilogue adds the op's. half: "f16" or "bf16" when the weight
    came from those. source: the weight as an operand.
    """

    plan: IntegerPlan | None
    epilogue: Epilogue
    weight: Array | CodedWeight
    bias: Array | None
    target: Buffer
    residual: bool
    half: str | None = None
    source: SSAValue | None = None


@contextmanager
def contraction_task(lowering: Lowering, op: nn.WeightedOp, target: Buffer) -> Generator[Task]:
    """The kernel to emit inside the block; what follows it is emitted at the end."""
    where = op.location
    plan, coded = plan_of(lowering, op), lowering.coded(op.weight)
    weight = constant(lowering, op.weight, "weight") if coded is None else coded
    bias, half = None, half_of(lowering, op.weight) if coded is None else None
    if plan is None:
        weight = weight if isinstance(weight, CodedWeight) else _real(weight, op.weight)
        bias = None if op.bias is None else _real(constant(lowering, op.bias, "bias"), op.bias)
    bounds = op.activation.bounds if op.activation is not None else None
    if op.residual is None or (plan is not None and plan.residual is not None):
        epilogue = Epilogue(False, clamp=bounds) if plan is None else Epilogue.of(plan)
        if plan is not None:
            yield Task(plan, epilogue, weight, bias, target, op.residual is not None, source=op.weight)
            return
        with written_in_reals(lowering, target, where) as reals:
            yield Task(plan, epilogue, weight, bias, reals, False, half, op.weight)
        return
    if plan is not None and plan.output is not None:
        raise QcompError("a quantized result takes a quantized residual", code="not-integer")
    bare = None if plan is None else replace(plan, activation=None)
    with written_in_reals(lowering, target, where) as reals:
        scratch = Buffer(lowering.allocate(reals.type, where), reals.sizes, reals.layout, None, reals.element)
        epilogue = Epilogue(False) if bare is None else Epilogue.of(bare)
        yield Task(bare, epilogue, weight, bias, scratch, False, half, op.weight)
        operands = [scratch, reals_of(lowering, lowering.operand(op.residual), where)]
        lower_elementwise(lowering, operands, reals, where, "add", ("add", bounds), partial(_sum, bounds))


def _sum(bounds: tuple[float, float] | None, b: Builder, x: Sequence[SSAValue]) -> SSAValue:
    value = b.add(arith.AddfOp(x[0], x[1]))
    return value if bounds is None else b.add(loop.ClampOp(value, *bounds))


def constant(lowering: Lowering, value: SSAValue, role: str) -> Array:
    """The array of a constant operand. Raises QcompError when it is not constant."""
    array = lowering.array(value)
    if array is None:
        raise QcompError(f"{role} must be a constant", code="lower")
    return array


def _real(array: Array, value: SSAValue) -> Array:
    encoding = encoding_of(value.type)
    return array if encoding is None else dequantize(array, encoding)


def plan_of(lowering: Lowering, op: nn.WeightedOp) -> IntegerPlan | None:
    """The integer plan of an op on codes; None for one that computes in float32."""
    source, held = encoding_of(op.input.type), encoding_of(op.weight.type)
    if source is None or held is None:
        return None
    return integer_plan(
        constant(lowering, op.weight, "weight"), source, held, encoding_of(op.result.type),
        bias=None if op.bias is None else constant(lowering, op.bias, "bias"),
        bias_encoding=encoding_of(op.bias.type) if op.bias is not None else None,
        residual_encoding=encoding_of(op.residual.type) if op.residual is not None else None,
        activation=op.activation.bounds if op.activation is not None else None,
    )  # fmt: skip


def in_arena(lowering: Lowering, x: Buffer, run: int, where: LocationAttr) -> Buffer:
    """`x`, or a copy when reading the last group of a run would go over the end of what the caller holds."""
    base = x.value
    while isinstance(base.owner, loop.ViewOp):
        base = base.owner.source
    if isinstance(base.owner, AllocOp) or str(x.element) != "i8" or run % lowering.target.dot_group == 0:
        return x
    return convert(lowering, x, x.layout, where)


def start_values(plan: IntegerPlan, taps: Array) -> Array:
    """What accumulators start from: -zx * sum(wq), and a bias in codes."""
    return (plan.start - plan.input.zero_point * channel_sums(taps)).astype(np.int32)
