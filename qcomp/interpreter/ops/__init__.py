# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bindings from ops to their reference functions, one file per topic, imported when first needed."""
