# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines: from text to passes in a lawful order, and running them.

    run_passes(module, "O1,quantize,fuse-activation,integer,fold-constants{dequantize=true}")

A name of `PIPELINES` stands for its passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.universe import XDSL_UNIVERSE
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, VerifyException

from qcomp import progress
from qcomp.dialects import plugins
from qcomp.dialects.context import context
from qcomp.dialects.verification import first_invalid
from qcomp.errors import QcompError
from qcomp.suggestions import did_you_mean
from qcomp.transforms import get_all_passes
from qcomp.transforms.base import Letter

Available = Mapping[str, Callable[[], type[ModulePass]]]
Hook = Callable[[ModulePass, ModuleOp, float], None]
"""Called after each pass with the pass, the module it left and the seconds it took."""

PIPELINES: dict[str, str] = {
    "O1": "remove-identities,fold-batch-norm-qat,fold-constants,cse,fold-batch-norm,fold-affine,compose-permutes,"
    "compose-reshapes,fold-pad,fold-constants,dce",
    "quantize": "fold-batch-norm-qat,insert-qdq,duplicate-dequantize,fold-constants",
    "O2": "lower-batch-norm,fuse-linear,lower-variable-weights,fold-constants,fold-affine,fuse-activation,dce",
    "integer": "propagate-qdq,fold-constants,fuse-qdq,fuse-dynamic-linear,fuse-activation,remove-identities,"
    "fold-constants,dce",
}
"""Pipelines by name. Only `quantize` changes numbers on purpose: it is for prepared graphs."""

_AFTER: dict[tuple[str, str], str] = {
    ("duplicate-dequantize", "cse"): "it would merge the private dequantizes again",
    ("duplicate-dequantize", "insert-qdq"): "the dequantizes it makes would stay shared",
    ("insert-qdq", "fold-batch-norm"): "batch norms are folded before any quantize is placed",
    ("fuse-activation", "fold-batch-norm"): "an activation in between keeps a batch norm from being folded",
    ("fuse-activation", "fold-affine"): "an activation in between keeps a factor from being folded",
    ("fuse-qdq", "insert-qdq"): "what it inserts would stay unfused",
    ("unsigned-activations", "fuse-qdq"): "the storage of activations is chosen when ops work on codes",
}
"""(earlier, later): why `later` does not come after `earlier`."""


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Factories of every pass a pipeline may name: qcomp's, all of xDSL's, and those of plug-ins."""
    table = {**XDSL_UNIVERSE.all_passes, **get_all_passes()}
    return plugins.with_plugins(table, lambda other: other.all_passes, "pass")


def parse_passes(available: Available, text: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline such as ``O1,cse,fold{limit=3}``, names of `PIPELINES` expanded.

    Raises QcompError for text that does not parse, unknown passes, bad options and an order that is not lawful.
    """
    passes = tuple(_build(available, spec) for spec in _expand(_specs(text)))
    check_order(passes)
    return passes


def _specs(text: str) -> tuple[ArgSpec, ...]:
    try:
        return tuple(parse_pipeline(text))
    except ArgSpecParseError as problem:
        lines = str(problem).strip().splitlines()
        raise QcompError(f"pipeline '{text}': {lines[-1].strip()}", code="pipeline") from None


def _expand(specs: Iterable[ArgSpec]) -> Iterator[ArgSpec]:
    for spec in specs:
        if spec.name not in PIPELINES:
            yield spec
        elif spec.parameters:
            raise QcompError(f"pipeline {spec.name} takes no options", code="pass-option")
        else:
            yield from _expand(_specs(PIPELINES[spec.name]))


def _build(available: Available, spec: ArgSpec) -> ModulePass:
    if spec.name not in available:
        raise unknown_pass(spec.name, available)
    step = available[spec.name]()
    try:
        return step.from_spec(spec)
    except (ValueError, TypeError) as problem:
        reason = " ".join(str(problem).split())
        raise QcompError(f"pass {spec.name}: {reason}", code="pass-option", hint=_option_hint(step, spec)) from None


def _option_hint(step: type[ModulePass], spec: ArgSpec) -> str | None:
    """Return the options that look like those that `step` does not have."""
    known = [option.name.replace("_", "-") for option in get_pass_option_infos(step)]
    given = [name.replace("_", "-") for name in spec.parameters]
    hints = [did_you_mean(name, known, "") for name in given if name not in known]
    return next((hint for hint in hints if hint), None)


def unknown_pass(name: str, available: Iterable[str]) -> QcompError:
    """The error about a pass that does not exist, with the names that look like it."""
    hint = did_you_mean(name, [*available, *PIPELINES], "qcomp passes lists them")
    return QcompError(f"unknown pass '{name}'", code="unknown-pass", hint=hint)


def check_order(passes: Sequence[ModulePass]) -> None:
    """Raise QcompError when a pass comes after one that it must not come after."""
    seen: list[str] = []
    for step in passes:
        for earlier in seen:
            reason = _AFTER.get((earlier, step.name))
            if reason is not None:
                raise QcompError(
                    f"{step.name} after {earlier}: {reason}",
                    code="pass-order",
                    hint=f"put {step.name} before {earlier}",
                )
        seen.append(step.name)


def letter_of(step: type[ModulePass] | ModulePass) -> Letter | None:
    """Return what a pass declares to do to numbers; None for a pass of a plug-in that declares nothing.

    xDSL's own passes keep every bit. Raises QcompError for a letter that does not exist.
    """
    kind = step if isinstance(step, type) else type(step)
    declared = getattr(kind, "letter", None)
    if declared is None:
        return Letter.EXACT if kind.__module__.startswith("xdsl.") else None
    if declared not in tuple(Letter):
        known = ", ".join(Letter)
        text = f"pass {kind.name} of {kind.__module__} declares the letter {declared!r}, expected one of {known}"
        raise QcompError(text, code="pass-letter")
    return Letter(declared)


def run_passes(
    module: ModuleOp, text: str, verify: bool = False, *, ctx: Context | None = None,
    available: Available | None = None, hooks: Sequence[Hook] = (), verify_each: bool = True,
) -> None:  # fmt: skip
    """Run the passes of `text` on `module`, in place; the module is verified after each, with `verify_each`.

    available: factories of the passes that may be named, by default `available_passes`. verify: hold each pass to its
    letter by running the module before and after it (`verify_rewrites`), which costs two interpretations per pass.
    Raises QcompError for a bad pipeline, a pass that refuses, and a broken promise.
    """
    where: Context = context() if ctx is None else ctx
    if available is None:
        available = available_passes()
    for step in parse_passes(available, text):
        progress.step(f"pass {step.name}")
        start = time.perf_counter()
        _apply(step, where, module, verify)
        if verify_each:
            check_module(module, f"pass {step.name} left")
        seconds = time.perf_counter() - start
        for hook in hooks:
            hook(step, module, seconds)


def _apply(step: ModulePass, ctx: Context, module: ModuleOp, verify: bool) -> None:
    if verify:
        from qcomp.transforms.verify_rewrites import apply_verified

        apply_verified(step, ctx, module)
    else:
        step.apply(ctx, module)


def check_module(module: ModuleOp, maker: str) -> None:
    """Raise QcompError when `module` does not verify. maker: words for where it comes from, such as "pass cse left"."""
    try:
        module.verify()
    except VerifyException as problem:
        text = f"{maker} a module that does not verify: {str(problem).splitlines()[0]}"
        culprit = first_invalid(module)
        raise (
            QcompError.at(culprit, text, code="broken-pass") if culprit else QcompError(text, code="broken-pass")
        ) from None
