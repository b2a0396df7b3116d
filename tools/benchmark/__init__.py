# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speed of emitted C: of single kernels against the machine's peak, of the layers of a model, of whole models."""
