# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The argument parser of both tools."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser, HelpFormatter
from typing import Any, NoReturn

from qcomp.errors import QcompError


class WholeNames(HelpFormatter):
    """Help text that is not broken inside names such as ``fold-constants``."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class OneLineParser(ArgumentParser):
    """An argument parser whose errors are QcompErrors: one message, no usage text around it."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **{"formatter_class": WholeNames, **options})

    def error(self, message: str) -> NoReturn:
        raise QcompError(message, code="usage", hint=f"{self.prog} --help lists the options")
