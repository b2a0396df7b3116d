# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of one op: its probes are really imported, interpreted, compiled and quantized."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # pyright: ignore[reportUnusedImport]
from torch.utils import _pytree as pytree

import qcomp
from qcomp.dialects.constant import Array
from tools.conformance.judge import difference, to_array
from tools.conformance.probes import Probe, op_name

YES, CODES, PARTLY, NO, NONE = "yes", "codes", "partly", "no", "-"


@dataclass(frozen=True)
class Status:
    """One row of the page: a word for each step ("-": does not apply or has no probe), and the first refusal."""

    imported: str
    interpreted: str
    emitted: str
    integer: str
    note: str = ""


class Disagreement(Exception):
    """A probe whose result is not eager's: a fault of qcomp."""


@dataclass(frozen=True)
class Call:
    """A probe that torch exports as the op `name` and whose results are defined."""

    name: str
    probe: Probe
    program: Any
    expected: Sequence[torch.Tensor]

    def hold(self, found: Sequence[Array]) -> bool:
        """True. Raises Disagreement when `found` is not what eager torch gives."""
        problem = difference(found, self.expected)
        if problem:
            raise Disagreement(f"{self.name}: {problem}")
        return True


def status(name: str, probes: Sequence[Probe], has_handler: bool) -> Status:
    """The row of one op. Raises Disagreement when a probe is accepted and wrong."""
    if not has_handler:
        return Status(NO, NO, NO, NO)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [call for probe in probes if (call := _call(name, probe)) is not None]
        if not calls:
            return Status(YES, NONE, NONE, NONE)
        notes: list[str] = []
        interpreted = _word([_attempt(_interpreted, call, notes) for call in calls])
        emitted = _word([_attempt(_emitted, call, notes) for call in calls])
        coded = [_coded(call) for call in calls if _is_real(call)]
    return Status(YES, interpreted, emitted, _common(coded), notes[0] if notes else "")


def _word(found: Sequence[bool]) -> str:
    if not found:
        return NONE
    return YES if all(found) else PARTLY if any(found) else NO


def _common(words: Sequence[str]) -> str:
    """One word for those of several calls."""
    if len(set(words)) <= 1:
        return words[0] if words else NONE
    return CODES if set(words) == {YES, CODES} else PARTLY


def _attempt(step: Callable[[Call], bool], call: Call, notes: list[str]) -> bool:
    try:
        return step(call)
    except qcomp.QcompError as problem:
        notes.append(_short(problem))
        return False


def _short(problem: qcomp.QcompError) -> str:
    lines = [line.strip() for line in str(problem).splitlines()]
    text = lines[1] if len(lines) > 1 else lines[0]
    for cut in ("; at ", " (hint:"):
        text = text.partition(cut)[0]
    return text.partition(" x1: ")[2] or text


def _export(module: Any, inputs: Sequence[torch.Tensor]) -> Any:
    return torch.export.export(module, _copies(inputs), strict=False)


def _copies(values: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return tuple(value.clone() for value in values)


def _call(name: str, probe: Probe) -> Call | None:
    """None when torch does not export the call as that op, or two runs differ: random, or uninitialized memory."""
    try:
        program = _export(probe, probe.inputs)
        first, second = (_tensors(probe(*_copies(probe.inputs))) for _ in range(2))
    except Exception:  # errors of torch of any class: the call cannot be exported by itself
        return None
    alike = all(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) for a, b in zip(first, second, strict=True))
    named = any(op_name(node.target) == name for node in program.graph.nodes if node.op == "call_function")
    return Call(name, probe, program, first) if alike and named else None


def _tensors(result: object) -> list[torch.Tensor]:
    return [value for value in pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]


def _arrays(values: Sequence[torch.Tensor]) -> list[Array]:
    return [to_array(value) for value in values]


def _interpreted(call: Call) -> bool:
    return call.hold(qcomp.interpret(qcomp.from_torch(call.program), *_arrays(call.probe.inputs)))


def _emitted(call: Call) -> bool:
    return call.hold(qcomp.compile(call.program, opt_level=1).run(_arrays(call.probe.inputs)))


def _is_real(call: Call) -> bool:
    """Whether floats go in and come out."""
    return all(any(value.dtype == torch.float32 for value in part) for part in (call.probe.inputs, call.expected))


class Quantized(torch.nn.Module):
    """A probe between quantize and dequantize; weights of integer ops hold codes."""

    def __init__(self, probe: Probe):
        super().__init__()
        self.probe = probe
        self.ops: Any = torch.ops.quantized_decomposed
        transposed = "transpose" in str(probe.target) or any(leaf is True for leaf in probe.leaves[6:7])
        self.limits = int(transposed), -127, 127, torch.int8
        for place in probe.coded:
            value = getattr(probe, f"held{place}")
            count = value.shape[self.limits[0]]
            parameters = torch.linspace(0.01, 0.02, count), torch.zeros(count, dtype=torch.int64)
            self.register_buffer(f"codes{place}", self.ops.quantize_per_channel(value, *parameters, *self.limits))
            self.register_buffer(f"scales{place}", parameters[0])
            self.register_buffer(f"zeros{place}", parameters[1])

    def rounded(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        """`x` in codes of a grid and back; other than float32 as it is."""
        if x.dtype != torch.float32:
            return x
        grid = (scale, 3, -128, 127, torch.int8)
        return self.ops.dequantize_per_tensor(self.ops.quantize_per_tensor(x, *grid), *grid)

    def weight(self, value: torch.Tensor, place: int) -> torch.Tensor:
        """A constant of the probe, held as codes per channel where the op has an integer form."""
        if place not in self.probe.coded:
            return value
        held = [getattr(self, f"{part}{place}") for part in ("codes", "scales", "zeros")]
        return self.ops.dequantize_per_channel(*held, *self.limits)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The op on rounded inputs, its results rounded."""
        result = self.probe.call([self.rounded(value, 0.03) for value in tensors], self.weight)
        return pytree.tree_map_only(torch.Tensor, lambda value: self.rounded(value, 0.05), result)


def _coded(call: Call) -> str:
    """What works between quantize and dequantize: only integers; floats in registers, from codes to codes; floats."""
    try:
        artifact = qcomp.compile(_export(Quantized(call.probe), call.probe.inputs), opt_level=1)
    except qcomp.QcompError:
        return NO
    rows = [row for row in artifact.report()["ops"] if not row["op"].startswith("quant.")]
    if not any(_is_float(row["compute"]) for row in rows):
        return YES
    return NO if any(_is_float(row["memory"]) for row in rows) else CODES


def _is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))
