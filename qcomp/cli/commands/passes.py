# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp passes`: the passes, and what each does to numbers."""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, Namespace
from typing import Any

from qcomp.cli.arguments import completed_by
from qcomp.cli.output import show
from qcomp.errors import QcompError

UNDECLARED = "undeclared"
"""Shown for a pass of a plug-in that does not say what it does to numbers."""


def add_arguments(parser: ArgumentParser) -> None:
    """One pass to explain, or none."""
    completed_by(parser.add_argument("name", nargs="?", help="print all that is known of this pass"), _names)


def _names() -> list[str]:
    from qcomp.cli import universe
    from qcomp.transforms.pipeline import PIPELINES

    return [*universe.advertised_passes(), *PIPELINES]


def run(args: Namespace) -> int:
    """Print a table of name, letter and first line of documentation; or everything about one pass."""
    from qcomp.transforms.pipeline import PIPELINES

    if args.name is not None:
        return _explain(args)
    rows = _rows()
    width = max(len(row["name"]) for row in rows)
    lines = [f"{'pass':{width}}  letter  what it does"]
    lines += [f"{row['name']:{width}}  {row['letter'] or UNDECLARED:6}  {row['summary']}" for row in rows]
    lines += [f"{name:{width}}          = {text}" for name, text in PIPELINES.items()]
    show(args, "\n".join(lines), {"passes": rows, "pipelines": PIPELINES})
    return 0


def _rows() -> list[dict[str, Any]]:
    """Return a row for each pass; one of a plug-in that cannot be loaded is left out with a warning."""
    from qcomp.cli import universe
    from qcomp.transforms.pipeline import available_passes, letter_of

    available = available_passes()
    rows: list[dict[str, Any]] = []
    for name in universe.advertised_passes():
        try:
            step = available[name]()
            rows.append({"name": name, "letter": letter_of(step), "summary": _first_line(step)})
        except QcompError as error:
            warnings.warn(str(error), stacklevel=2)
    return rows


def _first_line(step: type) -> str:
    lines = (step.__doc__ or "").strip().splitlines()
    return lines[0].strip() if lines else f"(of {step.__module__.split('.')[0]})"


def _explain(args: Namespace) -> int:
    from xdsl.passes import get_pass_option_infos

    from qcomp.transforms.pipeline import PIPELINES, available_passes, letter_of, unknown_pass

    name = args.name
    if name in PIPELINES:
        show(args, f"{name} = {PIPELINES[name]}", {"name": name, "pipeline": PIPELINES[name]})
        return 0
    available = available_passes()
    if name not in available:
        raise unknown_pass(name, available)
    step = available[name]()
    letter = letter_of(step)
    lines = [f"{name} ({letter or UNDECLARED})"]
    options: list[dict[str, Any]] = []
    for option in get_pass_option_infos(step):
        title, kind = option.name.replace("_", "-"), str(option.expected_type)
        options.append({"name": title, "type": kind, "default": option.default_value})
        default = "" if option.default_value is None else f" = {option.default_value}"
        lines.append(f"  option {title}: {kind}{default}")
    text = (sys.modules[step.__module__].__doc__ or step.__doc__ or "").strip()
    data = {"name": name, "letter": letter, "options": options, "documentation": text}
    show(args, "\n".join([*lines, "", text]), data)
    return 0
