# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits on what qcomp reads and makes, in one place; docs/limits.md explains each to users.

They bound what a few characters of a file can ask for. A refusal names the limit that was exceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

MAX_RANK = 64
"""Dimensions of a tensor: numpy's own limit."""
MAX_ELEMENTS = 1 << 36
"""Elements of a tensor, dimensions of size 0 left out; with it every offset into an arena fits 64 bits."""

MAX_TEXT_BYTES = 1 << 30
"""Bytes of a file of IR text."""
MAX_DENSE_ELEMENTS = 1 << 20
"""Elements of all ``dense`` attributes of a text that are xDSL's own; qcomp's constants have theirs in a sidecar."""
MAX_SPLAT_BYTES = 1 << 29
"""Bytes of all splat constants of a text, of which a few characters can ask for any number."""
MAX_BLOCKS = 1000
"""Labelled blocks of a text: xDSL takes time quadratic in their number, qcomp's own regions have one block."""
MAX_ALIASED = 1_000_000
"""Attributes that all uses of aliases in a text may stand for: forty lines of aliases can stand for 2^40."""
MAX_SIZE_NESTING = 64
"""Deepest nesting of a symbolic size."""

MAX_SIDECAR_HEADER_BYTES = 16 << 20
"""Bytes of the header of a sidecar file."""
MAX_MANIFEST_BYTES = 256 << 20
"""Bytes of the manifest of a saved artifact."""

MAX_COMPUTED_BYTES = 256 << 20
"""Bytes of all constants that an import computes: an op such as eye takes one number for any amount."""

MAX_SELFTEST_BYTES = 128 << 20
"""Bytes of inputs, outputs and arena up to which a saved artifact has a self-test, whose memory is static."""


def misfit(sizes: Sequence[int], least: int = 0) -> str | None:
    """The reason why no tensor has these sizes, None when one may; those below `least` are not known."""
    if len(sizes) > MAX_RANK:
        return f"{len(sizes)} dimensions, more than the {MAX_RANK} a tensor may have (limit MAX_RANK)"
    count = prod(size for size in sizes if size > max(least, 0))
    if count > MAX_ELEMENTS:
        shown = str(count) if count < 1 << 70 else f"more than 2^{count.bit_length() - 1}"
        return f"{shown} elements, more than the {MAX_ELEMENTS} a tensor may have (limit MAX_ELEMENTS)"
    return None
