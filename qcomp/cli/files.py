# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output files: whole or not there at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from qcomp.writing import writing


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write `content` to `path` through a temporary file beside it; a device or pipe is written as it is."""
    data = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    if not target.parent.exists():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    with writing(path):
        try:
            partial.write_bytes(data)
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
