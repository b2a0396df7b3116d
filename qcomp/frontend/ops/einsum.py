# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products over named dimensions: einsum, tensordot, bilinear, kron."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op

Labels = tuple[object, ...]
"""A name for each dimension: a letter, or the number of a dimension that ``...`` stands for, the last one 0."""


def contract(b: Builder, left: SSAValue, right: SSAValue, names: tuple[Labels, Labels, Labels]) -> SSAValue:
    """The product of two tensors with dimensions called names[0] and names[1], summed to those of names[2]."""
    wanted = set(names[2])
    every = [set(names[0]), set(names[1])]
    sides: list[SSAValue] = []
    labels: list[Labels] = []
    for value, own, other in ((left, names[0], every[1]), (right, names[1], every[0])):
        sides.append(arithmetic.sum_axes_where(b, value, own, wanted | other))
        labels.append(tuple(label for label in own if label in wanted | other))
    sizes = _sizes(labels, sides)
    both = [label for label in labels[0] if label in labels[1]]
    batch, inner = [x for x in both if x in wanted], [x for x in both if x not in wanted]
    outer = [[label for label in own if label not in both] for own in labels]
    if inner:
        value = _product(b, sides, labels, (batch, inner, outer), sizes)
    else:
        aligned = [
            _aligned(b, side, own, [*batch, *outer[0], *outer[1]]) for side, own in zip(sides, labels, strict=True)
        ]
        value = arithmetic.multiply(b, aligned[0], aligned[1])
    found = [*batch, *outer[0], *outer[1]]
    return permute_to(b, value, [found.index(label) for label in names[2]])


def _sizes(labels: Sequence[Labels], values: Sequence[SSAValue]) -> dict[object, int]:
    sizes: dict[object, int] = {}
    for own, value in zip(labels, values, strict=True):
        for label, size in zip(own, shape_of(value), strict=True):
            known = sizes.get(label, 1)
            if 1 not in (known, size) and known != size:
                raise QcompError(f"dimension {label} has sizes {known} and {size}", code="malformed-graph")
            sizes[label] = size if known == 1 else known
    return sizes


def _aligned(b: Builder, value: SSAValue, own: Labels, order: Sequence[object]) -> SSAValue:
    """`value` with dimensions in `order`, 1 where it lacks one."""
    kept = [label for label in order if label in own]
    moved = permute_to(b, value, [own.index(label) for label in kept])
    sizes = dict(zip(kept, shape_of(moved), strict=True))
    return reshape_to(b, moved, [sizes.get(label, 1) for label in order])


def _product(
    b: Builder, sides: Sequence[SSAValue], labels: Sequence[Labels],
    parts: tuple[Sequence[object], Sequence[object], Sequence[Sequence[object]]], sizes: dict[object, int],
) -> SSAValue:  # fmt: skip
    """One matmul: batch dimensions, what only one side has, and the dimensions summed over."""
    batch, inner, outer = parts
    matrices: list[SSAValue] = []
    for side, own, order in zip(sides, labels, ([outer[0], inner], [inner, outer[1]]), strict=True):
        names = [*batch, *order[0], *order[1]]
        value = b.expand(_aligned(b, side, own, names), [sizes[label] for label in names])
        lead = [prod(sizes[label] for label in batch)] if batch else []
        matrices.append(reshape_to(b, value, (*lead, *(prod(sizes[label] for label in part) for part in order))))
    value = b.add(nn.MatmulOp(matrices[0], matrices[1]))
    return reshape_to(b, value, [sizes[label] for label in (*batch, *outer[0], *outer[1])])


def _labels(text: str, rank: int) -> Labels:
    """The names of the dimensions of an operand written `text`."""
    before, dots, after = text.partition("...")
    filled = rank - len(before) - len(after)
    named = before + after
    if filled < 0 or (filled and not dots) or not (named.isalpha() or not named):
        raise QcompError(f"einsum operand {text[:40]!r} for a tensor of rank {rank}", code="malformed-graph")
    found = (*before, *range(filled)[::-1], *after)
    if len(set(found)) < len(found):
        raise QcompError("einsum over a diagonal is not supported", code="unsupported-op")
    return found


@op("einsum.default")
def einsum(b: Builder, node: Node) -> Result:
    """Operands are multiplied from left to right; dimensions not in the result are summed as soon as may be."""
    values = b.tensors(node, "tensors")
    inputs, arrow, output = b.text(node, "equation").replace(" ", "").partition("->")
    texts = inputs.split(",")
    if len(texts) != len(values):
        raise QcompError(f"einsum of {len(values)} operands for {len(texts)} names", code="malformed-graph")
    labels = [_labels(text, len(shape_of(value))) for text, value in zip(texts, values, strict=True)]
    dots = max((sum(isinstance(label, int) for label in own) for own in labels), default=0)
    every = [label for own in labels for label in own]
    if arrow:
        wanted = _labels(output, len(output.replace("...", "")) + (dots if "..." in output else 0))
    else:
        single = {str(label) for label in every if not isinstance(label, int) and every.count(label) == 1}
        wanted = (*range(dots)[::-1], *sorted(single))
    if not set(wanted) <= set(every):
        raise QcompError("einsum result names a dimension that no operand has", code="malformed-graph")
    value, own = values[0], labels[0]
    for index in range(1, len(values)):
        later = {label for rest in labels[index + 1 :] for label in rest} | set(wanted)
        kept = tuple(dict.fromkeys(label for label in (*own, *labels[index]) if label in later))
        value = contract(b, value, values[index], (own, labels[index], kept))
        own = kept
    value = arithmetic.sum_axes_where(b, value, own, set(wanted))
    own = tuple(label for label in own if label in wanted)
    return permute_to(b, value, [own.index(label) for label in wanted])


@op("tensordot.default")
def tensordot(b: Builder, node: Node) -> Result:
    """Products summed over pairs of dimensions."""
    left, right = b.tensor(node, "self"), b.tensor(node, "other")
    pairs = [
        [axis_of(axis, len(shape_of(side))) for axis in b.integers(node, name)]
        for side, name in ((left, "dims_self"), (right, "dims_other"))
    ]
    first: list[object] = [("left", axis) for axis in range(len(shape_of(left)))]
    second: list[object] = [("right", axis) for axis in range(len(shape_of(right)))]
    for one, other in zip(*pairs, strict=True):
        second[other] = first[one]
    rest = [label for label in (*first, *second) if (label in first) != (label in second)]
    return contract(b, left, right, (tuple(first), tuple(second), tuple(rest)))


@op("bilinear.default")
def bilinear(b: Builder, node: Node) -> Result:
    """x1 [..., I], x2 [..., J] and weight [O, I, J]: x1 @ weight[o] @ x2 for each o, plus a bias."""
    x1, x2, weight = (b.tensor(node, name) for name in ("input1", "input2", "weight"))
    bias = b.optional(node, "bias")
    lead = tuple(range(len(shape_of(x1)) - 1))
    half = contract(b, x1, weight, ((*lead, "i"), ("o", "i", "j"), (*lead, "o", "j")))
    value = contract(b, half, x2, ((*lead, "o", "j"), (*lead, "j"), (*lead, "o")))
    return value if bias is None else arithmetic.add(b, value, bias)


@op("kron.default")
def kron(b: Builder, node: Node) -> Result:
    """Each element of the left times all of the right."""
    left, right = b.tensor(node, "self"), b.tensor(node, "other")
    rank = max(len(shape_of(left)), len(shape_of(right)))
    sizes = [(1,) * (rank - len(shape_of(side))) + shape_of(side) for side in (left, right)]
    first = reshape_to(b, left, [size for one in sizes[0] for size in (one, 1)])
    second = reshape_to(b, right, [size for one in sizes[1] for size in (1, one)])
    value = arithmetic.multiply(b, first, second)
    return reshape_to(b, value, [one * other for one, other in zip(*sizes, strict=True)])


@op("_trilinear.default")
def trilinear(b: Builder, node: Node) -> Result:
    """The product of three tensors, each with dimensions of 1 put in at `expand`, summed over `sumdim`."""
    values = [b.tensor(node, f"i{number}") for number in (1, 2, 3)]
    missing = [set(b.integers(node, f"expand{number}")) for number in (1, 2, 3)]
    rank = len(shape_of(values[0])) + len(missing[0])
    first, second, third = (tuple(axis for axis in range(rank) if axis not in gaps) for gaps in missing)
    summed = {axis_of(axis, rank) for axis in b.integers(node, "sumdim")}
    result = tuple(axis for axis in range(rank) if axis not in summed)
    kept = tuple(axis for axis in range(rank) if axis in (*first, *second) and axis in (*third, *result))
    half = contract(b, values[0], values[1], (first, second, kept))
    return contract(b, half, values[2], (kept, third, result))
