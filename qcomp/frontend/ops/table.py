# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registration of op handlers, and hints for well-known ops that have none."""

from __future__ import annotations

from collections.abc import Callable

from qcomp.frontend.builder import Builder, Result
from qcomp.frontend.graph import Node

Handler = Callable[[Builder, Node], Result]
HANDLERS: dict[str, Handler] = {}
"""target (``aten.conv2d.default``) -> handler"""


def op(*targets: str) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of ``aten.`` `targets`; other namespaces are written out."""

    def register(handler: Handler) -> Handler:
        for target in targets:
            name = target if target.count(".") > 1 or target.startswith("higher_order.") else f"aten.{target}"
            if name in HANDLERS:
                raise ValueError(f"two handlers for {name}")
            HANDLERS[name] = handler
        return handler

    return register


def hint_for(target: str) -> str | None:
    """What a user can do about an op without a handler."""
    for part, hint in _HINTS.items():
        if part in target:
            return hint
    namespace = target.partition(".")[0]
    if namespace not in ("aten", "quantized_decomposed", "_operator", "higher_order", "prims"):
        return f"{namespace} is a custom library: decompose the op, or leave it out of the exported module"
    return None


_HINTS = {
    "torch._functorch.": (
        "torch.vmap is written out by program = program.run_decompositions({}), before torch.export.save or .module()"
    ),
    "wrap_with_autocast": "run_decompositions() of the exported program spells out the casts of autocast",
    "higher_order.": "of control flow torch.cond, while_loop, scan and map are supported",
    "native_dropout": "call model.eval() before exporting",
    "bernoulli": "call model.eval() before exporting",
    "rand": "random ops have no place in inference: call model.eval() before exporting",
    "onednn.": "import the result of convert_pt2e, before it is lowered to a backend",
    "_operator.": "a number computed from data rather than from sizes",
    "aten.item": "a number read from a tensor cannot steer the program",
}
