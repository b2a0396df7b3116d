# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of the fuzzers."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qcomp.errors import QcompError
from tools.fuzzing.edits import BYTE_EDITS, Edit, Mutant, make_mutant, reduce_edits
from tools.fuzzing.isolation import Judge, Outcome, run_all
from tools.fuzzing.json_edits import edit_json, nest_json, twice
from tools.fuzzing.judges import C_MARK, C_PART, judge_mlir, judge_npz, judge_pt2, judge_sidecar
from tools.fuzzing.mlir_edits import MLIR_EDITS, reduce_text
from tools.fuzzing.seeds import mlir_seeds, npz_seeds, pt2_seeds, sidecar_seeds
from tools.fuzzing.sidecar_edits import NPZ_EDITS, SIDECAR_EDITS
from tools.fuzzing.zip_edits import ZIP_EDITS, on_member

PT2_EDITS: tuple[Edit, ...] = (
    *BYTE_EDITS, *ZIP_EDITS,
    *[on_member(edit_json, "models/model.json", "edit_program")] * 8,
    *[on_member(edit_json, "_config.json", "edit_table")] * 4,
    on_member(nest_json, ".json", "nest_json"), on_member(twice, ".json", "twice"),
)  # fmt: skip
_BATCH = 50
_SYNTAX = ["gcc", "-std=c99", "-fsyntax-only", "-Wall", "-Werror=implicit-function-declaration", "net.c"]


@dataclass(frozen=True)
class Kind:
    """A kind of input: what damages it and what judges it. `text`: whether faults are reduced as text."""

    what: str
    edits: tuple[Edit, ...]
    judge: Judge
    seeds: Callable[[Path], dict[str, bytes]]
    text: bool = False


KINDS = {
    "pt2": Kind("exported programs", PT2_EDITS, judge_pt2, pt2_seeds),
    "mlir": Kind("texts of IR", MLIR_EDITS, judge_mlir, lambda _: mlir_seeds(), text=True),
    "safetensors": Kind("sidecars", SIDECAR_EDITS, judge_sidecar, sidecar_seeds),
    "npz": Kind("inputs and samples", NPZ_EDITS, judge_npz, npz_seeds),
}


def main() -> int:
    """Run the fuzzer named on the command line; the exit code says whether there was a fault."""
    parser = ArgumentParser(prog="tools/fuzz", description=__doc__)
    listed = ", ".join(f"{name}: {kind.what}" for name, kind in KINDS.items())
    parser.add_argument("kind", choices=KINDS, help=f"what is damaged; {listed}")
    parser.add_argument("--count", type=int, default=2000, help="mutants (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the random choices (default: 0)")
    parser.add_argument("--keep", metavar="DIR", help="folder for reproducers (default: a new one in the system's)")
    parser.add_argument("--syntax", type=int, default=20, metavar="N", help="C texts given to gcc (default: 20)")
    args = parser.parse_args()
    try:
        return run(args)
    except QcompError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def run(args: Namespace) -> int:
    """Run mutants, print faults as they come, and what became of all."""
    kind, start = KINDS[args.kind], time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="qcomp-fuzz-seeds-") as folder:
        seeds = kind.seeds(Path(folder))
    mutants = generate(seeds, kind, args.count, args.seed)
    counts: Counter[str] = Counter()
    signatures: Counter[str] = Counter()
    sources: list[tuple[Mutant, str]] = []
    for mutant, outcome in judged(mutants, kind.judge):
        if outcome.detail.startswith(C_MARK):
            sources.append((mutant, outcome.detail.removeprefix(C_MARK)))
        counts[outcome.kind] += 1
        if outcome.fault:
            signatures[outcome.signature] += 1
            if signatures[outcome.signature] == 1:
                report(args.kind, mutant, outcome, args.keep)
    for mutant, problem in syntax_faults(sources, args.syntax, args.seed):
        counts["C"] += 1
        report(args.kind, mutant, Outcome("C", problem), args.keep)
    shown = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    print(f"{args.kind}: {args.count} mutants of {len(seeds)} seeds in {time.perf_counter() - start:.0f} s: {shown}")
    return 1 if set(counts) - {"ok", "refused"} else 0


def generate(seeds: dict[str, bytes], kind: Kind, count: int, number: int) -> Iterator[Mutant]:
    """`count` mutants; the same for the same seeds and number."""
    rng = random.Random(number)
    names = sorted(seeds)
    for _ in range(count):
        name = rng.choice(names)
        yield make_mutant(name, seeds[name], kind.edits, rng)


def judged(mutants: Iterator[Mutant], judge: Judge) -> Iterator[tuple[Mutant, Outcome]]:
    """Every mutant with its outcome, in batches."""
    batch: list[Mutant] = []
    for mutant in mutants:
        batch.append(mutant)
        if len(batch) == _BATCH:
            yield from _judge_batch(batch, judge)
            batch = []
    yield from _judge_batch(batch, judge)


def _judge_batch(batch: Sequence[Mutant], judge: Judge) -> Iterator[tuple[Mutant, Outcome]]:
    yield from zip(batch, run_all(judge, [mutant.build() for mutant in batch]), strict=True)


def report(name: str, mutant: Mutant, outcome: Outcome, keep: str | None) -> None:
    """Reduce, keep and print a faulty input."""
    kind = KINDS[name]

    def still_fails(data: bytes) -> bool:
        return next(run_all(kind.judge, [data])).signature == outcome.signature

    if outcome.kind != "C":
        mutant = reduce_edits(mutant, still_fails)
    data = mutant.build()
    if kind.text and outcome.kind not in ("C", "hang"):
        data = reduce_text(data, still_fails)
    folder = Path(keep or tempfile.mkdtemp(prefix="qcomp-fuzz-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.kind}-{len(list(folder.iterdir()))}.{name}"
    path.write_bytes(data)
    print(f"fault: {outcome.kind}: {outcome.detail.strip()[-1500:]}\n  of {mutant}\n  kept as {path}")
    if kind.text and len(data) < 2000:
        print(data.decode("utf-8", "replace"))
    sys.stdout.flush()


def syntax_faults(sources: Sequence[tuple[Mutant, str]], count: int, number: int) -> Iterator[tuple[Mutant, str]]:
    """What gcc says about a sample of the C texts."""
    if shutil.which("gcc") is None:
        return
    chosen = random.Random(number).sample(list(sources), min(count, len(sources)))
    for mutant, text in chosen:
        header, _, source = text.partition(C_PART)
        with tempfile.TemporaryDirectory(prefix="qcomp-fuzz-c-") as folder:
            (Path(folder) / "net.h").write_text(header)
            (Path(folder) / "net.c").write_text(source)
            done = subprocess.run(_SYNTAX, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            yield mutant, done.stderr[:2000]


