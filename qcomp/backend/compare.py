# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a compiled model departs from the quantized program it was made of, layer by layer.

The program runs as it is written, floats between dequantize and quantize. Then every op of the compiled module is
evaluated on the codes that the program itself had at that place, so that a difference shows where it arises and not in
all layers behind. Values are found again by their names (`qcomp.backend.marks`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from qcomp import progress
from qcomp.backend.artifact import Artifact, torch_arrays_for
from qcomp.backend.compile import emit, import_program, is_quantized
from qcomp.backend.manifest import text_digest
from qcomp.backend.marks import mark_values, unmarked
from qcomp.backend.report import html_cells
from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.location import module_path, source_line
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.nn.control import is_control
from qcomp.dialects.quant import Encoding, encoding_of
from qcomp.dialects.state import states_of
from qcomp.errors import QcompError
from qcomp.interpreter import evaluate_op, interpret
from qcomp.interpreter.dispatch import real_value
from qcomp.interpreter.reference.quantize import quantize
from qcomp.interpreter.run import evaluate_control
from qcomp.transforms.pipeline import run_passes


@dataclass
class Layer:
    """How one value differs over all samples.

    name: module path; op; loc: source line; value: its name in the module; elements: how many were compared; max_off:
    the most codes that one is off, None for floats; differ: how many are not equal; signal, noise: sums of squares.
    """

    name: str
    op: str
    loc: str | None
    value: str
    elements: int = 0
    max_off: int | None = None
    differ: int = 0
    signal: float = 0.0
    noise: float = 0.0

    @property
    def share(self) -> float:
        """The share of elements that are not equal."""
        return self.differ / self.elements if self.elements else 0.0

    @property
    def sqnr_db(self) -> float:
        """Signal to noise in decibels over the real numbers; inf when all are equal."""
        if self.noise == 0.0:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf

    def add(self, expected: Array, found: Array, encoding: Encoding | None, reals: tuple[Array, Array]) -> None:
        """Count one sample: stored arrays, and what they stand for."""
        unequal = (expected != found) & ((expected == expected) | (found == found))
        self.elements += expected.size
        self.differ += int(np.count_nonzero(unequal))
        if encoding is not None:
            off = np.abs(expected.astype(np.int64) - found.astype(np.int64))
            self.max_off = max(self.max_off or 0, int(off.max(initial=0)))
        wide = [real.astype(np.float64) for real in reals]
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.where(unequal, wide[1] - wide[0], 0.0)
        self.signal += float(np.sum(np.where(np.isfinite(wide[0]), wide[0], 0.0) ** 2))
        self.noise += float(np.sum(np.where(np.isfinite(error), error, 0.0) ** 2))


@dataclass(repr=False)
class Comparison:
    """layers: the ops of the compiled module, worst first; outputs: the compiled program's results end to end."""

    layers: Sequence[Layer] = field(default_factory=list[Layer])
    outputs: Sequence[Layer] = field(default_factory=list[Layer])

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Layer:
        return self.layers[index]

    def __repr__(self) -> str:
        if not self.layers:
            return "<qcomp.Comparison of 0 layers>"
        worst = self.layers[0]
        off = "" if worst.max_off is None else f"{worst.max_off} codes off, "
        return f"<qcomp.Comparison of {len(self.layers)} layers, worst {worst.name}: {off}{worst.sqnr_db:.2f} dB>"

    def __str__(self) -> str:
        lines = [f"{'off':>5} {'differ':>9} {'SQNR dB':>8}  layer"]
        lines += [_line(layer) for layer in self.layers]
        return "\n".join([*lines, "end to end", *map(_line, self.outputs)])

    def _repr_html_(self) -> str:
        head = ("off", "differ", "SQNR dB", "layer", "op", "source")
        rows = [_cells(layer) for layer in (*self.layers, *self.outputs)]
        return html_cells(head, rows)


def compare(program: object, compiled: Artifact | ModuleOp, inputs: object, evaluator: str = "numpy") -> Comparison:
    """Compare a compiled model with the quantized program it was made of.

    program: what `qcomp.compile` takes. compiled: the artifact, or a module that passes made of the program; an
    artifact that was loaded is compiled again up to its C. inputs: a tuple, the arrays or tensors of one sample; a
    list, one entry a sample; or an array or tensor, the only input. evaluator: what runs the program, "numpy" or
    "torch". Every sample starts from the initial state.
    End to end, an artifact that runs here is run; else its module is interpreted.

    Raises QcompError when `compiled` was not made of `program`, and for inputs that do not fit.
    """
    given = samples(inputs)
    if not given:
        raise QcompError("there is no sample to compare on", code="compare")
    example = None if isinstance(program, ModuleOp) else given[0]
    module = compiled if isinstance(compiled, ModuleOp) else _module_of(program, compiled, example)
    reference = reference_of(program, example)
    layers: dict[SSAValue, Layer] = {}
    outputs: dict[int, Layer] = {}
    for sample in map(arrays_of, progress.counted("comparing sample", given)):
        expected = _named_values(reference, module, sample, evaluator)
        main = _main(module)
        arguments = [*sample, *(state.initial.array for state in states_of(main))]
        _compare_layers(main, arguments, expected, layers)
        found = _run(compiled, sample)
        for index, (kind, before, after) in enumerate(zip(_results(reference), expected.results, found, strict=False)):
            row = outputs.setdefault(index, Layer(f"output {index}", "output", None, f"output {index}"))
            _add(row, kind, before, after)
    if not layers and _computes(module):
        hint = "compare with the program that the artifact was compiled from: after qcomp.quantize, the module it gave"
        text = "the artifact was not made of this program: no value of the module has a name of the program"
        raise QcompError(text, code="compare", hint=hint)
    worst = sorted(layers.values(), key=lambda layer: (-(layer.max_off or 0), layer.sqnr_db, -layer.share))
    return Comparison(worst, list(outputs.values()))


def _computes(module: ModuleOp) -> bool:
    """Return whether main does more than return its arguments and constants."""
    return any(not isinstance(op, nn.ConstantOp | ReturnOp) for op in _main(module).body.block.ops)


def reference_of(program: object, example: Sequence[object] | None = None) -> ModuleOp:
    """The program as it is written, observers turned into quantize and dequantize. `example`: inputs, to export it."""
    module, _ = import_program(program, example)
    mark_values(module)
    if is_quantized(module):
        run_passes(module, "insert-qdq")
    return module


def samples(inputs: object) -> list[tuple[object, ...]]:
    """The inputs of each sample."""
    found = cast("list[object]", inputs) if isinstance(inputs, list) else [inputs]
    return [cast("tuple[object, ...]", one) if isinstance(one, tuple) else (one,) for one in found]


def arrays_of(sample: Sequence[object]) -> list[Array]:
    """A sample as numpy arrays."""
    for index, value in enumerate(sample):
        if not hasattr(value, "__array__") and not isinstance(value, bool | int | float | complex | list | tuple):
            raise QcompError(
                f"input {index} of a sample is a {type(value).__name__}, expected an array or a tensor",
                code="input",
                hint="a sample is a tuple of the inputs in order",
            )
    tensors = torch_arrays_for(sample)
    values = [tensors.to_array(value, str(i)) if tensors else value for i, value in enumerate(sample)]
    return [np.ascontiguousarray(cast(Any, value)) for value in values]


def _module_of(program: object, artifact: Artifact, example: Sequence[object] | None) -> ModuleOp:
    if artifact.module is not None:
        return artifact.module
    manifest = artifact.manifest
    again = emit(program, manifest.target, manifest.opt_level, example, manifest.name)
    if manifest.files.get(f"{manifest.name}.c") != text_digest(again.program.source):
        raise QcompError(
            "the artifact was not compiled from this program, as it is, by this qcomp",
            code="compare",
            hint="made with --calibrate: use qcomp.compare in Python, with the module that qcomp.quantize gives",
        )
    return again.module


def _run(compiled: Artifact | ModuleOp, sample: list[Array]) -> Sequence[Array]:
    if isinstance(compiled, ModuleOp):
        return interpret(compiled, *sample)
    if compiled.library is not None:
        ports = compiled.interface.inputs
        compiled.reset()
        return compiled.run([port.accept(value) for port, value in zip(ports, sample, strict=True)])
    assert compiled.module is not None
    return interpret(compiled.module, *sample)


def _main(module: ModuleOp) -> FuncOp:
    return next(op for op in module.walk() if isinstance(op, FuncOp) and op.sym_name.data == "main")


def _results(module: ModuleOp) -> list[SSAValue]:
    last = _main(module).body.block.last_op
    assert isinstance(last, ReturnOp)
    return list(last.arguments)


@dataclass
class _Expected:
    """What the program had: values by name, with the value that tells their type, and results."""

    named: dict[str, tuple[SSAValue, Array]]
    results: Sequence[Array]


def _named_values(reference: ModuleOp, module: ModuleOp, sample: list[Array], evaluator: str) -> _Expected:
    wanted = _unique_names(module) & _unique_names(reference)
    named: dict[str, tuple[SSAValue, Array]] = {}

    def observe(op: Operation, results: tuple[Array, ...]) -> None:
        name = op.results[0].name_hint
        if name in wanted:
            named[name] = (op.results[0], results[0])

    results = interpret(reference, *sample, evaluator=evaluator, observer=observe)
    return _Expected(named, results)


def _unique_names(module: ModuleOp) -> set[str]:
    """The names that one computed value of main has."""
    ops = [op for op in _main(module).body.block.ops if op.results and not isinstance(op, nn.ConstantOp)]
    counts = Counter(op.results[0].name_hint for op in ops)
    return {name for name, count in counts.items() if name is not None and count == 1}


def _compare_layers(main: FuncOp, sample: list[Array], expected: _Expected, layers: dict[SSAValue, Layer]) -> None:
    block = main.body.block
    values: dict[SSAValue, Array] = dict(zip(block.args, sample, strict=True))
    for op in block.ops:
        if isinstance(op, ReturnOp):
            return
        if is_control(op):
            values.update(zip(op.results, evaluate_control(op, values), strict=True))
            continue
        result = op.results[0]
        values[result] = evaluate_op(op, [values[operand] for operand in op.operands])
        source = expected.named.get(result.name_hint or "")
        if source is None:
            continue
        before = stored_as(result, *source)
        if before is None or before.shape != values[result].shape:
            continue
        value = unmarked(result) or op.name
        name = module_path(op.location) or value
        row = layers.setdefault(result, Layer(name, op.name, source_line(op.location), value))
        _add(row, result, before, values[result])
        values[result] = before


def stored_as(value: SSAValue, source: SSAValue, array: Array) -> Array | None:
    """`array`, the reference's `source`, in the type of `value`; None when that is another kind of number."""
    wanted, held = encoding_of(value.type), encoding_of(source.type)
    if wanted is None:
        return array if held is None and tensor(value).element_type == tensor(source).element_type else None
    if held is None:
        return quantize(real_value(array, tensor(source)), wanted) if array.dtype.kind == "f" else None
    if not (wanted.per_tensor and held.per_tensor and wanted.scale == held.scale):
        return None
    move = wanted.zero_point - held.zero_point
    if (wanted.qmin - held.qmin, wanted.qmax - held.qmax) != (move, move):
        return None
    return (array.astype(np.int64) + move).astype(wanted.dtype)


def _add(row: Layer, value: SSAValue, before: Array, after: Array) -> None:
    reals = real_value(before, tensor(value)), real_value(after, tensor(value))
    row.add(before, after, encoding_of(value.type), reals)


def _cells(layer: Layer) -> tuple[str, ...]:
    off = "-" if layer.max_off is None else str(layer.max_off)
    share, ratio = f"{100 * layer.share:.4f}%", f"{layer.sqnr_db:.2f}"
    return off, share, ratio, layer.name, layer.op, layer.loc or ""


def _line(layer: Layer) -> str:
    off, share, ratio, name, op, loc = _cells(layer)
    return f"{off:>5} {share:>9} {ratio:>8}  {name} {op}{f' ({loc})' if loc else ''}"
