# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading parsed JSON from strangers: each accessor checks the shape of what it returns."""

from __future__ import annotations

from typing import cast

from qcomp.errors import QcompError


def malformed(what: str) -> QcompError:
    """The error for JSON that is not of the expected shape."""
    return QcompError(f"malformed export: {what}", code="malformed-pt2")


def as_object(value: object, what: str) -> dict[str, object]:
    """`value` as an object."""
    if isinstance(value, dict):
        return cast(dict[str, object], value)
    raise malformed(f"{what} should be an object")


def as_list(value: object, what: str) -> list[object]:
    """`value` as a list."""
    if isinstance(value, list):
        return cast(list[object], value)
    raise malformed(f"{what} should be a list")


def as_text(value: object, what: str) -> str:
    """`value` as a string of sane length."""
    if isinstance(value, str) and len(value) <= 1 << 20:
        return value
    raise malformed(f"{what} should be text")


def as_int(value: object, what: str) -> int:
    """`value` as a 64-bit integer."""
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 64:
        return value
    raise malformed(f"{what} should be a 64-bit integer")


def as_bool(value: object, what: str) -> bool:
    """`value` as a bool."""
    if isinstance(value, bool):
        return value
    raise malformed(f"{what} should be true or false")


def as_float(value: object, what: str) -> float:
    """`value` as a float; torch writes the non-finite ones as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(as_int(value, what)) if isinstance(value, int) else value
    if value in ("Infinity", "-Infinity", "NaN"):
        return float(cast(str, value))
    raise malformed(f"{what} should be a number")


def as_union(value: object, what: str) -> tuple[str, object]:
    """`value` as a tagged union: an object with exactly one entry, which may be joined by nulls."""
    entries = [(key, part) for key, part in as_object(value, what).items() if part is not None]
    if len(entries) != 1:
        raise malformed(f"{what} should have exactly one kind")
    return entries[0]
