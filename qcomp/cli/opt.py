# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp-opt`: reads modules, runs passes, prints the result; with mlir-opt's manners."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, ClassVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.diagnostic import Diagnostic as XdslDiagnostic
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import VersionAction, xDSLOptMain

from qcomp import __version__ as qcomp_version
from qcomp.cli import expectations, failures, universe
from qcomp.cli.arguments import OneLineParser, completed_by_files, offer_completion
from qcomp.cli.diagnostics import Diagnostic, at_description, from_exception
from qcomp.cli.instruments import REPRODUCER_HEADER, Instrument, IrPrinting, Reproducer, Timing
from qcomp.cli.opt_arguments import add_arguments
from qcomp.cli.pipeline import run_pipeline, verify_module
from qcomp.cli.signals import ends_on_signals
from qcomp.dialects import sidecar
from qcomp.dialects.constant import ConstantData
from qcomp.dialects.context import QcompContext, context
from qcomp.dialects.hex_literal import large_constants_as
from qcomp.dialects.parser import SourceParser
from qcomp.dialects.quant import expanded_types
from qcomp.dialects.text import check_version, store_beside
from qcomp.errors import QcompError
from qcomp.limits import MAX_TEXT_BYTES
from qcomp.reading import open_regular, read_bytes, read_stream
from qcomp.suggestions import did_you_mean
from qcomp.transforms.pipeline import available_passes, parse_passes
from qcomp.transforms.rewriting import refusal_log
from qcomp.writing import write_atomically

_DESCRIPTION = "Reads modules, runs passes, prints the result; options as in mlir-opt."
_LIMIT = "MAX_TEXT_BYTES", MAX_TEXT_BYTES
_SPLIT = re.compile(rb"^// -----[ \t\r]*$\n?", re.MULTILINE)


class QcompOpt(xDSLOptMain):
    """The tool. Subclass it to add dialects, passes, targets or options, as with xDSL's own."""

    ctx: QcompContext
    version_format: ClassVar[str] = f"qcomp-opt of qcomp {qcomp_version}, on xdsl {{xdsl_version}}"

    def __init__(self, description: str = _DESCRIPTION, args: Sequence[str] | None = None):
        # xDSL's constructor is not called: its --disable-verify switches verification off for the whole process.
        self.available_frontends = {}
        self.available_passes = {}
        self.available_targets = {}
        self.exit_code = 0
        self._reproducer: Path | None = None
        self._line_offset = 0
        self._constants: dict[str, ConstantData] = {}
        self.register_all_dialects()
        self.register_all_frontends()
        self.register_all_passes()
        self.register_all_targets()
        parser = OneLineParser(prog="qcomp-opt", description=description, allow_abbrev=False)
        self.register_all_arguments(parser)
        offer_completion(parser)
        self.args = parser.parse_args(args)
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect
        XdslDiagnostic.colored = self.args.syntax_highlight
        self.timing = Timing()
        self.setup_pipeline()
        self._check_target()

    def register_all_dialects(self) -> None:
        self.ctx = context()

    def register_all_passes(self) -> None:
        self.available_passes.update(available_passes())

    def register_all_targets(self) -> None:
        self.available_targets.update(universe.available_targets())

    def register_all_frontends(self) -> None:
        self.available_frontends["mlir"] = self._parse_mlir
        self.available_frontends["pt2"] = self._import_pt2

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        frontends = list(self.available_frontends)
        source = arg_parser.add_argument(
            "input_file", nargs="?", help="the input: .mlir or .pt2; standard input when left out"
        )
        completed_by_files(source, "mlir", "pt2")
        arg_parser.add_argument("-f", "--frontend", choices=frontends, help="kind of input, else by its extension")
        add_arguments(arg_parser, universe.advertised_passes(), list(self.available_targets))
        arg_parser.add_argument("-v", "--version", action=VersionAction, version_format=self.version_format)

    def setup_pipeline(self) -> None:
        text = self.args.passes
        if self.args.run_reproducer:
            text = _reproducer_pipeline(self.args.input_file)
        self.pipeline = PassPipeline(parse_passes(self.available_passes, text))

    def run(self) -> None:
        """Process every chunk of the input, write the output, set `exit_code` to the largest of all."""
        texts: list[str] = []
        for chunk, offset in self._chunks():
            text, diagnostics = self._process(chunk, offset)
            for diagnostic in diagnostics:
                sys.stderr.write(f"{diagnostic}\n")
            if any(diagnostic.kind == "error" for diagnostic in diagnostics):
                self.exit_code = max(self.exit_code, failures.INPUT)
            failures.announce(self._reproducer)
            self._reproducer = None
            if text is not None:
                texts.append(text)
        self._write("// -----\n".join(texts))
        if self.args.mlir_timing:
            self.timing.report()

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp:
        """The verified module of one chunk, whose text starts after `start_offset` lines of the file."""
        self._line_offset = start_offset
        module = self.available_frontends[file_extension](chunk)
        if not self.args.disable_verify:
            verify_module(module)
        return module

    def apply_passes(self, prog: ModuleOp) -> None:
        apply = None
        if self.args.verify_rewrites:
            from qcomp.transforms.verify_rewrites import apply_verified as apply
        verify = not self.args.disable_verify
        run_pipeline(self.ctx, prog, self.pipeline.passes, self._instruments(), verify=verify, apply=apply)

    def get_input_name(self) -> str:
        return "<stdin>" if self.args.input_file in (None, "-") else self.args.input_file

    def _process(self, chunk: bytes, offset: int) -> tuple[str | None, list[Diagnostic]]:
        diagnostics: list[Diagnostic] = []
        text = None
        try:
            with self._remarks(diagnostics):
                text = self._compile(chunk, offset)
        except Exception as error:
            if self.args.debug:
                raise
            diagnostics.append(from_exception(error))
            self._failed(error, chunk, offset)
        if self.args.verify_diagnostics:
            announced = expectations.parse_expectations(chunk.decode(), offset)
            diagnostics = expectations.check(announced, diagnostics, self.get_input_name())
        return text, diagnostics

    def _failed(self, error: Exception, chunk: bytes, offset: int) -> None:
        """Note the exit code of `error`, and keep a reproducer of a fault; announced errors are what they should be."""
        code = failures.exit_code(error)
        if self.args.verify_diagnostics:
            return
        self.exit_code = max(self.exit_code, code)
        asked = self.args.mlir_pass_pipeline_crash_reproducer
        if code == failures.FAULT and not (asked and Path(asked).exists()):
            text = chunk.decode(errors="replace")
            with suppress(Exception):  # The text itself is kept where reading it is what fails.
                module = self.parse_chunk(BytesIO(chunk), self._extension(), offset)
                text = failures.module_text(module, self.args.reproducer_weights)
            pipeline = ",".join(str(step) for step in self.pipeline.passes)
            self._reproducer = failures.write_module_reproducer(error, f"{REPRODUCER_HEADER}{pipeline}", text)

    def _compile(self, chunk: bytes, offset: int) -> str:
        self.timing.start()
        module = self.parse_chunk(BytesIO(chunk), self._extension(), offset)
        self.timing.lap("Parser")
        self.apply_passes(module)
        self.timing.start()
        inline = large_constants_as("bytes" if self.args.inline_constants else "digest")
        with expanded_types() if self.args.expand_types else nullcontext(), inline:
            text = self.output_resulting_program(module).rstrip("\n") + "\n"
        self.timing.lap("Output")
        beside = self.args.output_file is not None and not self.args.inline_constants
        if beside and parse_spec(self.args.target).name == "mlir":
            self._constants.update(sidecar.large_constants(module))
        return text

    @contextmanager
    def _remarks(self, diagnostics: list[Diagnostic]) -> Generator[None]:
        """With --explain, turns the refusal log into remarks, also when an error ends the pipeline."""
        with refusal_log() as records:
            try:
                yield
            finally:
                if self.args.explain:
                    for item in records:
                        text = f"{item.rule} refused '{item.op}': {item.reason}"
                        diagnostics.append(at_description(item.location, text, "remark"))

    def _chunks(self) -> list[tuple[bytes, int]]:
        if self.args.input_file in (None, "-"):
            content = read_stream(sys.stdin.buffer, "standard input", _LIMIT)
        elif self._extension() == "pt2":
            return [(b"", 0)]  # the importer maps the file
        else:
            content = read_bytes(self.args.input_file, _LIMIT)
        if not self.args.split_input_file:
            return [(content, 0)]
        chunks: list[tuple[bytes, int]] = []
        lines = 0
        for chunk in _SPLIT.split(content):
            chunks.append((chunk, lines))
            lines += chunk.count(b"\n") + 1
        return chunks

    def _extension(self) -> str:
        if self.args.frontend:
            return self.args.frontend
        extension = Path(self.args.input_file or "").suffix[1:]
        return extension if extension in self.available_frontends else "mlir"

    def _parse_mlir(self, io: IO[bytes]) -> ModuleOp:
        if self.args.input_file not in (None, "-"):
            self._refuse_other_formats(Path(self.args.input_file))
            self.ctx.constants = store_beside(Path(self.args.input_file))
        try:
            text = io.read().decode()
        except UnicodeDecodeError:
            raise QcompError(f"{self.get_input_name()} is no UTF-8 text", code="encoding") from None
        parser = SourceParser(self.ctx, text, self.get_input_name(), self._line_offset)
        module = parser.parse_module(not self.args.no_implicit_module)
        check_version(module, self.get_input_name())
        return module

    def _refuse_other_formats(self, path: Path) -> None:
        if self.args.frontend is None and path.suffix not in ("", ".mlir"):
            from qcomp.frontend.file_kinds import refuse_other_formats

            refuse_other_formats(path)

    def _import_pt2(self, io: IO[bytes]) -> ModuleOp:
        from qcomp.frontend import from_torch

        if self.args.input_file not in (None, "-"):
            return from_torch(self.args.input_file)
        with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
            shutil.copyfileobj(io, file)
            file.flush()
            return from_torch(file.name)

    def _instruments(self) -> list[Instrument]:
        args = self.args
        found: list[Instrument] = [self.timing]
        before = None if args.print_ir_before_all else args.print_ir_before
        after = None if args.print_ir_after_all else args.print_ir_after
        if before != [] or after != []:
            found.append(IrPrinting(before, after, args.print_op_generic, args.print_debuginfo))
        if args.mlir_pass_pipeline_crash_reproducer:
            found.append(Reproducer(Path(args.mlir_pass_pipeline_crash_reproducer)))
        return found

    def _write(self, text: str) -> None:
        if self.args.output_file in (None, "-"):
            sys.stdout.write(text)
            sys.stdout.flush()
        elif self.exit_code == 0:
            if self._constants:
                sidecar.write(Path(self.args.output_file).with_suffix(".safetensors"), self._constants)
            write_atomically(self.args.output_file, text)

    def _check_target(self) -> None:
        try:
            spec = parse_spec(self.args.target)
        except ArgSpecParseError:
            raise QcompError(f"target '{self.args.target}' does not parse", code="unknown-target") from None
        if spec.name not in self.available_targets:
            hint = did_you_mean(spec.name, self.available_targets)
            raise QcompError(f"unknown target '{spec.name}'", code="unknown-target", hint=hint)
        if spec.parameters:
            factory = cast(Callable[[], type[Target]], self.available_targets[spec.name])
            try:
                factory().from_spec(spec)
            except ValueError as problem:
                raise QcompError(f"target {spec.name}: {problem}", code="target-option") from None


def _reproducer_pipeline(path: str | None) -> str:
    if path is None:
        raise QcompError("--run-reproducer needs a file", code="usage")
    with open_regular(path) as file:
        first = file.readline(1 << 16).decode("utf-8", "replace").rstrip("\n")
    if not first.startswith(REPRODUCER_HEADER):
        raise QcompError(f"{path} is no reproducer: its first line names no pipeline", code="reproducer")
    return first.removeprefix(REPRODUCER_HEADER)


@ends_on_signals
def main(args: Sequence[str] | None = None) -> int:
    """Run `qcomp-opt` with `args` (default: the command line). Returns the exit code: 0, or one of `failures`."""
    arguments = sys.argv[1:] if args is None else list(args)
    debug = "--debug" in arguments or os.environ.get("QCOMP_DEBUG", "0") not in ("", "0")
    try:
        tool = QcompOpt(args=arguments)
        tool.args.debug = debug
        tool.run()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as exit_:
        return failures.USAGE if exit_.code else 0
    except Exception as error:
        if debug:
            raise
        sys.stderr.write(f"{from_exception(error)}\n")
        code = failures.exit_code(error)
        if code == failures.FAULT:
            failures.announce(failures.write_reproducer(error, ["qcomp-opt", *arguments], None))
        return code
    return tool.exit_code


if __name__ == "__main__":
    sys.exit(main())
