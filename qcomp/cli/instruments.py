# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What can watch a pipeline: printing the IR between passes, timing, a reproducer of a failure."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from qcomp.dialects import sidecar
from qcomp.dialects.constant import INLINE_LIMIT
from qcomp.dialects.text import print_text
from qcomp.writing import write_atomically


class Instrument:
    """Called around every pass; each method does nothing unless a subclass says so."""

    def before(self, step: ModulePass, module: ModuleOp, rest: tuple[ModulePass, ...]) -> None:
        """`step` is about to run on `module`, and after it `rest`."""

    def after(self, step: ModulePass, module: ModuleOp) -> None:
        """`step` ran and left a module that verifies."""

    def failed(self, step: ModulePass, module: ModuleOp) -> None:
        """`step` raised an error, or left a module that does not verify."""


class ElidingPrinter(Printer):
    """Prints large ``dense`` literals as MLIR does when told to elide them; qcomp's own constants print a digest."""

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, DenseIntOrFPElementsAttr):
            dense = cast(DenseIntOrFPElementsAttr[Any], attribute)
            if len(dense) > INLINE_LIMIT:
                self.print_string("dense_resource<__elided__> : ")
                return super().print_attribute(cast(Attribute, dense.type))
            return super().print_attribute(dense)
        return super().print_attribute(attribute)


@dataclass
class IrPrinting(Instrument):
    """Prints the IR to stderr; None stands for every pass."""

    passes_before: Collection[str] | None = ()
    passes_after: Collection[str] | None = ()
    generic: bool = False
    debuginfo: bool = False

    def before(self, step: ModulePass, module: ModuleOp, rest: tuple[ModulePass, ...]) -> None:
        if self.passes_before is None or step.name in self.passes_before:
            self._dump(f"IR Dump Before {step.name}", module)

    def after(self, step: ModulePass, module: ModuleOp) -> None:
        if self.passes_after is None or step.name in self.passes_after:
            self._dump(f"IR Dump After {step.name}", module)

    def failed(self, step: ModulePass, module: ModuleOp) -> None:
        if self.passes_after is None or step.name in self.passes_after:
            self._dump(f"IR Dump After {step.name} Failed", module)

    def _dump(self, title: str, module: ModuleOp) -> None:
        stream = StringIO()
        printer = ElidingPrinter(stream=stream, print_generic_format=self.generic, print_debuginfo=self.debuginfo)
        printer.print_op(module)
        sys.stderr.write(f"// -----// {title} //----- //\n{stream.getvalue()}\n\n\n")


@dataclass
class Timing(Instrument):
    """Wall time by phase, in order; `report` prints it to stderr."""

    spans: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _started: float = field(default_factory=time.perf_counter)

    def start(self) -> None:
        """Begin a lap."""
        self._started = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap as `name`."""
        now = time.perf_counter()
        self.spans.append((name, now - self._started))
        self._started = now

    def before(self, step: ModulePass, module: ModuleOp, rest: tuple[ModulePass, ...]) -> None:
        self.start()

    def after(self, step: ModulePass, module: ModuleOp) -> None:
        self.lap(step.name)

    def report(self) -> None:
        """Print the table."""
        total = sum(seconds for _, seconds in self.spans)
        rule = f"===-{'-' * 73}-==="
        lines = [rule, f"{'... Execution time report ...':^81}".rstrip(), rule]
        lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        for name, seconds in [*self.spans, ("Total", total)]:
            share = 100 * seconds / total if total else 0.0
            lines.append(f"  {seconds:8.4f} ({share:5.1f}%)  {name}")
        sys.stderr.write("\n".join(lines) + "\n")


@dataclass
class Reproducer(Instrument):
    """Writes the module as it was before the pass that failed, with the rest of the pipeline in its first line."""

    path: Path
    _module: ModuleOp | None = None
    _rest: tuple[ModulePass, ...] = ()

    def before(self, step: ModulePass, module: ModuleOp, rest: tuple[ModulePass, ...]) -> None:
        self._module = module.clone()
        self._rest = (step, *rest)

    def failed(self, step: ModulePass, module: ModuleOp) -> None:
        assert self._module is not None
        pipeline = ",".join(str(item) for item in self._rest)
        constants = sidecar.large_constants(self._module)
        if constants:
            sidecar.write(self.path.with_suffix(".safetensors"), constants)
        write_atomically(self.path, f"{REPRODUCER_HEADER}{pipeline}\n{print_text(self._module)}")
        sys.stderr.write(f"note: reproducer written: qcomp-opt {self.path} --run-reproducer\n")


REPRODUCER_HEADER = "// qcomp-opt reproducer: "
"""What the first line of a reproducer starts with; the pipeline follows."""
