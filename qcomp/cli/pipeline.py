# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running passes on a module with instruments around them and errors that name the pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from qcomp.cli.diagnostics import LocatedError, at_op, from_exception
from qcomp.cli.failures import FAULT, INPUT, exit_code
from qcomp.cli.instruments import Instrument
from qcomp.dialects.verification import first_invalid


def run_pipeline(
    ctx: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    instruments: Sequence[Instrument] = (),
    *,
    verify: bool = True,
    apply: Callable[[ModulePass, Context, ModuleOp], None] | None = None,
) -> None:
    """Run `passes` on `module` in order (by `apply` where given) and verify it after each unless told not to.

    Raises LocatedError, whose message names the pass, for whatever goes wrong.
    """
    for at, step in enumerate(passes):
        for instrument in instruments:
            instrument.before(step, module, tuple(passes[at + 1 :]))
        try:
            if apply is None:
                step.apply(ctx, module)
            else:
                apply(step, ctx, module)
            if verify:
                verify_module(module, FAULT)
        except Exception as problem:
            for instrument in instruments:
                instrument.failed(step, module)
            diagnostic = from_exception(problem)
            if f"pass {step.name}" not in diagnostic.message:
                diagnostic = replace(diagnostic, message=f"pass {step.name}: {diagnostic.message}")
            raise LocatedError(diagnostic, exit_code(problem)) from problem
        for instrument in instruments:
            instrument.after(step, module)


def verify_module(module: ModuleOp, exit_code: int = INPUT) -> None:
    """Verify `module`; the LocatedError it raises knows the op, which xDSL's exception does not.

    exit_code: whose fault it is, that of the input or that of a pass.
    """
    try:
        module.verify()
    except Exception as problem:
        raise LocatedError(at_op(first_invalid(module), str(problem)), exit_code) from problem
