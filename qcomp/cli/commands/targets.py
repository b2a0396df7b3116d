# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp targets`: the machines that C can be made for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qcomp.cli.output import show


def add_arguments(parser: ArgumentParser) -> None:
    """No options."""


def run(args: Namespace) -> int:
    """Print name, description and whether this machine runs it; ``*`` marks what ``native`` stands for here."""
    from qcomp.backend.target import TARGETS, find_target, runs_here

    native = find_target("native")
    width = max(len(name) for name in TARGETS)
    rows = [
        {"name": name, "description": each.description, "runs_here": runs_here(each), "native": each is native}
        for name, each in TARGETS.items()
    ]
    lines = [
        f"{'*' if row['native'] else ' '} {row['name']:{width}}  {row['description']}"
        f"{'' if row['runs_here'] else ' (does not run here)'}"
        for row in rows
    ]
    show(args, "\n".join(lines), {"targets": rows})
    return 0
