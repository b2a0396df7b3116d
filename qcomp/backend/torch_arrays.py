# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Torch tensors in and out of compiled programs, without a copy where torch allows it."""

from __future__ import annotations

import torch

from qcomp.dialects.constant import Array
from qcomp.errors import QcompError


def is_tensor(value: object) -> bool:
    """Whether `value` is a torch tensor."""
    return isinstance(value, torch.Tensor)


def to_array(value: object, name: str) -> object:
    """A torch tensor as an array; anything else as it is. Raises QcompError for tensors that have no array."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.device.type != "cpu":
        raise QcompError(f"input {name} lives on {value.device}", code="input", hint="move it to the CPU")
    try:
        return value.detach().resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError):
        raise QcompError(f"input {name}: {value.dtype} {value.layout} has no numpy array", code="input") from None


def from_array(array: Array) -> torch.Tensor:
    """`array` as a tensor that shares its memory."""
    return torch.from_numpy(array)  # pyright: ignore[reportUnknownMemberType]
