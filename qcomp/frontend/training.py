# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that were left in training mode: they compile, and give other results than the trained model."""

from __future__ import annotations

import sys

from qcomp.frontend.functional import updates_statistics
from qcomp.frontend.graph import Graph

_EVAL = "call model.eval() before exporting, move_exported_model_to_eval on a PT2E graph"


def training_notes(program: object, graph: Graph) -> list[str]:
    """Return the warnings about `program`, read as `graph`: training mode shows in its batch norms or in its flag.

    A GraphModule's flag says nothing: PT2E leaves it as it was made.
    """
    trained = [node for node in graph.nodes if updates_statistics(node)]
    if trained:
        count = f"{len(trained)} batch norm{'s are' if len(trained) > 1 else ' is'} in training mode"
        first = trained[0].location
        text = f"module {first}" if first and first.module_path and not first.file else str(first or "")
        place = f" ({'first: ' if len(trained) > 1 else ''}{text})" if text else ""
        return [f"{count}{place}: the result depends on the other samples of the batch; {_EVAL}"]
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(program, torch.nn.Module) or isinstance(program, torch.fx.GraphModule):
        return []
    if not getattr(program, "training", False):
        return []
    return [f"{type(program).__name__} is in training mode: call .eval() before it is compiled"]
