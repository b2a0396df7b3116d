# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of `qcomp`, a file each. What a command needs is imported when it runs, not when it is listed."""
