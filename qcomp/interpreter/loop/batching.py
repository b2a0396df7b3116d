# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parallel loops run all their iterations at once, and which values then get a leading batch dimension."""

from __future__ import annotations

from math import prod

from xdsl.dialects import func, memref
from xdsl.ir import SSAValue

from qcomp.dialects.loop import ForOp, YieldOp, tile_shape

ELEMENTS = 1 << 16
"""Elements of the largest tile of a batch: about what a second-level cache holds."""

ENOUGH = 16
"""A loop of that many iterations is batched though one inside has more."""

_UNBATCHED = (memref.AllocOp, memref.DeallocOp, func.CallOp)


def perfect_nest(loop: ForOp) -> list[ForOp]:
    """`loop` and the parallel loops inside it that have the body to themselves and bounds of their own."""
    chain = [loop]
    while True:
        body = chain[-1].body.block
        inner = body.first_op
        if not isinstance(inner, ForOp) or inner.next_op is not body.last_op or not is_parallel(inner):
            return chain
        variables = {item.induction for item in chain}
        if variables & {*inner.lower_operands, *inner.upper_operands}:
            return chain
        chain.append(inner)


def is_parallel(loop: ForOp) -> bool:
    """Whether iterations promise not to depend on one another."""
    return loop.kind is not None and loop.kind.data == "parallel"


def plan(loop: ForOp) -> tuple[list[ForOp], set[SSAValue], int] | None:
    """The loops to run as one batch, the values that depend on their variables, how many iterations at a time.

    None when `loop` should run plainly: a buffer is allocated or a function called inside, an inner bound depends on
    the iteration, or a loop inside is worth more.
    """
    if not is_parallel(loop):
        return None
    chain = perfect_nest(loop)
    body = list(chain[-1].body.walk())
    if any(isinstance(op, _UNBATCHED) for op in body):
        return None
    count = _iterations(chain)
    inside = [_iterations(perfect_nest(op)) for op in body if isinstance(op, ForOp) and is_parallel(op)]
    if count < ENOUGH and max(inside, default=0) > count:
        return None
    values = _dependent(chain[-1], {item.induction for item in chain})
    if values is None:
        return None
    largest = max((prod(tile_shape(value.type)) for op in body for value in (*op.operands, *op.results)), default=1)
    return chain, values, max(1, ELEMENTS // max(1, largest))


def _iterations(chain: list[ForOp]) -> int:
    total = 1
    for loop in chain:
        bounds = loop.constant_bounds()
        total *= ENOUGH if bounds is None else len(range(*bounds, loop.step.value.data))
    return total


def _dependent(loop: ForOp, seeds: set[SSAValue]) -> set[SSAValue] | None:
    """The values in `loop` that depend on `seeds`; None when a bound does."""
    values = set(seeds)
    size = 0
    while size != len(values):
        size = len(values)
        for op in loop.body.walk():
            if isinstance(op, ForOp):
                if values & {*op.lower_operands, *op.upper_operands}:
                    return None
                _carry(op, values)
            elif not isinstance(op, YieldOp) and any(value in values for value in op.operands):
                values.update(op.results)
    return values


def _carry(loop: ForOp, values: set[SSAValue]) -> None:
    for init, argument, output, last in zip(
        loop.inits, loop.body.block.args[1:], loop.outputs, loop.terminator.values, strict=True
    ):
        if init in values or last in values:
            values.update((argument, output))
