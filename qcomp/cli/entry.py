# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the scripts `qcomp` and `qcomp-opt` call. Signals are handled before anything large is imported."""

from __future__ import annotations

from collections.abc import Sequence

from qcomp.cli.signals import ends_on_signals


@ends_on_signals
def qcomp(args: Sequence[str] | None) -> int:
    """Run `qcomp`."""
    from qcomp.cli.main import main

    return main(args)


@ends_on_signals
def qcomp_opt(args: Sequence[str] | None) -> int:
    """Run `qcomp-opt`."""
    from qcomp.cli.opt import main

    return main(args)
