# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Child processes that end when this one is interrupted, with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_GRACE_SECONDS = 2.0


def run_child(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `command` in `folder`, where its temporary files go, too, and return exit code and output.

    It has a process group of its own, which Ctrl-C does not reach: whatever exception ends the wait ends the group.
    Raises OSError when it does not start.
    """
    options: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    options["env"] = {**os.environ, "TMPDIR": str(folder.resolve())}
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", **options,
    ) as child:  # fmt: skip
        try:
            out, err = child.communicate()
        except BaseException:
            _end(child)
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def _end(child: subprocess.Popen[str]) -> None:
    """Ask the group to end, so that compilers remove their files; then make it."""
    _send(child, "SIGTERM")
    try:
        child.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _send(child, "SIGKILL")  # Also to those that the child left behind.


def _send(child: subprocess.Popen[str], name: str) -> None:
    if os.name != "posix":
        child.kill()
        return
    try:
        os.killpg(child.pid, getattr(signal, name))
    except (ProcessLookupError, PermissionError):
        pass  # All are gone.
