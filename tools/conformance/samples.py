# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's operator samples as modules: tensors are inputs, everything else is closed over."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch.utils import _pytree as pytree

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in ("float32", "int64", "bool", "float64", "float16", "bfloat16", "int32", "int16", "int8", "uint8")
}
_UNDEFINED = frozenset({"empty", "empty_like", "new_empty", "empty_strided", "empty_permuted", "new_empty_strided"})
_FREE_PLACES = frozenset({"sort", "argsort", "topk", "kthvalue", "median", "nanmedian", "mode"})
_LOOKED_AT = 120


def operators() -> dict[str, Any]:
    """torch's operators by name, with the variant behind a slash. Takes seconds, and needs expecttest."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {entry.name + (f"/{entry.variant_test_name}" if entry.variant_test_name else ""): entry for entry in op_db}


def undefined(name: str, dtype: str) -> frozenset[int]:
    """The results of an operator of which only types and shapes are compared.

    Some hold whatever memory held; the places of equal elements, which samples of integers have, may be any.
    """
    if name in _UNDEFINED:
        return frozenset(range(8))
    place = 0 if name == "argsort" else 1
    return frozenset({place}) if name in _FREE_PLACES and not DTYPES[dtype].is_floating_point else frozenset()


class Sample(torch.nn.Module):
    """One call of an operator. `inputs` are its tensors in the order in which they stand in the arguments."""

    def __init__(self, operator: Any, sample: Any):
        super().__init__()
        leaves, self.structure = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.function = operator.op
        self.places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.rest = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.inputs = tuple(leaves[index].detach() for index in self.places)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The operator's result."""
        leaves = list(self.rest)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return in_real_parts(self.function(*args, **kwargs))


def in_real_parts(result: Any) -> Any:
    """`result` with complex tensors as real ones, whose last dimension has both parts: qcomp returns no others."""

    def real(value: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value

    return pytree.tree_map_only(torch.Tensor, real, result)


def samples_of(operator: Any, dtype: torch.dtype, count: int) -> list[Sample]:
    """At most `count` samples of `operator`, spread evenly over those that torch makes; none for other dtypes."""
    if dtype not in operator.supported_dtypes("cpu"):
        return []
    cast(Any, torch).manual_seed(0)
    inputs: Iterator[Any] = operator.sample_inputs("cpu", dtype, requires_grad=False)
    made = list(itertools.islice(inputs, _LOOKED_AT))
    return [Sample(operator, made[index]) for index in spread(len(made), count)]


def spread(size: int, count: int) -> Sequence[int]:
    """`count` indices below `size`, first and last among them."""
    if size <= count:
        return range(size)
    return sorted({round(step * (size - 1) / max(count - 1, 1)) for step in range(count)})
