# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stand-in for gcc that builds the libraries of tests in a third of the time.

More than half of a test run was gcc: a third of that read immintrin.h, another third optimized code that runs once.
Results of emitted code do not depend on the compiler's flags, so libraries are built at -O1 with the header
precompiled. `QCOMP_TEST_FULL_OPTIMIZATION=1` builds them as users do; so do tests that call gcc by name or set CC.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

LEVEL = "-O1"
_HEADER = "intrinsics.h"
_WRAPPER = """#!/bin/sh
for argument in "$@"; do
  if [ "$argument" = -shared ]; then exec {gcc} "$@" {extra}; fi
done
exec {gcc} "$@"
"""


def install(folder: Path) -> None:
    """Make CC a script in `folder` that calls gcc so; nothing changes where CC is set or there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None or "CC" in os.environ or os.environ.get("QCOMP_TEST_FULL_OPTIMIZATION"):
        return
    extra = [LEVEL]
    if platform.machine() in ("x86_64", "AMD64"):
        header = folder / _HEADER
        # Weights are assembler: -include holds for them, too.
        header.write_text("#ifndef __ASSEMBLER__\n#include <immintrin.h>\n#endif\n", encoding="utf-8")
        # The options that decide whether a precompiled header is taken, as in qcomp.backend.build.
        command = [gcc, "-std=c99", LEVEL, "-fPIC", str(header), "-o", f"{header}.gch"]
        if subprocess.run(command, capture_output=True).returncode == 0:
            extra += ["-include", str(header)]
    wrapper = folder / "gcc"
    wrapper.write_text(_WRAPPER.format(gcc=gcc, extra=" ".join(extra)), encoding="utf-8")
    wrapper.chmod(0o755)
    os.environ["CC"] = str(wrapper)
