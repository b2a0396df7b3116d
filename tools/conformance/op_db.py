# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's operator samples (`op_db`) through qcomp: equal to eager, refused by name, not exported by torch, or WRONG.

Every operator runs in a process of its own under a time limit. `--json FILE` keeps one line for each operator and
dtype; a run that finds it there does not repeat it.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tools.conformance.judge import CLASSES, EQUAL, WRONG, judge
from tools.conformance.samples import DTYPES, operators, samples_of, undefined


@dataclass
class Result:
    """The samples of one operator in one dtype: how many of each class, and the reasons of those that are not equal."""

    op: str
    dtype: str
    counts: dict[str, int] = field(default_factory=dict[str, int])
    reasons: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0

    @property
    def samples(self) -> int:
        """How many there were."""
        return sum(self.counts.values())


def run(entry: Any, name: str, dtype: str, count: int, emitted: int) -> Result:
    """Judge `count` samples of one operator, compile the first `emitted`."""
    start, result = time.process_time(), Result(name, dtype)
    counts, reasons = Counter[str](), Counter[str]()
    for index, sample in enumerate(samples_of(entry, DTYPES[dtype], count)):
        outcome = judge(sample, index < emitted, undefined(entry.name, dtype))
        counts[outcome.kind] += 1
        if outcome.kind != EQUAL:
            reasons[f"{outcome.kind}: {outcome.reason}"] += 1
    result.counts, result.reasons = dict(counts), dict(reasons)
    result.seconds = round(time.process_time() - start, 2)
    return result


def run_isolated(entry: Any, name: str, dtype: str, options: Namespace) -> Result:
    """`run` in a process of its own; one that dies or takes too long counts as WRONG."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sending, entry, name, dtype, options.samples, options.emit))
    process.start()
    sending.close()
    try:
        if receiving.poll(options.timeout):
            return receiving.recv()
        reason = f"no answer within {options.timeout} s"
    except EOFError:
        reason = "the process died"
    finally:
        process.kill()
        process.join()
    return Result(name, dtype, {WRONG: 1}, {f"{WRONG}: {reason}": 1})


def _child(sending: Connection, entry: Any, name: str, dtype: str, count: int, emitted: int) -> None:
    try:
        sending.send(run(entry, name, dtype, count, emitted))
    except Exception as problem:  # torch cannot make the samples
        reason = f"not exported: no samples: {type(problem).__name__}: {problem}"[:300]
        sending.send(Result(name, dtype, {"not exported": 1}, {reason: 1}))


def results(options: Namespace) -> Iterator[Result]:
    """The results of all operators asked for, those of earlier runs first."""
    done = read(options.json)
    yield from done
    known = {(result.op, result.dtype) for result in done}
    part, parts = options.share
    for index, (name, entry) in enumerate(operators().items()):
        if index % parts != part - 1 or (options.ops and not {name, entry.name} & set(options.ops)):
            continue
        for dtype in options.dtypes.split(","):
            if (name, dtype) in known or DTYPES[dtype] not in entry.supported_dtypes("cpu"):
                continue
            result = run_isolated(entry, name, dtype, options)
            if options.json:
                with open(options.json, "a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(result)) + "\n")
            yield result


def read(path: str | None) -> list[Result]:
    """The results kept in a file."""
    if not path or not Path(path).exists():
        return []
    with open(path, encoding="utf-8") as file:
        return [Result(**json.loads(line)) for line in file]


def line(result: Result) -> str:
    """One row of the table."""
    parts = ", ".join(f"{result.counts[kind]} {kind}" for kind in CLASSES if result.counts.get(kind))
    return f"{result.op:44} {result.dtype:9} {parts}"


def summary(found: Sequence[Result]) -> list[str]:
    """Shares of samples by dtype and in all, and of operators of which every exported sample is equal."""
    lines: list[str] = []
    for dtype in [*dict.fromkeys(result.dtype for result in found), "all"]:
        chosen = [result for result in found if dtype in (result.dtype, "all")]
        total = Counter[str]()
        for result in chosen:
            total.update(result.counts)
        count = max(sum(total.values()), 1)
        shares = ", ".join(f"{kind} {total[kind]} ({100 * total[kind] / count:.1f}%)" for kind in CLASSES)
        whole = sum(result.counts.get(EQUAL, 0) == result.samples > 0 for result in chosen)
        lines.append(f"{dtype}: {count} samples of {len(chosen)} operators: {shares}; {whole} operators in full")
    return lines


def _share(text: str) -> tuple[int, int]:
    """Parse "K/N". Raises ValueError, which argparse reports."""
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError
    return part, parts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; 1 when anything is WRONG."""
    parser = ArgumentParser(prog="tools/conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ops", nargs="*", help="names as in op_db, with or without variant (default: all)")
    parser.add_argument("--dtypes", default="float32,int64,bool", help=f"of {','.join(DTYPES)}")
    parser.add_argument("--samples", type=int, default=8, help="of each operator and dtype at most (default: 8)")
    parser.add_argument("--emit", type=int, default=0, help="of these to compile to C (default: 0)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for an operator in a dtype (default: 120)")
    parser.add_argument("--share", type=_share, default=(1, 1), metavar="K/N", help="of N parts of all the K-th")
    parser.add_argument("--reasons", action="store_true", help="print why samples are not equal")
    parser.add_argument("--json", metavar="FILE", help="one line a result; those in it are not run again")
    options = parser.parse_args(arguments)
    found: list[Result] = []
    for result in results(options):
        found.append(result)
        print(line(result), flush=True)
        for reason, count in result.reasons.items():
            if options.reasons or reason.startswith(WRONG):
                print(f"    {count} x {reason}")
    print(*summary(found), sep="\n")
    return int(any(result.counts.get(WRONG) for result in found))


if __name__ == "__main__":
    sys.exit(main())
