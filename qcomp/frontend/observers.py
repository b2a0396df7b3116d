# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calibrated observer and fake-quantize modules as parameters.

Everything comes from ``calculate_qparams()`` and the attributes quant_min, quant_max, dtype, qscheme and ch_axis, which
both families have, as in torchao's convert step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from qcomp.errors import QcompError
from qcomp.frontend.fx_values import dtype_name
from qcomp.frontend.graph import Observer

_UNDERLYING = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
_STORAGE = ("int8", "uint8", "int16", "uint16", "int32")
_CASTS = ("float16", "bfloat16")
_PER_CHANNEL = (torch.per_channel_affine, torch.per_channel_symmetric, torch.per_channel_affine_float_qparams)


def is_observer(module: object) -> bool:
    """Whether `module` is an observer or fake-quantize module."""
    return hasattr(module, "calculate_qparams")


class ObserverTable:
    """Observers by name; nodes that call the same module object share a group and its parameters."""

    def __init__(self) -> None:
        self.observers: dict[str, Observer] = {}
        self._seen: dict[int, Observer] = {}

    def add(self, name: str, module: torch.nn.Module) -> None:
        """Read `module`, called `name`. Raises QcompError when it saw no data or is of an unknown kind."""
        known = self._seen.get(id(module))
        if known is None:
            known = self._seen[id(module)] = _read(name, module, len(self._seen))
        self.observers[name] = replace(known, name=name)


def _refuse(name: str, module: Any, why: str, hint: str) -> QcompError:
    return QcompError(
        f"observer {name} ({type(module).__name__}) {why}", code="unsupported-observer", op=name, hint=hint
    )


def _read(name: str, module: Any, group: int) -> Observer:
    if hasattr(module, "convert"):
        raise _refuse(
            name, module, "rewrites itself, which is not supported", "run convert_pt2e first and import its result"
        )
    dtype = _UNDERLYING.get(dtype_name(module.dtype), dtype_name(module.dtype))
    if dtype in _CASTS:
        return _without_parameters(name, group, dtype)
    if dtype not in _STORAGE:
        raise _refuse(name, module, f"quantizes to {dtype}", f"supported are {', '.join((*_STORAGE, *_CASTS))}")
    if getattr(module, "is_dynamic", False):
        return _dynamic(name, module, group, dtype)
    if not all(_has_seen_data(inner) for inner in _inner_observers(module)):
        raise QcompError(
            f"observer {name} ({type(module).__name__}) saw no data",
            code="uncalibrated",
            op=name,
            hint="run the prepared model on calibration data before importing it",
        )
    with torch.no_grad():
        scale, zero_point = module.calculate_qparams()
    per_channel = getattr(module, "qscheme", None) in _PER_CHANNEL
    info = torch.iinfo(getattr(torch, dtype))
    low, high = getattr(module, "quant_min", None), getattr(module, "quant_max", None)
    return Observer(
        name=name,
        group=group,
        dtype=dtype,
        quant_min=info.min if low is None else int(low),
        quant_max=info.max if high is None else int(high),
        scales=_parameters(scale, per_channel).astype(np.float64),
        zero_points=_zero_points(name, module, _parameters(zero_point, per_channel)),
        axis=int(module.ch_axis) if per_channel else None,
    )


def _dynamic(name: str, module: Any, group: int, dtype: str) -> Observer:
    """An observer whose parameters follow from each value."""
    if dtype not in ("int8", "uint8"):
        raise _refuse(name, module, f"quantizes to {dtype} dynamically", "supported are int8 and uint8")
    scheme = getattr(module, "qscheme", torch.per_tensor_affine)
    if scheme not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        raise _refuse(name, module, f"quantizes dynamically by {scheme}", "use a per-tensor scheme")
    floor = float(np.float32(getattr(module, "eps", np.finfo(np.float32).eps)))
    found = _without_parameters(name, group, dtype)
    low, high = int(module.quant_min), int(module.quant_max)
    return replace(
        found, quant_min=low, quant_max=high, floor=floor, symmetric=scheme == torch.per_tensor_symmetric
    )  # fmt: skip


def _without_parameters(name: str, group: int, dtype: str) -> Observer:
    return Observer(name, group, dtype, 0, 0, np.zeros(0), np.zeros(0, np.int64))


def _parameters(value: object, per_channel: bool) -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    """0-d per tensor, 1-d per channel; float32 parameters stay the float32 they are, widened."""
    array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.array(value)
    return array.reshape(-1) if per_channel else array.reshape(())


def _zero_points(name: str, module: Any, values: np.ndarray[tuple[int, ...], np.dtype[Any]]) -> Any:
    rounded = values.astype(np.int64)
    if not (rounded == values).all():
        hint = "run convert_pt2e first and import its result"
        raise _refuse(name, module, "has zero points that are not integers", hint)
    return rounded


def _inner_observers(module: Any) -> Iterator[Any]:
    """`module` and the observers it computes its parameters from."""
    yield module
    inner = getattr(module, "activation_post_process", None)
    if is_observer(inner):
        yield from _inner_observers(inner)
    for other in cast(list[object], getattr(module, "obs_or_fqs", [])):
        yield from _inner_observers(other)


def _has_seen_data(module: Any) -> bool:
    """False when the observed range is still the empty one observers start from."""
    low, high = getattr(module, "min_val", None), getattr(module, "max_val", None)
    if not isinstance(low, torch.Tensor) or not isinstance(high, torch.Tensor):
        return True
    return low.numel() > 0 and not bool((low > high).any())
