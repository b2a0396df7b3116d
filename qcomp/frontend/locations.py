# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source locations out of an export's metadata: module paths and stack traces."""

from __future__ import annotations

import re
from functools import lru_cache

from qcomp.frontend.graph import Location

_FRAME = re.compile(r'File "([^"\n]{1,4096})", line (\d{1,9})')
# Frames of the framework itself say nothing about the model: installed packages, source builds, torch's relative paths.
_FRAMEWORK = re.compile(
    r"^torch/|[\\/](?:site|dist)-packages[\\/](?:torch|torchao|executorch)[\\/]"
    r"|[\\/]torch[\\/](?:nn[\\/]|fx[\\/]|export[\\/]|ao[\\/]|_)|^<"
)
_SELF = re.compile(r"^L\['self'\]\.?|^L__self__\.?")
_ITEM = re.compile(r"\._modules\['([^']*)'\]|\['?([^'\]]*)'?\]")
_PLACEHOLDER = "_empty_nn_module_stack_from_metadata_hook"


def make_location(module_path: str | None, stack_trace: str | None) -> Location:
    """The location for a normalised module path and a Python stack trace; either may be missing."""
    file, line = _innermost(stack_trace) if stack_trace else (None, 0)
    return Location(module_path or None, file, line)


@lru_cache(maxsize=1024)
def _innermost(stack_trace: str) -> tuple[str | None, int]:
    """Base name and line of the innermost frame outside torch."""
    for path, line in reversed(_FRAME.findall(stack_trace)):
        if not _FRAMEWORK.search(path):
            return re.split(r"[\\/]", path)[-1], int(line)
    return None, 0


@lru_cache(maxsize=4096)
def module_path(path: str) -> str | None:
    """``L['self'].layer['0'].conv`` and ``layer.0.conv`` both as ``layer.0.conv``; None for the root."""
    if path.startswith(_PLACEHOLDER):
        return None
    path = _ITEM.sub(lambda found: f".{found.group(1) or found.group(2)}", _SELF.sub("", path))
    return path.strip(".") or None


def serialized_module_path(stack: str) -> str | None:
    """The innermost module path of a serialized stack: ``key,path,type`` entries joined by semicolons."""
    for entry in reversed(stack.split(";")):
        parts = _split(entry)
        if len(parts) == 3 and not parts[1].startswith(_PLACEHOLDER):
            return module_path(parts[1])
    return None


def _split(entry: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, start, depth = list[str](), 0, 0
    for end, char in enumerate(entry):
        if char in "[(":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(entry[start:end])
            start = end + 1
    return [*parts, entry[start:]]
