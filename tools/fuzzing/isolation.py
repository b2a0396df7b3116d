# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a function on many inputs in forked children with limits on CPU time and memory, and says what went wrong.

A child takes inputs until one ends it; the next child goes on behind that one. A fault is an exception other than
those a caller names, a signal (CPU time is limited by one), more memory than allowed, a file or a process made, or code
executed that did not come from a file of Python or qcomp.
"""

from __future__ import annotations

import faulthandler
import os
import re
import resource
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

SECONDS = 5.0
"""CPU time for one input."""
MEMORY = 1 << 30
"""Bytes that a child may take beyond what it starts with."""
_SILENCE = 120.0
"""Seconds of wall time without a word from a child after which it hangs."""
_WRITES = {
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.system",
    "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "socket.bind", "shutil.rmtree",
    "pickle.find_class", "ctypes.dlopen",
}  # fmt: skip
_MAKES_CLASSES = ("dataclasses.py", "collections/__init__.py", "enum.py", "typing.py", "functools.py", "importlib")


@dataclass(frozen=True)
class Outcome:
    """What became of an input: `kind` is ``ok``, ``refused`` or the kind of fault; `detail` a text to show."""

    kind: str
    detail: str = ""

    @property
    def fault(self) -> bool:
        """Whether this must not happen."""
        return self.kind not in ("ok", "refused")

    @property
    def signature(self) -> str:
        """Equal for faults that are likely the same: their kind, exception and innermost line."""
        lines = self.detail.strip().splitlines()
        places = [line.strip() for line in lines if line.lstrip().startswith("File ")]
        return " ".join([self.kind, re.sub(r"\d+", "N", lines[-1])[:80] if lines else "", *places[-1:]])


Judge = Callable[[bytes], Outcome]
"""Runs one input; exceptions that it lets through are faults."""


def run_all(judge: Judge, inputs: Sequence[bytes]) -> Iterator[Outcome]:
    """The outcomes of `inputs`, in order."""
    done = 0
    while done < len(inputs):
        for outcome in _child(judge, inputs[done:]):
            yield outcome
            done += 1


def _child(judge: Judge, inputs: Sequence[bytes]) -> Iterator[Outcome]:
    """The outcomes of the first of `inputs`, the last of which may be a death; at least one."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="qcomp-fuzz-") as scratch, os.fdopen(reading, "rb") as pipe:
        pid = os.fork()
        if pid == 0:
            os.chdir(scratch)
            _work(judge, inputs, writing)
        os.close(writing)
        for count in range(len(inputs)):
            if not select.select([pipe], [], [], _SILENCE)[0]:
                os.kill(pid, signal.SIGKILL)
            size = pipe.readline()
            if not size:
                status = os.waitpid(pid, 0)[1]
                if status or not count:
                    yield _death(status)
                return
            kind, _, detail = pipe.read(int(size)).decode().partition("\n")
            yield Outcome(kind, detail)
            if count == len(inputs) - 1:
                os.waitpid(pid, 0)


def _death(status: int) -> Outcome:
    if not os.WIFSIGNALED(status):
        return Outcome("exit", f"the process ended with code {os.waitstatus_to_exitcode(status)}")
    number = os.WTERMSIG(status)
    if number in (signal.SIGPROF, signal.SIGXCPU):
        return Outcome("hang", f"more than {SECONDS} s of CPU time")
    if number == signal.SIGKILL:
        return Outcome("hang", f"no word for {_SILENCE} s")
    return Outcome("crash", signal.Signals(number).name)


def _work(judge: Judge, inputs: Sequence[bytes], writing: int) -> NoReturn:
    """The child's life. It leaves without running what the parent has to run at its end."""
    code = 1
    try:
        faulthandler.disable()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        watch = _Watch()
        sys.addaudithook(watch)
        for data in inputs:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            outcome = _run(judge, data, watch)
            signal.setitimer(signal.ITIMER_PROF, 0)
            text = f"{outcome.kind}\n{outcome.detail[:8_000_000]}".encode("utf-8", "replace")
            os.write(writing, f"{len(text)}\n".encode())
            while text:
                text = text[os.write(writing, text) :]
            if outcome.kind in ("unwanted", "memory"):
                break  # what it left would count for the next one
        code = 0
    finally:
        os._exit(code)


def _run(judge: Judge, data: bytes, watch: _Watch) -> Outcome:
    watch.found = None
    watch.active = True
    try:
        outcome = judge(data)
    except MemoryError:
        outcome = Outcome("memory", f"more than {MEMORY} bytes")
    except BaseException:
        outcome = Outcome("traceback", traceback.format_exc())
    watch.active = False
    if watch.found is not None:
        return Outcome("unwanted", watch.found)
    left = os.listdir()
    if left:
        return Outcome("unwanted", f"left files {left[:4]}")
    return outcome


class _Watch:
    """An audit hook: what writes, starts processes, or runs code made of text. `found` is the first such event."""

    def __init__(self) -> None:
        self.active = False
        self.found: str | None = None

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if not self.active or self.found is not None:
            return
        if event in _WRITES or (event == "open" and _opens_for_writing(args)) or (event == "exec" and _is_text(args)):
            self.active = False
            self.found = f"{event} {str(args)[:200]}\n{''.join(traceback.format_stack(limit=12))}"


def _opens_for_writing(args: tuple[object, ...]) -> bool:
    name, mode, flags = args
    if str(name) == os.devnull:
        return False
    if isinstance(mode, str):
        return any(mark in mode for mark in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _is_text(args: tuple[object, ...]) -> bool:
    """Whether code is run that is in no file: not a module, not what the standard library makes classes of."""
    name = str(getattr(args[0], "co_filename", "<text>"))
    if Path(name).is_file() or name.startswith("<frozen"):
        return False
    callers = [frame.filename for frame in traceback.extract_stack(limit=6)]
    return not any(maker in caller for maker in _MAKES_CLASSES for caller in callers)
