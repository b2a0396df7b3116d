# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opening files that others wrote: regular files only, up to a stated size, and not beyond the memory there is.

A fifo hangs whoever opens it, a link to /dev/zero never ends. All of qcomp's readers open files here.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from qcomp.errors import QcompError

_KINDS = (
    (stat.S_ISFIFO, "a fifo"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"), (stat.S_ISSOCK, "a socket"),
)  # fmt: skip
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def open_regular(path: str | os.PathLike[str], limit: tuple[str, int] | None = None) -> BufferedReader:
    """The file at `path`, opened to be read. limit: name and value of the most bytes that it may have.

    Raises OSError where it cannot be opened, and QcompError for what is no regular file or exceeds the limit.
    """
    # Opening a fifo waits for a writer, opening a terminal may make it the process's own.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            kind = next((name for test, name in _KINDS if test(found.st_mode)), "no file")
            hint = "copy it to a file; qcomp-opt reads standard input where no file is named"
            raise QcompError(f"{path} is {kind}, expected a regular file", code="file", hint=hint)
        if limit is not None and found.st_size > limit[1]:
            raise too_large(path, found.st_size, limit)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bytes(path: str | os.PathLike[str], limit: tuple[str, int]) -> bytes:
    """The content of a regular file of at most ``limit[1]`` bytes, the limit being called ``limit[0]``."""
    with open_regular(path, limit) as file:
        return read_stream(file, path, limit)


def read_stream(file: BinaryIO, name: str | os.PathLike[str], limit: tuple[str, int]) -> bytes:
    """What is left of `file`, called `name` in errors; never more than the limit, however much there is."""
    content = file.read(limit[1] + 1)
    if len(content) > limit[1]:
        raise too_large(name, len(content), limit)
    return content


def too_large(name: str | os.PathLike[str], size: int, limit: tuple[str, int]) -> QcompError:
    """The error about a file of `size` bytes or more."""
    text = f"{name} has {size} bytes or more, more than the {limit[1]} that are read (limit {limit[0]})"
    return QcompError(text, code="limit", hint="docs/limits.md lists the limits")


def available_memory() -> int | None:
    """Bytes that this process may still take, by the machine, its control group and its own limits; None: unknown."""
    found: list[int] = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}
        found.append(values["MemAvailable"] + values.get("SwapFree", 0))
    group = Path("/sys/fs/cgroup")
    for most, now in (("max", "current"), ("limit_in_bytes", "usage_in_bytes")):
        folder = group if most == "max" else group / "memory"  # version 2, version 1
        with suppress(OSError, ValueError):
            found.append(int((folder / f"memory.{most}").read_text()) - int((folder / f"memory.{now}").read_text()))
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            found.append(most - pages * resource.getpagesize())
    return max(0, min(found)) if found else None


def require_memory(size: int, what: str, hint: str | None = None) -> None:
    """Raise QcompError where `what` needs `size` bytes and fewer are available; the kernel would end the process."""
    if size < 1 << 26:
        return
    available = available_memory()
    if available is not None and size > available:
        text = f"{what} needs {show_bytes(size)} of memory, {show_bytes(available)} are available"
        raise QcompError(text, code="memory", hint=hint)


def show_bytes(size: int) -> str:
    """``1.5 GiB``."""
    return next((f"{size / unit:.1f} {name}" for unit, name in _UNITS if size >= unit), f"{size} bytes")
