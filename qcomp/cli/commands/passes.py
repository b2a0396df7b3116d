# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp passes`: the passes, and what each does to numbers."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """One pass to explain, or none."""
    parser.add_argument("name", nargs="?", help="print all that is known of this pass")


def run(args: Namespace) -> int:
    """Print a table of name, letter and first line of documentation; or everything about one pass."""
    from qcomp.cli import universe
    from qcomp.transforms.base import Letter
    from qcomp.transforms.pipeline import PIPELINES, available_passes

    if args.name is not None:
        return _explain(args.name)
    available = available_passes()
    names = universe.advertised_passes()
    width = max(len(name) for name in names)
    print(f"{'pass':{width}}  letter  what it does")
    for name in names:
        step = available[name]()
        print(f"{name:{width}}  {getattr(step, 'letter', Letter.EXACT):6}  {_first_line(step)}")
    for name, text in PIPELINES.items():
        print(f"{name:{width}}          = {text}")
    return 0


def _first_line(step: type) -> str:
    lines = (step.__doc__ or "").strip().splitlines()
    return lines[0].strip() if lines else f"(of {step.__module__.split('.')[0]})"


def _explain(name: str) -> int:
    from xdsl.passes import get_pass_option_infos

    from qcomp.transforms.base import Letter
    from qcomp.transforms.pipeline import PIPELINES, available_passes, unknown_pass

    if name in PIPELINES:
        print(f"{name} = {PIPELINES[name]}")
        return 0
    available = available_passes()
    if name not in available:
        raise unknown_pass(name, available)
    step = available[name]()
    print(f"{name} ({getattr(step, 'letter', Letter.EXACT)})")
    for option in get_pass_option_infos(step):
        default = "" if option.default_value is None else f" = {option.default_value}"
        print(f"  option {option.name.replace('_', '-')}: {option.expected_type}{default}")
    documentation = sys.modules[step.__module__].__doc__ or step.__doc__ or ""
    print("\n" + documentation.strip())
    return 0
