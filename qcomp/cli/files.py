# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output files: whole or not there at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` through a temporary file beside it; a device or pipe is written as it is."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, target)
    except FileNotFoundError as problem:
        raise FileNotFoundError(problem.errno, "no such folder", str(target.parent)) from None
    finally:
        partial.unlink(missing_ok=True)
