# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/ops.md: what becomes of every op of core ATen, and of every other op that is imported."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from qcomp.frontend.ops import HANDLERS
from qcomp.frontend.ops.complexes import COMPLEX_TARGETS
from tools.conformance.probes import core_ops, probes
from tools.conformance.status import CODES, NO, NONE, YES, Status, status

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"
_HEADER = """# Ops

Written by `python -m tools.conformance.ops_page`; do not edit. Each row was tried out: calls of the op, most of them
taken from torch's own operator samples, were exported, imported, interpreted, compiled to C and compared with eager
torch. *partly*: some calls are refused, the note says why. `-`: there is no such call by itself (the op is random,
holds uninitialized memory, gives a number that the export knows, or torch exports it as another op), or, under int8, no
operand or no result is a float. int8: between quantize and dequantize, nothing but those two works on floats; *codes*:
tensors in memory are codes, and floats live in registers only (a softmax, say, that reads and writes codes).

What is not imported is refused by name, all at once, by `qcomp check` and `qcomp compile`. Ops that torch can take
apart become others with `ExportedProgram.run_decompositions()`.
"""
_COLUMNS = "| op | imported | interpreted | float C | int8 C | note |\n| --- | --- | --- | --- | --- | --- |\n"


def listed_ops() -> tuple[list[str], list[str]]:
    """Core ATen, and what else has a handler."""
    core = core_ops()
    return core, sorted(_imported() - set(core))


def _imported() -> set[str]:
    return {*HANDLERS, *COMPLEX_TARGETS}


def page(rows: Mapping[str, Status]) -> str:
    """The text of the page."""
    core, others = listed_ops()
    parts = [_HEADER]
    for title, names in (("Core ATen", core), ("Other ops that are imported", others)):
        parts += [f"\n## {title}\n", "\n".join(_shares(title, [rows[name] for name in names])), "\n\n", _COLUMNS]
        parts += [row(name, rows[name]) for name in names]
    return "".join(parts)


def row(name: str, found: Status) -> str:
    """One line of the table."""
    cells = (f"`{name}`", found.imported, found.interpreted, found.emitted, found.integer, found.note)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _shares(title: str, rows: Sequence[Status]) -> list[str]:
    counts = {key: Counter(getattr(found, key) for found in rows) for key in ("imported", "emitted", "integer")}
    tried = len(rows) - counts["emitted"][NONE]
    coded = len(rows) - counts["integer"][NONE] - counts["imported"][NO]
    return [
        f"\n{counts['imported'][YES]} of {len(rows)} are imported; in float C {counts['emitted'][YES]} of {tried}"
        f" that can be tried; of {coded} with float operands and results {counts['integer'][YES]} work in int8 and"
        f" {counts['integer'][CODES]} more from codes to codes."
    ]


def read_page(text: str) -> dict[str, Status]:
    """The rows of a page."""
    found: dict[str, Status] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.replace("\\|", "\0").strip("| ").split("|"))
            cells = [cell.replace("\0", "|") for cell in cells]
            found[name.strip("`")] = Status(*[*cells, "", "", "", "", ""][:5])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page: rows that are missing or no longer true, or all of them, or those that are named."""
    parser = ArgumentParser(prog="ops_page", description=(__doc__ or "").strip())
    parser.add_argument("ops", nargs="*", help="ops to try again (default: those that are new)")
    parser.add_argument("--all", action="store_true", help="try every op again")
    options = parser.parse_args(arguments)
    core, others = listed_ops()
    kept = read_page(PAGE.read_text(encoding="utf-8")) if PAGE.exists() and not options.all else {}
    rows = {name: found for name, found in kept.items() if (found.imported == YES) == (name in _imported())}
    names = [name for name in [*core, *others] if name not in rows or name in options.ops]
    calls = probes(names)
    for name in names:
        rows[name] = status(name, calls[name], name in _imported())
        sys.stderr.write(row(name, rows[name]))
    PAGE.write_text(page(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
