# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit's view of the tests: ``lit test/filecheck``. pytest runs the same files faster, in its own process."""

import os
import sys
from pathlib import Path

import lit.formats

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from run_lines import features  # noqa: E402

config = globals()["config"]  # lit defines it
config.name = "qcomp"
config.test_source_root = str(HERE)
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.available_features.update(features())

python = Path(sys.executable)
config.environment["PATH"] = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
config.environment["QCOMP_VERIFY_REWRITES"] = os.environ.get("QCOMP_VERIFY_REWRITES", "1")
config.environment["PYTHONPATH"] = str(HERE.parent.parent)
for name, module in (("qcomp-opt", "qcomp.cli.opt"), ("qcomp", "qcomp.cli.main")):
    config.substitutions.append((rf"%{name}(?![\w-])", f"{python} -m {module}"))
    config.substitutions.append((rf"(?<![\w./-]){name}(?= )", f"{python} -m {module}"))
config.substitutions.append((r"%filecheck", "filecheck"))
