# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Targets, C emission, building and loading."""
