# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Import of large .pt2 files without torch: seconds, and memory against the size of the weights."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qcomp.errors import QcompError

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ("bert", "resnet50")
_MEASURE = """
import json, sys, time

def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))

start = time.perf_counter()
import qcomp, qcomp.frontend.importer, qcomp.frontend.pt2
before = memory("VmRSS")
module = qcomp.from_torch(sys.argv[1])
seconds = time.perf_counter() - start
from qcomp.dialects.nn import ConstantOp
weights = sum(op.array.nbytes for op in module.walk() if isinstance(op, ConstantOp))
print(json.dumps([seconds, memory("VmHWM") - before, weights, "torch" in sys.modules]))
"""


@dataclass(frozen=True)
class Imported:
    """seconds: the least of several, loading qcomp included; peak: bytes above what qcomp itself takes; weights: bytes.
    """

    seconds: float
    peak: int
    weights: int
    with_torch: bool

    @property
    def ratio(self) -> float:
        """Memory against the weights."""
        return self.peak / max(self.weights, 1)


def add_arguments(parser: ArgumentParser) -> None:
    """Which networks, how often."""
    parser.add_argument("names", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; all by default")
    parser.add_argument("--repeat", type=int, default=3, help="imports of each, each in a process (default: 3)")


def run(args: Namespace) -> int:
    """Print a line for each network."""
    unknown = [name for name in args.names if name not in NETWORKS]
    if unknown:
        raise QcompError(f"no network {unknown[0]}", code="benchmark", hint=f"one of {', '.join(NETWORKS)}")
    print(f"{'network':10} {'seconds':>8} {'peak MB':>8} {'weights MB':>11} {'ratio':>6}")
    for name in args.names or NETWORKS:
        with tempfile.TemporaryDirectory(prefix="qcomp-bench-") as folder:
            path = Path(folder) / f"{name}.pt2"
            _child(f"from tools.benchmark import importing; importing.export({name!r}, {str(path)!r})")
            found = measure(path, args.repeat)
        print(
            f"{name:10} {found.seconds:8.2f} {found.peak / 1e6:8.0f} {found.weights / 1e6:11.0f} {found.ratio:6.2f}",
            flush=True,
        )
    return 0


def measure(path: Path, repeat: int) -> Imported:
    """Import the file `repeat` times, in a process each. Raises QcompError when it fails."""
    runs = [Imported(*json.loads(_child(_MEASURE, str(path)))) for _ in range(repeat)]
    return min(runs, key=lambda found: found.seconds)


def export(name: str, path: str) -> None:
    """Export network `name` to the file `path`, with torch."""
    torch: Any = importlib.import_module("torch")
    if name == "bert":
        model, inputs = importlib.import_module("tools.benchmark.bert").bert()
    else:
        sys.path.append(str(ROOT / "test" / "support"))
        model, inputs = importlib.import_module("networks").build(name), (torch.ones(1, 3, 224, 224),)
    torch.export.save(torch.export.export(model, inputs), path)


def _child(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise QcompError(lines[-1], code="benchmark")
    return done.stdout
