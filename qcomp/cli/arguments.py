# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The argument parser of both tools."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NoReturn

from qcomp.errors import QcompError


class OneLineParser(ArgumentParser):
    """An argument parser whose errors are QcompErrors: one message, no usage text around it."""

    def error(self, message: str) -> NoReturn:
        raise QcompError(message, code="usage", hint=f"{self.prog} --help lists the options")
