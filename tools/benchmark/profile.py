# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of the single kernel calls of an emitted program, and the machine's peak, from one C program.

The program includes NAME.c, whose kernels are static, and runs the statements of NAME_run one by one: each many times
in a row, or all in turn as in an inference. A branch or loop is one statement; variables that statements share are
computed before. It asks for SCHED_FIFO, so that other processes do not show in the times.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qcomp.backend.emit_c import CProgram
from qcomp.backend.weights import write_weights
from qcomp.dialects.dim import substitute
from qcomp.dialects.loop import memref_bytes
from qcomp.errors import QcompError

_PEAK_LOOP = r"""
/* 24 independent accumulators hide the latency; nothing else is in the loop. */
#ifdef DOT
__attribute__((target("avx512f,avx512vnni"))) static double peak(void) {
  const long rounds = 200000;
  double best = 0;
  for (int repeat = 0; repeat < 12; ++repeat) {
    long n = rounds;
    const double begin = now();
    __asm__ volatile(
        "1:\n" BODY "dec %0\njnz 1b" : "+r"(n) :: "cc", CLOBBERED);
    const double rate = rounds * 24.0 * 64.0 / (now() - begin);
    if (rate > best) best = rate;
  }
  return best;
}
#else
static double peak(void) { return 0; }
#endif
"""


def _peak_source() -> str:
    body = "".join(f'"vpdpbusd %%zmm31, %%zmm30, %%zmm{i}\\n"' for i in range(24))
    clobbered = ", ".join(f'"xmm{i}"' for i in range(32))
    return f"#define BODY {body}\n#define CLOBBERED {clobbered}\n{_PEAK_LOOP}"


_MAIN = r"""
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void *filled(size_t bytes) {
  unsigned char *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
  uint32_t state = 12345;
  for (size_t i = 0; i < bytes; ++i) p[i] = (unsigned char)((state = state * 1664525u + 1013904223u) >> 25);
  return p;
}
"""
_LOOP = r"""
int main(void) {
  double best[STEPS > 0 ? STEPS : 1], top;
  const struct sched_param one = {1};
  const int alone = sched_setscheduler(0, SCHED_FIFO, &one) == 0;
  ALLOCATE
  top = peak();
  for (int i = 0; i < STEPS; ++i) best[i] = 1e9;
  if (IN_TURN) {
    const double end = now() + SECONDS;
    for (int repeat = 0; repeat < 5 || now() < end; ++repeat)
      for (int i = 0; i < STEPS; ++i) {
        const double begin = now();
        step(i, ARGUMENTS);
        const double time = now() - begin;
        if (time < best[i]) best[i] = time;
      }
  } else {
    for (int i = 0; i < STEPS; ++i) {
      const double end = now() + SECONDS;
      for (int repeat = 0; repeat < 10 || now() < end; ++repeat) {
        const double begin = now();
        step(i, ARGUMENTS);
        const double time = now() - begin;
        if (time < best[i]) best[i] = time;
      }
    }
  }
  printf("%d %.9g", alone, top);
  for (int i = 0; i < STEPS; ++i) printf(" %.9g", best[i]);
  printf("\n");
  return 0;
}
"""


@dataclass(frozen=True)
class Profile:
    """steps: the kernel of each call and its least time in seconds; peak: MAC/s of the dot instruction, 0 without it;
    alone: whether SCHED_FIFO was granted."""

    steps: list[tuple[str, float]]
    peak: float
    alone: bool


def profile(
    program: CProgram, compiler: str, flags: str, seconds: float, in_turn: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Profile:  # fmt: skip
    """Build and run. seconds: for each step, or with `in_turn` for all of them. sizes: of all symbols, in order.

    Raises QcompError when it fails.
    """
    statements = _statements(program)
    shared = [text for text in statements if text.startswith("const ")]
    calls = [text for text in statements if not text.startswith(("const ", "(void)"))]
    macros = {"STEPS": len(calls), "SECONDS": seconds, "IN_TURN": int(in_turn), **_memory(program, sizes or {})}
    with tempfile.TemporaryDirectory(prefix="qcomp-bench-") as name:
        folder = Path(name)
        weights = write_weights(folder, program.name, program.constants, "binary")
        (folder / f"{program.name}.c").write_text(program.source)
        (folder / f"{program.name}.h").write_text(program.header)
        (folder / "main.c").write_text(_source(program, shared, calls, macros))
        _run([*shlex.split(compiler), *shlex.split(flags), "main.c", *weights, "-o", "main"], folder)
        alone, peak, *times = _run(["./main"], folder).split()
    names = [call.split("(", 1)[0].strip() for call in calls]
    return Profile(list(zip(names, map(float, times), strict=True)), float(peak), alone == "1")


def _statements(program: CProgram) -> list[str]:
    """The statements of NAME_run; one with braces ends where they do."""
    body = re.search(rf"^void {program.name}_run\([^{{]*\{{(.*?)^\}}", program.source, re.M | re.S)
    if body is None:
        raise QcompError(f"{program.name}_run is not in the source", code="benchmark")
    found, text, depth = list[str](), "", 0
    for token in re.findall(r"[{};]|[^{};]+", re.sub(r"/\*.*?\*/", "", body[1], flags=re.S)):
        if depth == 0 and text.endswith("}") and not token.split()[:1] == ["else"]:
            found, text = [*found, text], ""
        text += " ".join(token.split()) + " " * token[-1:].isspace()
        depth += {"{": 1, "}": -1}.get(token, 0) + token.count("(") - token.count(")")
        if depth == 0 and token == ";":
            found, text = [*found, text], ""
    return [text for text in [*found, text] if text.strip()]


def _memory(program: CProgram, sizes: Mapping[str, int]) -> dict[str, str]:
    """What is allocated before the steps, and what they are given: numbers, inputs and outputs, state, arena."""
    ports = [arg for arg in program.arguments if arg.role not in ("arena", "state")]
    blocks = [substitute(memref_bytes(arg.type), sizes) for arg in ports]
    blocks += [program.state_bytes] * (program.state_bytes > 0)
    blocks.append(max(substitute(program.arena_bytes, sizes), 1))
    allocate = "".join(f"void *p{index} = filled({size});" for index, size in enumerate(blocks))
    if program.state_bytes:
        allocate += f"{program.name}_init(p{len(ports)});"
    arguments = [*map(str, sizes.values()), *(f"p{index}" for index in range(len(blocks)))]
    return {"ALLOCATE": allocate, "ARGUMENTS": ", ".join(arguments)}


def _source(program: CProgram, shared: Sequence[str], calls: Sequence[str], macros: Mapping[str, object]) -> str:
    head = "#define _GNU_SOURCE\n#include <sched.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n"
    if "dpbusd" in program.source:
        head += "#define DOT\n"
    prototype = re.search(rf"{program.name}_run\((.*?)\);", program.header, re.S)
    assert prototype is not None
    cases = "\n".join(f"    case {index}: {call} break;" for index, call in enumerate(calls))
    computed = "".join(f"  {text}\n" for text in shared)
    step = f"static void step(int which, {prototype[1]}) {{\n{computed}  switch (which) {{\n{cases}\n  }}\n}}"
    defines = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    return "\n".join([head + f'#include "{program.name}.c"', _MAIN, _peak_source(), step, defines, _LOOP])


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise QcompError(f"{shlex.join(command)}: " + "\n".join(lines[:8]), code="benchmark")
    return done.stdout
