# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native quantization: a float program gets observers whose encodings come from calibration samples.

Convolutions and linears with constant weights work on codes, and what lies between them does: additions, products,
average pools. Weights are int8, symmetric, a scale per output channel; activations uint8, affine, one scale. What
follows a convolution at once (an activation, an addition) is not rounded in between. Operands of a concatenation share
an encoding; data movement and max pools keep it. Everything else stays in float.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IrRewriter

from qcomp import progress
from qcomp.backend.calibration import Range, Streamed, weight_encoding
from qcomp.backend.compile import import_program, is_quantized
from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.nn.base import shape
from qcomp.dialects.notes import notes_of
from qcomp.dialects.quant import ObserveOp
from qcomp.dialects.state import states_of
from qcomp.errors import QcompError, warn
from qcomp.interpreter import interpret
from qcomp.refusals import RefusalError
from qcomp.suggestions import did_you_mean
from qcomp.transforms.pipeline import run_passes
from qcomp.transforms.qdq_pattern import is_float32
from qcomp.transforms.rewriting import constant, only_user

SCHEMES = ("int8",)
_BEFORE = "O1,fuse-linear,fold-constants,fold-affine,dce"
_MOVES = (
    nn.ReshapeOp, nn.PermuteOp, nn.SliceOp, nn.ExpandOp, nn.PadOp, nn.CatOp, nn.MaxPool2dOp, nn.AmaxOp,
)  # fmt: skip
_BETWEEN = (nn.AddOp, nn.SubOp, nn.MulOp, nn.AvgPool2dOp, nn.AdaptiveAvgPool2dOp, nn.MeanOp)
_CLAMPS = (nn.ReluOp, nn.ClampOp)


def quantize(
    program: object, calibration: Iterable[object], scheme: str = "int8", *, evaluator: str = "numpy"
) -> ModuleOp:
    """The program with observers, calibrated; `qcomp.compile` and the pipeline ``quantize`` do the rest.

    program: what `qcomp.from_torch` takes, the path of a .mlir file, or a module at tensor level, in float.
    calibration: the inputs of each sample, a tuple or, for one input, an array or tensor, with its batch axis. scheme:
    "int8". evaluator: what runs the program, "numpy" or "torch", which is faster. State is anew in each sample.
    Symbolic sizes of an exported program or a file stay symbolic: samples may differ in them.

    Raises QcompError for an unknown scheme, no samples, samples that do not fit, and programs that are quantized.
    """
    from qcomp.backend.compare import samples

    if scheme not in SCHEMES:
        raise QcompError(f"scheme {scheme!r} does not exist", code="option", hint=did_you_mean(scheme, SCHEMES))
    given = calibration if isinstance(calibration, Streamed) else samples(_listed(calibration))
    first = next(iter(given), None)
    if first is None:
        raise QcompError("there are no calibration samples", code="calibration", hint="a hundred inputs are enough")
    module = _imported(program, first)
    for note in notes_of(module) if not isinstance(program, ModuleOp) else []:
        warn(note)
    if is_quantized(module):
        raise QcompError("the program is quantized already", code="calibration", hint="compile it as it is")
    run_passes(module, _BEFORE)
    plan = _Plan(_main(module))
    ranges = _calibrate(module, plan, given, evaluator)
    _insert(plan, ranges)
    module.verify()
    return module


def _imported(program: object, first: Sequence[object]) -> ModuleOp:
    """The program as a module. Only where the import refuses its symbolic sizes, they become those of `first`."""
    if not _is_exported(program):
        return import_program(program, first)[0]
    try:
        return import_program(program, None)[0]
    except RefusalError:
        module, _ = import_program(program, first)
        warn("an op takes no symbolic sizes: all sizes are those of the first sample")
        return module


def _is_exported(program: object) -> bool:
    """Whether `program` needs no examples: a module of the IR, a file or an ExportedProgram."""
    return isinstance(program, ModuleOp | str | os.PathLike) or hasattr(program, "graph_signature")


def _listed(calibration: object) -> list[object]:
    """Return the samples. Raises QcompError for what looks like one sample, or is none at all."""
    kind = type(calibration).__name__
    if hasattr(calibration, "shape"):
        sizes = list(cast("Sequence[int]", getattr(calibration, "shape")))  # noqa: B009
        raise QcompError(
            f"calibration is one {kind} of shape {sizes}, expected a list of samples",
            code="calibration",
            hint="[x] for one sample; list(x.split(1)), of an array np.split(x, len(x)), for a sample of each row",
        )
    if isinstance(calibration, str | bytes | Mapping | os.PathLike) or not isinstance(calibration, Iterable):
        raise QcompError(
            f"calibration is a {kind}, expected a list of samples",
            code="calibration",
            hint="a sample is a tuple of the inputs in order, or the only input",
        )
    return list(cast("Iterable[object]", calibration))


def _main(module: ModuleOp) -> FuncOp:
    found = [op for op in module.walk() if isinstance(op, FuncOp) and op.sym_name.data == "main"]
    if not found or len(found[0].body.blocks) != 1:
        raise QcompError("the module has no function main of one block", code="no-function")
    return found[0]


class _Plan:
    """Which values are observed, in groups that share an encoding, and which weights."""

    def __init__(self, main: FuncOp):
        self.main = main
        self.groups: dict[SSAValue, SSAValue] = {}
        """Observed value -> the first one of its group."""
        self.weights: list[tuple[nn.WeightedOp, int]] = []
        self._coded: set[SSAValue] = set()
        """Values that can be codes: results of ops that are quantized, moved or clamped or not."""
        for op in main.body.block.ops:
            self._visit(op)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, nn.WeightedOp) and _is_weighted(op):
            self.weights.append((op, op.WEIGHT_CHANNEL_AXIS))
            self._need(op.input)
            self._coded.add(op.result)
        elif isinstance(op, _BETWEEN) and is_float32(*op.operands, *op.results) and self._all_coded(op):
            for value in self._rounded(op):
                self._need(value)
            self._coded.update(op.results)
        elif isinstance(op, (*_MOVES, *_CLAMPS)) and all(self._is_coded(value) for value in op.operands):
            self._coded.update(op.results)

    def _is_coded(self, value: SSAValue) -> bool:
        return value in self._coded or value in self.groups

    def _all_coded(self, op: Operation) -> bool:
        known = [self._is_coded(value) or constant(value) is not None for value in op.operands]
        return all(known) and any(self._is_coded(value) for value in op.operands)

    def _rounded(self, op: Operation) -> list[SSAValue]:
        """The operands that are rounded in front of `op`: not a convolution's result that only an addition reads."""
        operands = list(op.operands)
        if isinstance(op, nn.AddOp) and shape(op.lhs) == shape(op.rhs) == shape(op.result):
            for value in operands:
                if isinstance(value.owner, nn.WeightedOp) and only_user(value) is op and value in self._coded:
                    return [other for other in operands if other is not value]
        return operands

    def _need(self, value: SSAValue) -> None:
        """Observe what `value` is moved from; several sources share one encoding."""
        sources = list(dict.fromkeys(_sources(value)))
        heads = list(dict.fromkeys(self.groups.get(source, source) for source in sources))
        for source in sources:
            self.groups.setdefault(source, heads[0])
        for member, head in list(self.groups.items()):
            if head in heads:
                self.groups[member] = heads[0]


def _is_weighted(op: nn.WeightedOp) -> bool:
    """Whether `op` can work on codes: float, a constant weight, and one output channel axis of it."""
    groups = op.groups.value.data if isinstance(op, nn.ConvolutionOp) else 1
    return (
        is_float32(op.result) and constant(op.weight) is not None and (op.WEIGHT_CHANNEL_AXIS == 0 or groups == 1)
    )  # fmt: skip


def _sources(value: SSAValue) -> Iterator[SSAValue]:
    """The values that data movement and max pools make `value` of."""
    if isinstance(value.owner, _MOVES):
        for operand in value.owner.operands:
            yield from _sources(operand)
    else:
        yield value


def _calibrate(
    module: ModuleOp, plan: _Plan, given: Iterable[Sequence[object]], evaluator: str
) -> dict[SSAValue, Range]:  # fmt: skip
    """The range of each group over all samples, one of which is an array at a time."""
    from qcomp.backend.compare import arrays_of

    ranges = {head: Range() for head in plan.groups.values()}
    without = 0  # samples with NaN
    arguments = plan.main.body.block.args
    state = [state.initial.array for state in states_of(plan.main)]
    for method, title in ((Range.extend, "finding ranges, sample"), (Range.count, "counting values, sample")):
        watch = _Watch(plan.groups, ranges, method)
        for number, values in enumerate(progress.counted(title, given)):
            if len(values) != len(arguments) - len(state):
                problem = f"sample {number} has {len(values)} inputs, the program takes {len(arguments) - len(state)}"
                raise QcompError(problem, code="calibration", hint="the inputs of a sample are a tuple")
            try:
                sample = arrays_of(values)
                watch.see(arguments, [*sample, *state])
                interpret(module, *sample, evaluator=evaluator, observer=watch)
            except QcompError as error:
                if error.code != "input":
                    raise
                raise QcompError(f"sample {number}: {error.message}", code="input", hint=error.hint) from None
            if method is Range.extend and any(array.dtype.kind == "f" and np.isnan(array).any() for array in sample):
                without += 1
    if without:
        warn(f"NaN in {without} of the calibration samples is left out of the ranges")
    return ranges


@dataclass
class _Watch:
    """Shows the values of each group, as a program runs, to `method` of its range."""

    groups: dict[SSAValue, SSAValue]
    ranges: dict[SSAValue, Range]
    method: Callable[[Range, Array], None]

    def __call__(self, op: Operation, results: tuple[Array, ...]) -> None:
        self.see(op.results, results)

    def see(self, values: Sequence[SSAValue], arrays: Sequence[Array]) -> None:
        for value, array in zip(values, arrays, strict=True):
            if value in self.groups:
                self.method(self.ranges[self.groups[value]], array)


def _insert(plan: _Plan, ranges: dict[SSAValue, Range]) -> None:
    encodings = {head: seen.encoding() for head, seen in ranges.items()}
    for value, head in plan.groups.items():
        _observe(value, ObserveOp(value, encodings[head]))
    for op, axis in plan.weights:
        held = constant(op.weight)
        assert held is not None
        observe = ObserveOp(op.weight, weight_encoding(held.array, axis))
        observe.location = op.location
        IrRewriter.insert_op(observe, InsertPoint.before(op))
        op.operands[1] = observe.result


def _observe(value: SSAValue, observe: ObserveOp) -> None:
    """Let all readers of `value` read `observe`."""
    owner = value.owner
    uses = list(value.uses)
    if isinstance(owner, Operation):
        observe.location = owner.location
        IrRewriter.insert_op(observe, InsertPoint.after(owner))
    else:
        observe.location = uses[-1].operation.location if uses else observe.location
        IrRewriter.insert_op(observe, InsertPoint.at_start(owner))
    for use in uses:
        if use.operation is not observe and not isinstance(use.operation, ReturnOp):
            use.operation.operands[use.index] = observe.result
