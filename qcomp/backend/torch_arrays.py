# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Torch tensors in and out of compiled programs, without a copy where torch allows it."""

from __future__ import annotations

import torch

from qcomp.dialects.constant import Array
from qcomp.errors import QcompError


def is_tensor(value: object) -> bool:
    """Whether `value` is a torch tensor."""
    return isinstance(value, torch.Tensor)


def to_array(value: object, name: str, element: str = "") -> object:
    """A torch tensor as an array; anything else as it is. Raises QcompError for tensors that have no array.

    element: "bfloat16" where those are wanted: their bits are a uint16 array.
    """
    if not isinstance(value, torch.Tensor):
        return value
    if value.device.type != "cpu":
        raise QcompError(f"input {name} lives on {value.device}", code="input", hint="move it to the CPU")
    if element == "bfloat16":
        if value.dtype != torch.bfloat16:
            raise QcompError(f"input {name}: expected bfloat16, got {value.dtype}", code="input")
        return value.detach().contiguous().view(torch.int16).numpy().view("uint16")
    try:
        return value.detach().resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError):
        raise QcompError(f"input {name}: {value.dtype} {value.layout} has no numpy array", code="input") from None


def from_array(array: Array, element: str = "") -> torch.Tensor:
    """`array` as a tensor that shares its memory; element as in `to_array`."""
    if element == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)  # pyright: ignore[reportUnknownMemberType]
    return torch.from_numpy(array)  # pyright: ignore[reportUnknownMemberType]
