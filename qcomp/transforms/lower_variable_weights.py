# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lower-variable-weights: a linear or convolution whose weight is computed becomes a matmul.

    %y = nn.linear %x, %w bias(%b) : tensor<2x5xf32>, tensor<7x5xf32>, tensor<7xf32>
 => %v = nn.permute %w {dims = array<i64: 1, 0>} : tensor<7x5xf32> -> tensor<5x7xf32>
    %m = nn.matmul %x, %v
    %y = nn.add %m, %b

Kernels of linear and convolution read a weight that was packed ahead of time; one that is known at run time only is
read where it lies, and so are integers, for which there are no such kernels. A convolution gathers its windows first:
pad, one `nn.take` for each spatial dimension, and a permute bring them into the columns of a matrix [groups,
channels * taps, pixels]. A transposed convolution is one over its input with zeros between the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.nn import (
    AddOp,
    CastOp,
    ClampOp,
    Conv1dOp,
    Conv2dOp,
    Conv3dOp,
    ConvolutionOp,
    ConvTransposeOp,
    LinearOp,
    MatmulOp,
    MovementOp,
    PadOp,
    PermuteOp,
    ReshapeOp,
    SliceOp,
    TakeOp,
    WeightedOp,
)
from qcomp.dialects.nn.base import UNKNOWN, ints, shape, tensor
from qcomp.dialects.quant import DequantizeDynamicOp, DequantizeOp, encoding_of
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant


class LowerVariableWeight(Rule[WeightedOp, bool]):
    """linear(x, w) => matmul(x, permute(w)), convolution(x, w) => matmul(w, windows(x)); bias and residual added.

    Precondition: the weight is neither a constant nor one dequantized and moved, or there is no kernel for the element
    type; the op does not compute on codes; all sizes of a convolution but the batch are known.
    """

    matches: ClassVar = WeightedOp
    makes: ClassVar = (MatmulOp, AddOp)

    def plan(self, op: WeightedOp) -> bool | Refusal | None:
        if _is_constant(op.weight) and _has_kernel(op):
            return None
        if any(encoding_of(value.type) is not None for value in (*op.operands, op.result)):
            return Refusal("computes on codes")
        if isinstance(op, LinearOp):
            return True
        if not isinstance(op, ConvolutionOp | ConvTransposeOp):
            return Refusal(f"the weight of {op.name} is no constant")
        inner = (*shape(op.input)[1:], *shape(op.weight), *shape(op.result)[1:])
        if UNKNOWN in (shape(op.input)[0], *inner) or any(map(is_symbolic, inner)):
            return Refusal("sizes other than the batch are not known")
        return True

    def apply(self, op: WeightedOp, plan: bool, rewriter: Rewriter) -> None:
        steps: list[Operation] = []
        match op:
            case LinearOp():
                value = _linear(op, steps)
            case ConvTransposeOp():
                value = _transposed(op, steps)
            case _:
                value = _convolution(cast(ConvolutionOp, op), steps)
        addends: list[SSAValue] = []
        if op.bias is not None:
            rank = len(shape(op.result))
            view = (*shape(op.bias), *(1,) * (rank - 1 - op.channel_axis % rank))
            addends.append(op.bias if len(view) == 1 else _add(steps, ReshapeOp(op.bias, view)))
        if op.residual is not None:
            addends.append(op.residual)
        if not addends and op.activation is not None:
            value = _add(steps, ClampOp.of(value, *op.activation.bounds))
        for position, addend in enumerate(addends):
            last = position == len(addends) - 1
            value = _add(steps, AddOp(value, addend, tensor(op.result), op.activation if last else None))
        rewriter.replace(op, *steps)


def _has_kernel(op: WeightedOp) -> bool:
    """Whether the op is lowered for its element type, as far as it is lowered at all."""
    from qcomp.transforms.lower_to_loop.registry import computed_element, lowered_elements

    element, elements = computed_element(op), lowered_elements(type(op))
    return element is None or not elements or str(element) in elements


def _is_constant(value: SSAValue) -> bool:
    """Whether `value` is a constant, or one dequantized, cast and moved, which later passes make one."""
    while constant(value) is None:
        owner = value.owner
        if not isinstance(owner, MovementOp | CastOp | DequantizeOp | DequantizeDynamicOp):
            return False
        value = owner.operands[0]
    return True


def _add(steps: list[Operation], step: Operation) -> SSAValue:
    steps.append(step)
    return step.results[0]


def _linear(op: LinearOp, steps: list[Operation]) -> SSAValue:
    weight = _add(steps, PermuteOp(op.weight, (1, 0)))
    if len(shape(op.input)) > 1:
        return _add(steps, MatmulOp(op.input, weight))
    row = _add(steps, ReshapeOp(op.input, (1, *shape(op.input))))
    return _add(steps, ReshapeOp(_add(steps, MatmulOp(row, weight)), shape(op.result)))


def _convolution(op: ConvolutionOp, steps: list[Operation]) -> SSAValue:
    (batch, channels, *_), (outputs, inner, *kernel) = shape(op.input), shape(op.weight)
    pixels, groups = shape(op.result)[2:], op.groups.value.data
    value: SSAValue = op.input
    if any(map(any, op.padding_pairs)):
        low, high = zip(*op.padding_pairs, strict=True)
        value = _add(steps, PadOp(value, (0, 0, *low), (0, 0, *high), 0.0))
    for axis, (taps, count) in enumerate(zip(kernel, pixels, strict=True)):
        indices = _window(taps, count, ints(op.dilation)[axis], ints(op.stride)[axis])
        value = _add(steps, TakeOp(value, 2 + axis, indices))
    split = [size for pair in zip(kernel, pixels, strict=True) for size in pair]
    value = _add(steps, ReshapeOp(value, (batch, groups, channels // groups, *split)))
    spatial = len(kernel)
    order = (0, 1, 2, *(3 + 2 * axis for axis in range(spatial)), *(4 + 2 * axis for axis in range(spatial)))
    value = _add(steps, PermuteOp(value, order))
    depth = inner * prod(kernel)
    columns = _add(steps, ReshapeOp(value, (batch, groups, depth, prod(pixels))))
    rows = _add(steps, ReshapeOp(op.weight, (1, groups, outputs // groups, depth)))
    return _add(steps, ReshapeOp(_add(steps, MatmulOp(rows, columns)), (batch, outputs, *pixels)))


def _transposed(op: ConvTransposeOp, steps: list[Operation]) -> SSAValue:
    """The convolution with the flipped kernel of the input with stride - 1 zeros between its elements."""
    value, weight = op.input, op.weight
    kernel, windows = shape(weight)[2:], zip(ints(op.dilation), ints(op.output_padding), strict=True)
    for axis, stride in enumerate(ints(op.stride), 2):
        value = _spread(value, axis, stride, steps)
        weight = _add(steps, TakeOp(weight, axis, range(kernel[axis - 2])[::-1]))
    reach = [(step * (taps - 1), extra) for taps, (step, extra) in zip(kernel, windows, strict=True)]
    padding = (*(size for size, _ in reach), *(size + extra for size, extra in reach))
    plain = _CONVOLUTIONS[op.SPATIAL](
        value, weight, padding=padding, dilation=ints(op.dilation), groups=op.groups.value.data
    )
    result = _convolution(plain, steps)
    plain.erase()
    for axis, cut in enumerate(ints(op.padding), 2):
        if cut:
            result = _add(steps, SliceOp(result, axis, cut, shape(result)[axis] - cut))
    return result


def _spread(value: SSAValue, axis: int, stride: int, steps: list[Operation]) -> SSAValue:
    """`value` with stride - 1 zeros between the elements of dimension `axis`."""
    sizes = shape(value)
    if stride == 1:
        return value
    split = _add(steps, ReshapeOp(value, (*sizes[: axis + 1], 1, *sizes[axis + 1 :])))
    none = (0,) * (axis + 1)
    high = (*none, stride - 1, *(0 for _ in sizes[axis + 1 :]))
    wide = _add(steps, PadOp(split, (0,) * len(high), high, 0.0))
    flat = _add(steps, ReshapeOp(wide, (*sizes[:axis], sizes[axis] * stride, *sizes[axis + 1 :])))
    return _add(steps, SliceOp(flat, axis, 0, (sizes[axis] - 1) * stride + 1))


_CONVOLUTIONS: dict[int, type[ConvolutionOp]] = {1: Conv1dOp, 2: Conv2dOp, 3: Conv3dOp}


def _window(taps: int, count: int, dilation: int, stride: int) -> Sequence[int]:
    """For every tap, the elements that it meets at the output pixels."""
    return [tap * dilation + pixel * stride for tap, pixel in product(range(taps), range(count))]


@dataclass(frozen=True)
class LowerVariableWeightsPass(QcompPass):
    """Turn linears and convolutions with computed weights into matmuls."""

    name = "lower-variable-weights"
    letter: ClassVar[Letter] = Letter.REAL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [LowerVariableWeight()])
