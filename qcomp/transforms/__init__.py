# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes, by name. A pass lives in the file of its name and is imported when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from xdsl.passes import ModulePass

_PASSES: dict[str, str] = {
    # "pass-name": "qcomp.transforms.pass_name:PassNamePass",
    "compose-permutes": "qcomp.transforms.compose_permutes:ComposePermutesPass",
    "compose-reshapes": "qcomp.transforms.compose_reshapes:ComposeReshapesPass",
    "cse": "qcomp.transforms.cse:CsePass",
    "dce": "xdsl.transforms.dead_code_elimination:DeadCodeElimination",
    "duplicate-dequantize": "qcomp.transforms.duplicate_dequantize:DuplicateDequantizePass",
    "fold-affine": "qcomp.transforms.fold_affine:FoldAffinePass",
    "fold-batch-norm": "qcomp.transforms.fold_batch_norm:FoldBatchNormPass",
    "fold-batch-norm-qat": "qcomp.transforms.fold_batch_norm_qat:FoldBatchNormQatPass",
    "fold-constants": "qcomp.transforms.fold_constants:FoldConstantsPass",
    "fold-pad": "qcomp.transforms.fold_pad:FoldPadPass",
    "fuse-activation": "qcomp.transforms.fuse_activation:FuseActivationPass",
    "fuse-dynamic-linear": "qcomp.transforms.fuse_dynamic_linear:FuseDynamicLinearPass",
    "fuse-linear": "qcomp.transforms.fuse_linear:FuseLinearPass",
    "fuse-qdq": "qcomp.transforms.fuse_qdq:FuseQdqPass",
    "insert-qdq": "qcomp.transforms.insert_qdq:InsertQdqPass",
    "lower-batch-norm": "qcomp.transforms.lower_batch_norm:LowerBatchNormPass",
    "lower-to-loop": "qcomp.transforms.lower_to_loop:LowerToLoopPass",
    "lower-variable-weights": "qcomp.transforms.lower_variable_weights:LowerVariableWeightsPass",
    "plan-memory": "qcomp.transforms.plan_memory:PlanMemoryPass",
    "propagate-qdq": "qcomp.transforms.propagate_qdq:PropagateQdqPass",
    "remove-identities": "qcomp.transforms.remove_identities:RemoveIdentitiesPass",
    "specialize-dims": "qcomp.transforms.specialize_dims:SpecializeDimsPass",
    "unfuse-qdq": "qcomp.transforms.unfuse_qdq:UnfuseQdqPass",
    "unsigned-activations": "qcomp.transforms.unsigned_activations:UnsignedActivationsPass",
    "widen-halves": "qcomp.transforms.widen_halves:WidenHalvesPass",
}
_NAMED_LIKE_XDSL = ("cse", "dce")
"""Names that xDSL owns: other xDSL tools use its pass, qcomp's tools use ours."""


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Factories of all passes by name: qcomp's own and those of xDSL that it uses."""
    return {name: _factory(place) for name, place in _PASSES.items()}


def own_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Factories of the passes that qcomp offers to other xDSL tools, by name."""
    return {name: _factory(place) for name, place in _PASSES.items() if name not in _NAMED_LIKE_XDSL}


def _factory(place: str) -> Callable[[], type[ModulePass]]:
    module, attribute = place.split(":")
    return lambda: cast(type[ModulePass], getattr(importlib.import_module(module), attribute))
