# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Targets: small descriptions of a machine that lowering and C emission read. A target is data, not a code path."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from qcomp.errors import QcompError
from qcomp.suggestions import did_you_mean

ARENA_ALIGNMENT = 64
"""Of the arena and of constants, in bytes: a cache line, and the widest vector register."""


@dataclass(frozen=True)
class Target:
    """What lowering needs to know of a machine.

    lanes: 32-bit lanes of a vector register (1: plain scalar code). dot_group: int8 products that one dot
    instruction adds per lane. registers: vector registers. cache_ways, cache_way_bytes: of the first-level data
    cache. unsigned_activations: the dot instruction takes unsigned times signed bytes. isa: which spelling of vector
    ops the C emitter uses. attribute: the value of the function attribute ``target`` in gcc and clang. cpu_flags: what
    the CPU must report.
    """

    name: str
    description: str
    isa: str
    lanes: int = 1
    dot_group: int = 1
    registers: int = 0
    cache_ways: int = 8
    cache_way_bytes: int = 4096
    unsigned_activations: bool = False
    attribute: str | None = None
    cpu_flags: tuple[str, ...] = ()


GENERIC = Target("generic", "C99 for any machine: plain loops", "c")
AVX512VNNI = Target(
    "x86-64-avx512vnni",
    "x86-64 with AVX-512 F, BW, DQ, VL and VNNI",
    "avx512",
    lanes=16,
    dot_group=4,
    registers=32,
    unsigned_activations=True,
    attribute="avx512f,avx512bw,avx512dq,avx512vl,avx512vnni",
    cpu_flags=("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"),
)
TARGETS = {target.name: target for target in (GENERIC, AVX512VNNI)}


@cache
def cpu_flags() -> frozenset[str]:
    """The feature flags of this machine's CPU as Linux names them; empty where they cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = [line.split(":", 1)[1] for line in lines if line.startswith("flags")]
    return frozenset(flags[0].split() if flags else ())


def runs_here(target: Target) -> bool:
    """Whether this machine can run code for `target`."""
    if target.isa == "c":
        return True
    return platform.machine() in ("x86_64", "AMD64") and cpu_flags().issuperset(target.cpu_flags)


def find_target(name: str) -> Target:
    """The target of that name; ``native`` is the best one that runs here. Raises QcompError for unknown names."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise QcompError(
            f"target is a {type(name).__name__}, expected a name",
            code="unknown-target", hint="inputs to export with are given by name: example_inputs=(x,)",
        )  # fmt: skip
    if name == "native":
        return AVX512VNNI if runs_here(AVX512VNNI) else GENERIC
    if name not in TARGETS:
        hint = did_you_mean(name, ["native", *TARGETS])
        raise QcompError(f"unknown target {name}", code="unknown-target", hint=hint)
    return TARGETS[name]
