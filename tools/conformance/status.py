# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of one op: its probes are really imported, interpreted, compiled and quantized."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # pyright: ignore[reportUnusedImport]
from torch.utils import _pytree as pytree

import qcomp
from qcomp.dialects.constant import Array
from tools.conformance.judge import difference, to_array
from tools.conformance.probes import Probe, op_name

YES, PARTLY, NO, NONE = "yes", "partly", "no", "-"


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


def status(name: str, probes: Sequence[Probe], has_handler: bool) -> Status:
    """The row of one op. Raises Disagreement when a probe is accepted and wrong."""
    if not has_handler:
        return Status(NO, NO, NO, NO)
    usable = [probe for probe in probes if _stands_alone(name, probe)]
    if not usable:
        return Status(YES, NONE, NONE, NONE)
    notes: list[str] = []
    words = [_word([_attempt(step, name, probe, notes) for probe in usable]) for step in (_interpreted, _emitted)]
    coded = [word for probe in usable if (word := _attempt(_integer, name, probe, None)) is not None]
    return Status(YES, words[0], words[1], _word(coded), notes[0] if notes else "")


def _word(found: Sequence[bool | None]) -> str:
    if not found:
        return NONE
    return YES if all(found) else PARTLY if any(found) else NO


def _attempt(
    step: Callable[[str, Probe], bool | None], name: str, probe: Probe, notes: list[str] | None
) -> bool | None:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return step(name, probe)
        except qcomp.QcompError as problem:
            if notes is not None:
                notes.append(_short(problem))
            return False


def _short(problem: qcomp.QcompError) -> str:
    lines = [line.strip() for line in str(problem).splitlines()]
    text = lines[1] if len(lines) > 1 else lines[0]
    for cut in ("; at ", " (hint:"):
        text = text.partition(cut)[0]
    return text.partition(" x1: ")[2] or text


def _export(module: Any, inputs: Sequence[torch.Tensor]) -> Any:
    return torch.export.export(module, tuple(value.clone() for value in inputs), strict=False)


def _stands_alone(name: str, probe: Probe) -> bool:
    """Whether torch exports the call as that op, and it has one meaning: not random, not uninitialized."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = _export(probe, probe.inputs)
            first, second = (_arrays(probe(*(value.clone() for value in probe.inputs))) for _ in range(2))
        except Exception:  # errors of torch of any class: the call cannot be exported by itself
            return False
    alike = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, second, strict=True))
    return alike and any(op_name(node.target) == name for node in program.graph.nodes if node.op == "call_function")


def _tensors(result: object) -> list[torch.Tensor]:
    return [value for value in pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]


def _arrays(result: object) -> list[Array]:
    return [to_array(value) for value in _tensors(result)]


def _hold(name: str, found: Sequence[Array], expected: Sequence[torch.Tensor]) -> bool:
    problem = difference(found, expected)
    if problem:
        raise Disagreement(f"{name}: {problem}")
    return True


def _interpreted(name: str, probe: Probe) -> bool:
    module = qcomp.from_torch(_export(probe, probe.inputs))
    expected = _tensors(probe(*(value.clone() for value in probe.inputs)))
    return _hold(name, qcomp.interpret(module, *_arrays(probe.inputs)), expected)


def _emitted(name: str, probe: Probe) -> bool:
    artifact = qcomp.compile(_export(probe, probe.inputs), opt_level=1)
    expected = _tensors(probe(*(value.clone() for value in probe.inputs)))
    return _hold(name, artifact.run(_arrays(probe.inputs)), expected)


class Quantized(torch.nn.Module):
    """A probe between quantize and dequantize; weights of integer ops hold codes."""

    def __init__(self, probe: Probe):
        super().__init__()
        self.probe = probe
        self.ops: Any = torch.ops.quantized_decomposed
        self.transposed = "transpose" in str(probe.target) or True in probe.leaves[6:7]

    def rounded(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        """`x` in codes of a grid and back; other than float32 as it is."""
        if x.dtype != torch.float32:
            return x
        grid = (scale, 3, -128, 127, torch.int8)
        return self.ops.dequantize_per_tensor(self.ops.quantize_per_tensor(x, *grid), *grid)

    def weight(self, value: torch.Tensor, place: int) -> torch.Tensor:
        """A constant of the probe, rounded per channel where the op has an integer form."""
        if place not in self.probe.coded:
            return value
        axis = int(self.transposed)
        count = value.shape[axis]
        grid = (torch.full((count,), 0.02), torch.zeros(count, dtype=torch.int64), axis, -127, 127, torch.int8)
        return self.ops.dequantize_per_channel(self.ops.quantize_per_channel(value, *grid), *grid)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The op on rounded inputs, its results rounded."""
        result = self.probe.call([self.rounded(value, 0.03) for value in tensors], self.weight)
        return pytree.tree_map_only(torch.Tensor, lambda value: self.rounded(value, 0.05), result)


def _integer(name: str, probe: Probe) -> bool | None:
    """Whether nothing but quantize and dequantize works on floats; None when the op takes or gives none."""
    results = _tensors(probe(*(value.clone() for value in probe.inputs)))
    floats = [any(value.dtype == torch.float32 for value in values) for values in (probe.inputs, results)]
    if not all(floats):
        return None
    artifact = qcomp.compile(_export(Quantized(probe), probe.inputs), opt_level=1)
    rows = [row for row in artifact.report()["ops"] if not row["op"].startswith("quant.")]
    return not any(row["compute"].startswith(("f", "bf")) for row in rows)
