# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of single aten ops, taken from runs of torch's own operator samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tools.conformance.probes_by_hand import by_hand
from tools.conformance.samples import Sample, in_real_parts, operators, samples_of

HELD = frozenset({"weight", "bias", "running_mean", "running_var", "params", "weight_hh", "weight_ih", "w_ih", "w_hh"})
"""Arguments that are parameters of a layer: they are constants of a probe, all other tensors are its inputs."""
CODED = ("conv1d", "conv2d", "conv3d", "convolution", "linear", "conv_transpose")
"""Ops with an integer form whose weight must hold codes."""
_CALLS = 2


@dataclass
class Probe(torch.nn.Module):
    """One call of an op. `inputs` are its tensor arguments but for `HELD` ones, complex ones in real parts."""

    target: Any
    leaves: list[Any]
    structure: Any
    places: list[int]
    inputs: tuple[torch.Tensor, ...]
    coded: list[int] = field(default_factory=list[int])
    """Where weights stand that have an integer form."""

    def __post_init__(self) -> None:
        super().__init__()
        for index, leaf in enumerate(self.leaves):
            if isinstance(leaf, torch.Tensor) and index not in self.places:
                self.register_buffer(f"held{index}", leaf)

    __hash__ = object.__hash__

    def call(self, tensors: Sequence[torch.Tensor], held: Any = None) -> Any:
        """The op on `tensors` as inputs; `held` changes what a constant is."""
        leaves = list(self.leaves)
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor) and index not in self.places:
                value = getattr(self, f"held{index}")
                leaves[index] = held(value, index) if held else value
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = torch.view_as_complex(tensor) if self.leaves[place].is_complex() else tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.target(*args, **kwargs)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The op's results."""
        return in_real_parts(self.call(tensors))


def probe_of(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Probe:
    """The call target(*args, **kwargs) as a module."""
    names = [str(argument.name) for argument in target._schema.arguments]
    named = [*zip(names, args, strict=False), *kwargs.items()]
    leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
    owners = [name for name, value in named for _ in pytree.tree_leaves(value)]
    leaves = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and owners[i] not in HELD]
    weighted = any(part in str(target) for part in CODED)
    coded = [i for i, name in enumerate(owners) if name == "weight" and weighted and leaves[i].dim() > 1]
    inputs = tuple(in_real_parts(leaves[i]) for i in places)
    return Probe(target, leaves, structure, places, inputs, coded)


class _Kept(dict[str, list[Probe]]):
    """The calls of wanted ops."""

    def keep(self, target: Any, args: Any, kwargs: Any) -> None:
        """Keep a call when its op is wanted and has few."""
        kept = self.get(op_name(target))
        if kept is not None and len(kept) < _CALLS:
            kept.append(probe_of(target, args, kwargs))


class _Eager(TorchDispatchMode):
    """Keeps calls while eager torch runs, which takes many ops apart."""

    def __init__(self, found: _Kept):
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found.keep(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


class _Exported(torch.fx.Interpreter):
    """Keeps calls while an exported graph runs, which has ops whole."""

    def __init__(self, module: torch.fx.GraphModule, found: _Kept):
        super().__init__(module)
        self.found = found

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        self.found.keep(target, args, kwargs)
        return super().call_function(target, args, kwargs)


def op_name(target: object) -> str:
    """``aten.add.Tensor``."""
    return str(target)


def probes(wanted: Sequence[str]) -> dict[str, list[Probe]]:
    """At most two calls for each op in `wanted`; those by hand come first. Takes a minute or two."""
    found = _Kept(probes_by_hand(wanted))
    for entry in operators().values():
        for index, sample in enumerate(_samples(entry)):
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    with _Eager(found):
                        sample(*(value.clone() for value in sample.inputs))
                    if index == 0:
                        program: Any = torch.export.export(sample, sample.inputs, strict=False)
                        _Exported(program.module(), found).run(*(value.clone() for value in sample.inputs))
                except Exception:  # torch does not run or export the sample; others follow
                    continue
    return found


def probes_by_hand(wanted: Sequence[str]) -> dict[str, list[Probe]]:
    """Those calls of ops in `wanted` that torch's samples are not needed for."""
    found: dict[str, list[Probe]] = {name: [] for name in wanted}
    for name, args, kwargs in by_hand():
        target = overload(name)
        if name in found and target is not None:
            found[name].append(probe_of(target, args, kwargs))
    return found


def _samples(entry: Any) -> list[Sample]:
    """Two samples in the first dtype that has any."""
    for dtype in (torch.float32, torch.int64, torch.bool):
        try:
            made = samples_of(entry, dtype, 2)
        except Exception:  # torch cannot make them
            continue
        if made:
            return made
    return []


def overload(name: str) -> Any:
    """The op called ``aten.add.Tensor``; None when torch has none."""
    namespace, packet, which = name.split(".", 2)
    found: Any = getattr(getattr(torch.ops, namespace), packet, None)
    return getattr(found, which, None) if found is not None else None


def core_ops() -> list[str]:
    """Core ATen: the ops that torch tags so, but for those that write in place or into an argument."""
    names: list[str] = cast(Any, torch._C)._dispatch_get_all_op_names()  # pyright: ignore[reportPrivateUsage]
    found: list[str] = []
    for name in names:
        if name.startswith("aten::"):
            packet, _, which = name.removeprefix("aten::").partition(".")
            op = getattr(getattr(torch.ops.aten, packet), which or "default", None)
            if op is not None and torch.Tag.core in op.tags and not op._schema.is_mutable:
                found.append(f"aten.{packet}.{which or 'default'}")
    return sorted(found)
