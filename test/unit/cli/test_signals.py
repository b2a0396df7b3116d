# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C, SIGTERM and SIGKILL, sent to processes: exit codes, messages, and what is left behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import shell

import qcomp
from qcomp import QcompError
from qcomp.backend.folder import JOURNAL
from qcomp.cli.signals import ends_on_signals

PROGRAM = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.relu %x : tensor<2x3xf32> -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
"""
ENDS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminated: the terminal was closed",
}

COMPILER = """#!/bin/sh
trap '' INT
sleep 600 &
touch "$TMPDIR/cc_object"
echo "$$ $!" > pids.partial
mv pids.partial "$PIDS"
wait
"""
"""Starts a child, as gcc does, and does not end by itself."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.mlir").write_text(PROGRAM)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "compiler").write_text(COMPILER)
    (tmp_path / "compiler").chmod(0o755)
    return tmp_path


def wait_for(done: Callable[[], bool]) -> None:
    for _ in range(3000):
        if done():
            return
        time.sleep(0.01)
    raise TimeoutError


def runs(pid: int) -> bool:
    """Whether a process is there and not only waiting to be counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", ENDS)
def test_ends_of_qcomp(folder: Path, number: signal.Signals) -> None:
    """Sent while the C compiler runs, to all of the terminal's group as by Ctrl-C: all processes and files go."""
    environment = {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),
        "CC": str(folder / "compiler"),
        "PIDS": str(folder / "pids"),
    }
    command = [sys.executable, "-m", "qcomp.cli.main", "compile", "../net.mlir", "-o", "../out", "--target", "generic"]
    process = subprocess.Popen(
        command, cwd=folder / "tmp", env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for((folder / "pids").exists)
    pids = [int(text) for text in (folder / "pids").read_text().split()]
    assert all(map(runs, pids)) and len(pids) == 2 and list((folder / "tmp").glob("qcomp-*/cc_object"))
    os.killpg(process.pid, number)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (128 + number, f"error: {ENDS[number]}\n")
    assert not any(map(runs, pids))
    assert not list((folder / "tmp").iterdir())
    assert {path.name for path in folder.iterdir()} == {"net.mlir", "tmp", "compiler", "pids"}


@pytest.mark.parametrize("delay", [0.0, 0.15])
def test_ctrl_c_while_qcomp_opt_starts(folder: Path, delay: float) -> None:
    """Importing takes longest of all; afterwards it waits for its input."""
    code = (
        "import sys\nfrom qcomp.cli.entry import qcomp_opt as main\n"
        "sys.stdout.write('.')\nsys.stdout.flush()\nsys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.read(1) == b"."
    time.sleep(0.02 + delay)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, b"error: interrupted\n")


def test_handlers_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a program that calls main are left as they are; a second signal does not end the tidying."""
    tidied: list[str] = []

    @ends_on_signals
    def main(args: object) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            tidied.append("all")
        return 0

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    assert main(["x"]) == 143 and tidied == ["all"]
    assert [signal.getsignal(number) for number in numbers] == before
    assert capsys.readouterr().err == "error: terminated\n"
    heard: list[int] = []
    own = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:

        @ends_on_signals
        def other(args: object) -> int:
            os.kill(os.getpid(), signal.SIGTERM)
            return 5

        assert other(["x"]) == 5 and heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, own)


KILLED = """
import os, signal, sys
import qcomp
step = int(sys.argv[1])
done = 0
def move(source, target, real=os.replace):
    global done
    if done == step:
        os.kill(os.getpid(), signal.SIGKILL)
    done += 1
    real(source, target)
os.replace = move
qcomp.load("new").save("out")
"""


@pytest.mark.parametrize("step", [0, 2, "at the end"])
def test_a_killed_replacement_is_made_up_for(folder: Path, step: object) -> None:
    """Nothing loads from what it left; the next one takes the folder over, and what is not qcomp's stays."""
    for name in ("new", "out"):
        options = f"--target generic --opt-level 0 --name {name}"
        assert shell.run(f"qcomp compile net.mlir -o {name} {options}", folder).code == 0
    (folder / "out" / "mine.txt").write_text("mine")
    count = len(list((folder / "new").iterdir()))
    argument = str(count - 1 if step == "at the end" else step)
    done = subprocess.run([sys.executable, "-c", KILLED, argument], cwd=folder, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (folder / "out" / JOURNAL).exists() and not (folder / "out" / "manifest.json").exists()
    with pytest.raises(QcompError, match="no saved artifact: an artifact was being saved there and that did not end"):
        qcomp.load(folder / "out")
    (partial,) = folder.glob(".out.*.partial")
    assert shell.run("qcomp compile net.mlir -o out --target generic --opt-level 0", folder).code == 0
    names = {"net.c", "net.h", "net.so", "net_selftest.c", "manifest.json", "mine.txt"}
    assert {path.name for path in (folder / "out").iterdir()} == names
    qcomp.load(folder / "out")
    assert partial.exists()  # It may be that of a process that has only just begun.
    os.utime(partial, (0, 0))
    descriptor = os.open(partial, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    qcomp.load(folder / "new").save(folder / "out")
    assert partial.exists()  # Old, but in use.
    os.close(descriptor)
    qcomp.load(folder / "new").save(folder / "out")
    assert not partial.exists()


def test_a_folder_of_others_with_such_names_is_refused(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "net.c").write_text("mine")
    result = shell.run("qcomp compile net.mlir -o out --target generic --opt-level 0", folder)
    assert result.code == 1 and "out holds other files" in result.err


def test_journals_name_plain_files(folder: Path) -> None:
    (folder / "precious").write_text("mine")
    for text in ('["../precious", "", ".", 7, "/etc/passwd"]', "{", "[" * 100_000, "7"):
        (folder / "out").mkdir(exist_ok=True)
        (folder / "out" / JOURNAL).write_text(text)
        assert shell.run("qcomp compile net.mlir -o out --target generic --opt-level 0", folder).code == 0
    assert (folder / "precious").read_text() == "mine" and not (folder / "out" / JOURNAL).exists()
