# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One sample through qcomp, compared with eager torch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

import qcomp
from qcomp.backend.signature import interface_of
from qcomp.dialects.constant import Array
from tools.conformance.samples import Sample

EQUAL, REFUSED, NOT_EXPORTED, WRONG = "equal", "refused", "not exported", "WRONG"
CLASSES = (EQUAL, REFUSED, NOT_EXPORTED, WRONG)
_RELATIVE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""Of the largest value of a result. Contractions are held to no more than this."""
_ELEMENT = {torch.float64: 1e-7, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""Of each element, below a floor of `_RELATIVE` times a tenth of the largest."""


@dataclass(frozen=True)
class Outcome:
    """One of `CLASSES`, and why."""

    kind: str
    reason: str = ""


def judge(sample: Sample, emit: bool = False, undefined: frozenset[int] = frozenset()) -> Outcome:
    """Export `sample`, import and interpret it, with `emit` also compile and run it, and compare with eager.

    undefined: results of which types and shapes are compared only.
    """
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            written = _copies(sample.inputs)
            expected = _leaves(sample(*written))
            program = torch.export.export(sample, _copies(sample.inputs), strict=False)
        except Exception as problem:  # torch raises errors of any class
            return Outcome(NOT_EXPORTED, _short(problem))
        try:
            return _compare(program, sample, expected, written, emit, undefined)
        except qcomp.QcompError as problem:
            if problem.code == "internal":
                return Outcome(WRONG, _short(problem))
            return Outcome(REFUSED, f"{problem.code}: {_short(problem)}")
        except Exception as problem:  # a crash of qcomp
            return Outcome(WRONG, _short(problem))


def _compare(
    program: Any,
    sample: Sample,
    expected: Sequence[object],
    written: Sequence[torch.Tensor],
    emit: bool,
    undefined: frozenset[int],
) -> Outcome:
    """`written`: the inputs as the call left them."""
    module = qcomp.from_torch(program)
    given = [to_array(value) for value in sample.inputs]
    tensors = [value for value in expected if isinstance(value, torch.Tensor)]
    tensors += [written[place] for place in interface_of(module).written]
    # What is made from nothing, such as a window, is made from numbers around 1 that may cancel.
    floor = 1e-30 if given else 1e-7
    problem = difference(qcomp.interpret(module, *given), tensors, undefined, floor)
    if problem:
        return Outcome(WRONG, f"interpreted: {problem}")
    if emit:
        artifact = qcomp.compile(module, opt_level=1)
        problem = difference(artifact.run(given), tensors, undefined, floor)
        if problem:
            return Outcome(WRONG, f"compiled: {problem}")
    return Outcome(EQUAL)


def difference(
    found: Sequence[Array],
    expected: Sequence[torch.Tensor],
    undefined: frozenset[int] = frozenset(),
    floor: float = 1e-30,
) -> str:
    """How `found` departs from `expected`: whole numbers in bits, floats within tolerance; empty if it does not.

    Floats that differ by no more than `floor` are equal.
    """
    if len(found) != len(expected):
        return f"{len(found)} results, eager has {len(expected)}"
    for index, (have, want) in enumerate(zip(found, expected, strict=True)):
        array = to_array(want)
        if have.dtype != array.dtype or have.shape != array.shape:
            return f"result {index} is {have.dtype}{list(have.shape)}, eager {array.dtype}{list(array.shape)}"
        problem = "" if index in undefined else _values(have, want, floor)
        if problem:
            return f"result {index}: {problem}"
    return ""


def _values(have: Array, want: torch.Tensor, floor: float) -> str:
    if not want.dtype.is_floating_point:
        differ = have != to_array(want)
        return f"{int(differ.sum())} of {differ.size} differ" if differ.any() else ""
    left, right = to_tensor(have, want.dtype).double().numpy(), want.double().numpy()
    with np.errstate(all="ignore"):
        odd = ~np.isfinite(right)
        same = np.where(odd, (left == right) | (np.isnan(left) & np.isnan(right)), True)
        largest = float(np.abs(right[~odd]).max(initial=0.0))
        allowed = np.maximum(_ELEMENT[want.dtype] * np.abs(right), _RELATIVE[want.dtype] * 0.1 * largest)
        near = np.where(odd, same, np.abs(left - right) <= np.maximum(allowed, floor))
    if near.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~near)[0])
    return f"{int((~near).sum())} of {near.size} differ, first {list(place)}: {left[place]!r} for {right[place]!r}"


def to_array(value: torch.Tensor) -> Array:
    """`value` as qcomp holds it: row-major, bfloat16 as its bits."""
    plain = value.detach().resolve_conj().resolve_neg()
    bits = plain.view(torch.uint16) if plain.dtype == torch.bfloat16 else plain
    return np.array(bits.numpy(), order="C")


def to_tensor(array: Array, dtype: torch.dtype) -> torch.Tensor:
    """The inverse of `to_array`."""
    plain = torch.from_numpy(np.array(array))  # pyright: ignore[reportUnknownMemberType]
    return plain.view(torch.bfloat16) if dtype == torch.bfloat16 else plain


def _copies(values: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return tuple(value.clone() for value in values)


def _leaves(result: object) -> list[object]:
    return list(pytree.tree_leaves(result))


def _short(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"[:400]
