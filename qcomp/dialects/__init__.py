# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the IR is: the quant, nn and loop dialects, constants, locations, text."""
