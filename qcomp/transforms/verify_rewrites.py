# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holding a pass to its letter: the module is run before and after it, on adversarial inputs.

    exact   the same bits (a NaN is a NaN), also with NaN, infinities and -0.0 among the inputs
    code    both modules with contractions, means and sums in float (`unfuse-qdq`): the same bits; and each such op of
            the new module, fed its own operands: at most 1 code from the float op, in at most max(1, n / 1000) of n
            elements, or for a float result within the rounding of the bias and 1e-5 of the largest element. A mean or
            sum that lies halfway between two codes may be either: of means, one in `count` does, and a float sum
            decides by its rounding errors (torch and a sum in float64 differ there as well)
    real    within 1e-4 of the largest element, at most 1 code for codes; dequantize(quantize(x)) counts as x on both
            sides, since rounding to codes turns a change of the last bit into a change of a whole step
    lossy   the same shapes and types

A failure names the pass, the first rule application after which the results differ, and the first element that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from qcomp.dialects.constant import Array
from qcomp.dialects.location import describe
from qcomp.dialects.nn import DynamicLinearOp, MatmulOp, WeightedOp
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp, encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter import interpret
from qcomp.interpreter.dispatch import meaning_of, real_value, store
from qcomp.transforms.adversarial import at_some_sizes, inputs_for, public_functions
from qcomp.transforms.base import Letter
from qcomp.transforms.rewriting import counted_rewrites
from qcomp.transforms.unfuse_qdq import CODE_OPS, UnfuseQdqPass

SEED = 20250101


def apply_verified(step: ModulePass, ctx: Context, module: ModuleOp) -> None:
    """Apply `step` to `module`. Raises QcompError (code "verify-rewrites") when it breaks its letter's promise.

    A pass that declares no letter is held to the strictest one.
    """
    from qcomp.transforms.pipeline import letter_of

    declared = letter_of(step)
    letter = declared or Letter.EXACT
    before = module.clone()
    step.apply(ctx, module)
    difference = check(letter, before, module)
    if difference is None:
        return
    culprit = _culprit(step, ctx, before, letter)
    promise = f"is declared {letter}" if declared else f"declares no letter, so it is held to {letter},"
    raise QcompError(
        f"pass {step.name} {promise} but is not{f' (rule {culprit})' if culprit else ''}: {difference}",
        code="verify-rewrites",
        hint=None if declared else f"declare what it does to numbers: letter = one of {', '.join(Letter)}",
    )


def check(letter: Letter, before: ModuleOp, after: ModuleOp) -> str | None:
    """How `after` breaks the promise of `letter` about `before`; None when it does not.

    Functions that cannot be run before the pass (a call to a declaration, say) are left out.
    """
    before, after = at_some_sizes(before, after)
    pair = _Pair(before, after)
    if letter is Letter.CODE:
        pair = _Pair(_unfused(before), _unfused(after))
    if letter is Letter.REAL:
        pair = _Pair(_without_rounding(before), _without_rounding(after))
    for function in public_functions(before):
        if not _runs(before, function):
            continue
        try:
            problem = _check_function(letter, pair, after, function)
        except QcompError as error:
            problem = f"cannot be run any more: {error}"
        if problem is not None:
            return f"@{function.sym_name.data}: {problem}"
    return None


def _runs(module: ModuleOp, function: FuncOp) -> bool:
    try:
        interpret(module, *inputs_for(function, SEED, False), function=function.sym_name.data)
    except QcompError as error:
        if error.code == "memory":  # What was not run was not verified: it must not pass for it.
            raise
        return False
    return True


@dataclass(frozen=True)
class _Pair:
    before: ModuleOp
    after: ModuleOp


def _check_function(letter: Letter, pair: _Pair, after: ModuleOp, function: FuncOp) -> str | None:
    match letter:
        case Letter.EXACT:
            return _compare(pair, function, _same_bits, (False, True))
        case Letter.CODE:
            return _compare(pair, function, _same_bits, (False, True)) or _check_ops(after, function)
        case Letter.REAL:
            return _compare(pair, function, _close, (False,))
        case Letter.LOSSY:
            return _compare(pair, function, _anything, (False,))


def _culprit(step: ModulePass, ctx: Context, before: ModuleOp, letter: Letter) -> str | None:
    """The rule application that first breaks the promise, found by bisection over how many are done."""
    with counted_rewrites() as total:
        step.apply(ctx, before.clone())
    good, bad, name = 0, total.done, total.last
    while bad - good > 1:
        middle = (good + bad) // 2
        module = before.clone()
        with counted_rewrites(middle) as count:
            step.apply(ctx, module)
        if check(letter, before, module) is None:
            good = middle
        else:
            bad, name = middle, count.last
    return name


def _unfused(module: ModuleOp) -> ModuleOp:
    clone = module.clone()
    UnfuseQdqPass().apply(Context(), clone)
    return clone


def _without_rounding(module: ModuleOp) -> ModuleOp:
    clone = module.clone()
    for op in clone.walk():
        if isinstance(op, DequantizeOp) and isinstance(op.input.owner, QuantizeOp):
            op.result.replace_all_uses_with(op.input.owner.input)
    return clone


Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Compare = Callable[[Array, Array, Encoding | None], Mask]
"""Which elements of two results, of that encoding if any, are too far apart."""


def _compare(pair: _Pair, function: FuncOp, compare: Compare, planted: Sequence[bool]) -> str | None:
    kinds, name = list(function.function_type.outputs), function.sym_name.data
    for plant in planted:
        inputs = inputs_for(function, SEED + plant, plant)
        old = interpret(pair.before, *(array.copy() for array in inputs), function=name)
        new = interpret(pair.after, *(array.copy() for array in inputs), function=name)
        if len(old) != len(new):
            return f"{len(old)} results became {len(new)}"
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            if left.shape != right.shape or left.dtype != right.dtype:
                return f"result {index} was {left.dtype}{list(left.shape)}, is {right.dtype}{list(right.shape)}"
            wrong = compare(left, right, encoding_of(kinds[index]))
            if wrong.any():
                return f"result {index} {_first(left, right, wrong)}"
    return None


def _first(left: Array, right: Array, wrong: Mask) -> str:
    place = tuple(int(axis[0]) for axis in np.nonzero(wrong))
    values = f"{left[place]} before, {right[place]} after"
    return f"differs at {list(place)}: {values} ({int(wrong.sum())} of {wrong.size} elements)"


def _anything(left: Array, right: Array, encoding: Encoding | None) -> Mask:
    return np.zeros(left.shape, np.bool_)


def _same_bits(left: Array, right: Array, encoding: Encoding | None):
    if left.dtype.kind != "f":
        return left != right
    unsigned = np.dtype(f"u{left.dtype.itemsize}")
    bits = (np.ascontiguousarray(item).view(unsigned).reshape(item.shape) for item in (left, right))
    return np.not_equal(*bits) & ~(np.isnan(left) & np.isnan(right))


def _close(left: Array, right: Array, encoding: Encoding | None):
    if encoding is not None:
        return np.abs(left.astype(np.int64) - right.astype(np.int64)) > 1
    if left.dtype.kind != "f":
        return left != right
    return _far(left, right, 0.0, 1e-4)


def _far(left: Array, right: Array, absolute: float, relative: float):
    finite = left[np.isfinite(left)]
    bound = absolute + relative * float(np.abs(finite).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        apart = ~(np.abs(left.astype(np.float64) - right.astype(np.float64)) <= bound)
    return apart & (left != right) & ~(np.isnan(left) & np.isnan(right))


@dataclass
class _Recorder:
    """Checks every contraction, mean and sum on codes against the float op on the operands it had."""

    values: dict[SSAValue, Array]
    problem: str | None = None

    def __call__(self, op: Operation, results: tuple[Array, ...]) -> None:
        self.values.update(zip(op.results, results, strict=True))
        known = all(operand in self.values for operand in op.operands)  # arguments of regions are not
        if self.problem is None and known and isinstance(op, CODE_OPS) and _on_codes(op):
            self.problem = _check_op(op, [self.values[operand] for operand in op.operands], results[0])


def _on_codes(op: Operation) -> bool:
    return isinstance(op, DynamicLinearOp) or encoding_of(op.operands[0].type) is not None


def _check_ops(module: ModuleOp, function: FuncOp) -> str | None:
    inputs, name = inputs_for(function, SEED, False), function.sym_name.data
    body = next(op.body.block for op in public_functions(module) if op.sym_name.data == name)
    recorder = _Recorder(dict(zip(body.args, inputs, strict=True)))
    interpret(module, *inputs, observer=recorder, function=name)
    return recorder.problem


def _check_op(op: Operation, operands: Sequence[Array], result: Array) -> str | None:
    found = meaning_of(type(op))
    assert found is not None
    kinds = [cast(TensorType[Attribute], kind) for kind in op.operand_types]
    with np.errstate(all="ignore"):
        real = found.real(op, [real_value(a, k) for a, k in zip(operands, kinds, strict=True)])
    expected = store(real, op)
    if encoding_of(op.results[0].type) is None:
        wrong = _far(expected, result, _bias_step(op), 1e-5)
        allowed = 0
    else:
        apart = np.abs(expected.astype(np.int64) - result.astype(np.int64))
        apart[(apart == 1) & _is_halfway(op, real)] = 0
        wrong, allowed = (apart > 1, 0) if (apart > 1).any() else (apart > 0, max(1, apart.size // 1000))
    if int(wrong.sum()) <= allowed:
        return None
    place = describe(op.location)
    return f"{op.name}{f' at {place}' if place else ''} {_first(expected, result, wrong)}"


def _is_halfway(op: Operation, real: Array) -> Mask:
    """Where a quantized mean or sum lies halfway between two codes, up to the rounding of a float sum."""
    encoding = encoding_of(op.results[0].type)
    if encoding is None or isinstance(op, WeightedOp | MatmulOp):
        return np.zeros(real.shape, np.bool_)
    scaled = real.astype(np.float64) / encoding.scale
    return np.abs(scaled - np.floor(scaled) - 0.5) <= 2.0**-18 * np.maximum(1.0, np.abs(scaled))


def _bias_step(op: Operation) -> float:
    """Half of the coarsest step that the bias of `op` can be held in."""
    if not isinstance(op, WeightedOp) or op.bias is None:
        return 0.0
    encodings = [encoding_of(value.type) for value in (op.input, op.weight)]
    return 0.5 * float(np.prod([item.scales.max() for item in encodings if item is not None]))
