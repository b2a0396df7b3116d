# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants as a seed and a list of small edits, so that a fault can be reduced to the edits that make it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

Edit = Callable[[bytes, random.Random], bytes]
"""Changes an input a little."""

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)


@dataclass(frozen=True)
class Mutant:
    """`edits` are the edit and the seed of its random choices."""

    origin: str
    seed: bytes
    edits: tuple[tuple[Edit, int], ...]

    def build(self) -> bytes:
        """The input."""
        data = self.seed
        for edit, number in self.edits:
            with suppress(RecursionError):  # of an input that is nested deeply already
                data = edit(data, random.Random(number))
        return data

    def __str__(self) -> str:
        steps = ", ".join(f"{edit.__name__.strip('_')} {number}" for edit, number in self.edits)
        return f"{self.origin}: {steps}"


def make_mutant(origin: str, seed: bytes, edits: Sequence[Edit], rng: random.Random) -> Mutant:
    """One to six edits, mostly one or two."""
    count = rng.choice((1, 1, 1, 2, 2, 3, 6))
    return Mutant(origin, seed, tuple((rng.choice(edits), rng.getrandbits(32)) for _ in range(count)))


def reduce_edits(mutant: Mutant, still_fails: Callable[[bytes], bool]) -> Mutant:
    """`mutant` without the edits that the fault does not need."""
    for index in reversed(range(len(mutant.edits))):
        fewer = Mutant(mutant.origin, mutant.seed, mutant.edits[:index] + mutant.edits[index + 1 :])
        if fewer.edits and still_fails(fewer.build()):
            mutant = fewer
    return mutant


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes are others."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice((rng.randrange(256), rng.randrange(128), 0, 0x22, 0x5C))
    return bytes(changed)


def cut_bytes(data: bytes, rng: random.Random) -> bytes:
    """A piece is missing, or everything behind it."""
    start = rng.randrange(len(data) + 1)
    end = rng.choice((len(data), start + rng.randrange(64)))
    return data[:start] + data[end:]


def repeat_bytes(data: bytes, rng: random.Random) -> bytes:
    """A piece stands somewhere else, too, once or often."""
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((1, 8, 64, 512))] * rng.choice((1, 1, 2, 100))
    place = rng.randrange(len(data) + 1)
    return data[:place] + piece + data[place:]


def write_number(data: bytes, rng: random.Random) -> bytes:
    """A binary number at an extreme, mostly near the end, where the directory of a zip file is."""
    changed = bytearray(data)
    size = rng.choice((2, 4, 8))
    last = max(1, len(changed) - size)
    place = rng.randrange(last) if rng.random() < 0.4 else max(0, last - rng.randrange(1, 900))
    changed[place : place + size] = (rng.choice(_NUMBERS) % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)


BYTE_EDITS: tuple[Edit, ...] = (flip_bytes, cut_bytes, repeat_bytes, write_number)
