# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp targets`: the machines that C can be made for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """No options."""


def run(args: Namespace) -> int:
    """Print name, description and whether this machine runs it; ``*`` marks what ``native`` stands for here."""
    from qcomp.backend.target import TARGETS, find_target, runs_here

    native = find_target("native")
    width = max(len(name) for name in TARGETS)
    for name, target in TARGETS.items():
        note = "" if runs_here(target) else " (does not run here)"
        print(f"{'*' if target is native else ' '} {name:{width}}  {target.description}{note}")
    return 0
