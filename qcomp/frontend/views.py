# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops return a view of an argument's memory, and whether those that only may do so did.

``reshape``, ``contiguous`` and ``to`` copy when they must. An export records the strides of its values, from which it
follows what they did; without strides the answer is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qcomp.frontend.graph import Meta, Node, Ref, TensorMeta

_ALWAYS = (
    "view view_as _unsafe_view permute transpose t numpy_T mT mH adjoint movedim moveaxis swapaxes swapdims slice "
    "select narrow expand expand_as broadcast_to squeeze unsqueeze unflatten split split_with_sizes unsafe_split "
    "unsafe_split_with_sizes unsafe_chunk tensor_split hsplit vsplit dsplit chunk unbind diagonal unfold as_strided "
    "view_as_real view_as_complex real imag atleast_1d atleast_2d atleast_3d sum_to_size detach alias lift_fresh "
    "conj resolve_conj resolve_neg positive"
)
_DROPOUTS = "dropout feature_dropout alpha_dropout feature_alpha_dropout"
_SHAPED = ("aten.reshape", "aten.reshape_as", "aten.flatten", "aten.ravel")
_MOVED = ("aten.contiguous", "aten.to", "aten.type_as")
_LISTS = ("aten.einsum", "aten.broadcast_tensors", "aten.meshgrid")
# An in-place op that only changes how its tensor is seen -> the view that it is.
SEEN_ANEW = {
    f"aten.{name}_": f"aten.{name}"
    for name in ("unsqueeze", "squeeze", "transpose", "t", "swapaxes", "swapdims", "detach")
}


def operation(target: str) -> str:
    """``aten.add_`` of ``aten.add_.Tensor``."""
    return ".".join(target.split(".")[:2])


_VIEWS: dict[str, str] = {
    **{f"aten.{name}": "self" for name in _ALWAYS.split()},
    **{f"aten.{name}": "input" for name in _DROPOUTS.split()},
    **dict.fromkeys((*_SHAPED, *_MOVED), "self"),
    **dict.fromkeys(_LISTS, "tensors"),
}


def viewed_argument(node: Node) -> str | None:
    """The argument of which results of `node` may be views; None for ops that always make new memory."""
    return _VIEWS.get(operation(node.target))


def is_view(node: Node, values: Mapping[str, Meta]) -> bool | None:
    """Whether the results of `node`, which `viewed_argument` knows, are views; None when that is not recorded."""
    name = operation(node.target)
    if name in _LISTS:
        return None
    if name not in (*_SHAPED, *_MOVED):
        return True
    source, result = node.argument("self"), (node.results() or [""])[0]
    old, new = values.get(source.name) if isinstance(source, Ref) else None, values.get(result)
    if not isinstance(old, TensorMeta) or not isinstance(new, TensorMeta):
        return None
    if name in _MOVED:
        if old.dtype != new.dtype or node.argument("copy") is True:
            return False
        if name != "aten.contiguous" and node.argument("memory_format") is None:
            return True
        return None if old.place is None or new.place is None else old.place[1:] == new.place[1:]
    sizes = [*old.shape, *new.shape]
    if old.place is None or not all(isinstance(size, int) for size in sizes):
        return None
    return can_view([int(str(size)) for size in old.shape], old.place[1:], [int(str(size)) for size in new.shape])


def can_view(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> bool:
    """Whether memory of `shape` and `strides` has a view of shape `target` (at::detail::computeStride)."""
    if 0 in shape:
        return True
    kept = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    runs: list[int] = []
    for index, (size, stride) in enumerate(kept):
        if index and kept[index - 1][1] == size * stride:
            runs[-1] *= size
        else:
            runs.append(size)
    # Every run of memory must be a product of target dimensions next to each other.
    rest = [size for size in target if size != 1]
    for run in runs:
        product = 1
        while product < run and rest:
            product *= rest.pop(0)
        if product != run:
            return False
    return not rest
