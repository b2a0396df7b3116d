# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""x"""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None: ...
def run(args: Namespace) -> int:
    return 0
