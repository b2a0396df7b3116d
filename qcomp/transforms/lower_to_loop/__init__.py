# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lower-to-loop: from tensors to loops over buffers.

    %y = nn.add %a, %b : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
=>
    func.func private @add_0(%x0: memref<30xf32>, %x1: memref<30xf32>, %y: memref<30xf32>) { loop.for ... }
    func.call @add_0(%a, %b, %y) : ...
"""

from qcomp.transforms.lower_to_loop.lowering_pass import LowerToLoopPass
from qcomp.transforms.lower_to_loop.registry import load_lowerings

__all__ = ["LowerToLoopPass", "load_lowerings"]
