# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command lines: `qcomp` for people who have a model, `qcomp-opt` for people who look at the IR."""
