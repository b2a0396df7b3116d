# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds qcomp to torch: torch's own operator samples, and the page that lists every op."""
