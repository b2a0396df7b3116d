# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fuzzers: damaged and hostile inputs in children with limits; every fault is kept with a small reproducer."""
