# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of a program is not supported on a target: everything that import, passes, lowering and C refuse, at once.

A refused op is replaced by a stand-in that gives tensors of the same types, and the rest of the program goes on to C
without being built; so one look finds what several compilations would have found one after the other. Of ops that are
alike one is lowered, and the module is verified once, not after each pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp

from qcomp.backend.compile import choose_target, import_program, pipelines, report_rows
from qcomp.backend.emit_c import emit_program
from qcomp.backend.marks import mark_values
from qcomp.backend.report import OpRow
from qcomp.backend.signature import interface_of
from qcomp.backend.target import find_target
from qcomp.dialects.notes import notes_of
from qcomp.dialects.specialize import specialize
from qcomp.dialects.verification import check_sizes
from qcomp.errors import QcompError, warn
from qcomp.refusals import Refusal, RefusalError, printable, refusal_of, refused_kinds
from qcomp.transforms.lower_to_loop.first_of_each import FirstOfEach
from qcomp.transforms.pipeline import check_module, run_passes
from qcomp.transforms.rewriting import refusal_log
from qcomp.transforms.specialize_dims import resolve

FORMAT_VERSION = 1
"""Of `Check.to_json`."""


@dataclass(frozen=True)
class InFloat:
    """Ops of a quantized program that are computed in float, and why."""

    op: str
    count: int
    reason: str


@dataclass(frozen=True)
class Check:
    """target: the name of the target; ops: how many the compiled program would have, None when it would not compile;
    in_float: empty when not known."""

    target: str
    refusals: tuple[Refusal, ...]
    ops: int | None = None
    in_float: tuple[InFloat, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether the program compiles."""
        return not self.refusals

    def error(self) -> RefusalError:
        """All refusals as one error. There must be one."""
        code = "unsupported-op" if any(refusal.stage == "import" for refusal in self.refusals) else "lower"
        return RefusalError(self.refusals, f"cannot be compiled for {self.target}", code)

    def to_json(self, program: str) -> dict[str, Any]:
        """As plain data; the schema is in docs/check.md."""
        kinds = [
            {
                "op": kind.op, "stage": kind.stage, "count": kind.count, "reason": kind.reason, "hint": kind.hint,
                "places": [vars(place) for place in kind.places],
            }
            for kind in refused_kinds(self.refusals)
        ]  # fmt: skip
        return {
            "format_version": FORMAT_VERSION, "program": program, "target": self.target, "supported": self.supported,
            "ops": self.ops, "refused": kinds, "in_float": [vars(entry) for entry in self.in_float], "error": None,
        }  # fmt: skip


def error_json(program: str, target: str, error: QcompError) -> dict[str, Any]:
    """What `Check.to_json` gives for a program that cannot be read at all."""
    found = {"code": error.code, "message": printable(error.message), "hint": error.hint}
    return {**Check(target, ()).to_json(program), "supported": False, "error": found}


def check_program(
    program: object, target: str = "native", example_inputs: Sequence[object] | None = None, opt_level: int = 3,
    dims: Mapping[str, int] | None = None,
) -> Check:  # fmt: skip
    """Everything in `program`, which is what `qcomp.compile` takes, that it would refuse for `target`.

    dims: sizes of symbols, as for `qcomp.compile`. Raises QcompError for a program that cannot be read at all, an
    unknown target and names that are no symbols.
    """
    name = find_target(target).name
    module, refusals = _imported(program, example_inputs, dims or {})
    for note in notes_of(module) if not isinstance(program, ModuleOp) else []:
        warn(note)
    try:
        rows = _lowered_rows(module, target, opt_level)
    except RefusalError as error:
        return Check(name, (*refusals, *error.refusals))
    except QcompError as error:
        return Check(name, (*refusals, refusal_of(error, error.code if error.code in ("lower", "emit") else "pass")))
    return Check(name, tuple(refusals), None if refusals else len(rows), in_float(rows))


def _lowered_rows(module: ModuleOp, target: str, opt_level: int) -> list[OpRow]:
    """The report's rows for `module`, which is lowered as `emit_module` does it. Raises QcompError as that does."""
    chosen, _ = choose_target(target)
    check_sizes(module)
    mark_values(module)
    interface_of(module)
    steps = pipelines(module, chosen, opt_level)
    run_passes(module, steps.reference, verify_each=False)
    reference = module.clone()
    with refusal_log() as refusals:
        run_passes(module, steps.integer, verify_each=False)
    check_module(module, f"passes {steps.reference},{steps.integer} left")
    rows = report_rows(reference, module, refusals, opt_level > 0)
    loops = ModuleOp(list(FirstOfEach(module, chosen).run()))
    run_passes(loops, "plan-memory", verify_each=False)
    emit_program(loops, chosen, "net")
    return rows


def in_float(rows: Sequence[Mapping[str, Any]]) -> tuple[InFloat, ...]:
    """The ops that a report gives a reason for, equal ones together, the most frequent first.

    Ops that only turn floats into codes or back are left out.
    """
    stay = [row for row in rows if row["reason"] and not str(row["op"]).startswith("quant.")]
    reasons = Counter((str(row["op"]), str(row["reason"])) for row in stay)
    return tuple(InFloat(op, count, reason) for (op, reason), count in reasons.most_common())


def _imported(
    program: object, example_inputs: Sequence[object] | None, dims: Mapping[str, int]
) -> tuple[ModuleOp, list[Refusal]]:
    from qcomp.frontend import supported_part

    text = isinstance(program, str | PathLike) and Path(cast("str | PathLike[str]", program)).suffix == ".mlir"
    if text or isinstance(program, ModuleOp):
        module, refusals = import_program(cast(object, program), example_inputs)[0], list[Refusal]()
    else:
        module, refusals = supported_part(cast(object, program), example_inputs)
    if dims and refusals:
        return supported_part(cast(object, program), example_inputs, dims)
    if dims:
        specialize(module, resolve(module, dims))
    return module, refusals
