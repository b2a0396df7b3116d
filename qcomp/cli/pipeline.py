# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a textual pipeline on a module with instruments around it and errors that name the pass."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from qcomp.cli.diagnostics import LocatedError, at_op, from_exception, one_line
from qcomp.cli.instruments import Instrument
from qcomp.dialects.verification import first_invalid
from qcomp.errors import QcompError


def parse_passes(available: Mapping[str, Callable[[], type[ModulePass]]], text: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline such as ``cse,fold{limit=3}``. Raises QcompError for unknown passes and bad options."""
    try:
        specs = tuple(parse_pipeline(text))
    except ArgSpecParseError as problem:
        lines = str(problem).strip().splitlines()
        raise QcompError(f"pipeline '{text}': {lines[-1].strip()}", code="pipeline") from None
    return tuple(_build(available, spec) for spec in specs)


def _build(available: Mapping[str, Callable[[], type[ModulePass]]], spec: ArgSpec) -> ModulePass:
    if spec.name not in available:
        raise unknown_pass(spec.name, available)
    try:
        return available[spec.name]().from_spec(spec)
    except (ValueError, TypeError) as problem:
        raise QcompError(f"pass {spec.name}: {one_line(str(problem))}", code="pass-option") from None


def unknown_pass(name: str, available: Iterable[str]) -> QcompError:
    """The error about a pass that does not exist, with the names that look like it."""
    close = difflib.get_close_matches(name, available, 3)
    hint = f"did you mean {' or '.join(close)}?" if close else "qcomp passes lists them"
    return QcompError(f"unknown pass '{name}'", code="unknown-pass", hint=hint)


def run_pipeline(
    ctx: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    instruments: Sequence[Instrument] = (),
    *,
    verify: bool = True,
    apply: Callable[[ModulePass, Context, ModuleOp], None] = lambda step, ctx, module: step.apply(ctx, module),
) -> None:
    """Run `passes` on `module` in order, each by `apply`, and verify it after each unless told not to.

    Raises LocatedError, whose message names the pass, for whatever goes wrong.
    """
    for at, step in enumerate(passes):
        for instrument in instruments:
            instrument.before(step, module, tuple(passes[at + 1 :]))
        try:
            apply(step, ctx, module)
            if verify:
                verify_module(module)
        except Exception as problem:
            for instrument in instruments:
                instrument.failed(step, module)
            raise LocatedError(from_exception(problem, prefix=f"pass {step.name}: ")) from problem
        for instrument in instruments:
            instrument.after(step, module)


def verify_module(module: ModuleOp) -> None:
    """Verify `module`; the LocatedError it raises knows the op, which xDSL's exception does not."""
    try:
        module.verify()
    except Exception as problem:
        raise LocatedError(at_op(first_invalid(module), str(problem))) from problem
