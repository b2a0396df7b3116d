# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch objects as neutral values: arguments, types, tensors, structures. Imports torch; only its readers use it."""

from __future__ import annotations

import inspect
from typing import Any, cast

import numpy as np
import torch
from torch.fx import Node as FxNode
from torch.utils import _pytree as pytree

from qcomp.errors import QcompError
from qcomp.frontend.graph import Argument, DType, Keyword, Meta, Ref, ScalarMeta, TensorMeta
from qcomp.frontend.pytree import MAPPINGS, NAMED_TUPLE, SEQUENCES, Tree, make_tree
from qcomp.frontend.symbol_text import parse_expr
from qcomp.frontend.symbols import Dim, Expr
from qcomp.frontend.tensor_data import HOLDERS, Array, TensorData

_SYMBOLIC: tuple[type, ...] = (torch.SymInt, torch.SymFloat, torch.SymBool)
_PLAIN_BITS: dict[int, torch.dtype] = {1: torch.uint8, 2: torch.uint16}

VMAP_TARGETS = "torch._functorch."
"""What names of the functions start with that torch.vmap leaves in graphs."""


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def tensor_data(tensor: torch.Tensor, name: str) -> TensorData:
    """A copy of `tensor`, made when first needed: later in-place changes of the model do not reach it once read.

    Raises QcompError for tensor subclasses, sparse tensors and tensors without data.
    """
    if type(tensor.data) is not torch.Tensor or tensor.layout != torch.strided or tensor.is_quantized:
        raise QcompError(
            f"{name} is a {type(tensor.data).__name__} ({tensor.layout}), not a plain tensor",
            code="unsupported-tensor",
            hint="export, then run_decompositions({}), or dequantize the weights",
        )
    if tensor.device.type == "meta":
        raise QcompError(f"{name} is on the meta device and has no data", code="unsupported-tensor")
    identity = (
        tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.stride(), tensor.dtype,
        tuple(tensor.shape),
    )  # fmt: skip
    return TensorData(dtype_name(tensor.dtype), tuple(tensor.shape), lambda: to_numpy(tensor), identity)


def to_numpy(tensor: torch.Tensor) -> Array:
    """A copy of the elements of `tensor`, in the numpy dtype that holds its dtype."""
    name = dtype_name(tensor.dtype)
    plain = tensor.detach().cpu()
    if HOLDERS[name].name != name:
        plain = plain.contiguous().view(_PLAIN_BITS[tensor.element_size()])
    return cast(Array, np.array(plain.numpy(), copy=True))


def target_name(target: object) -> str:
    """``aten.add.Tensor``, ``_operator.mul``, ``higher_order.cond``."""
    if isinstance(target, torch._ops.OpOverload):  # pyright: ignore[reportPrivateUsage]
        return f"{target.namespace}.{target.__name__}"
    if isinstance(target, torch._ops.HigherOrderOperator):  # pyright: ignore[reportPrivateUsage]
        return f"higher_order.{target.__name__}"
    return f"{getattr(target, '__module__', '?')}.{getattr(target, '__name__', target)}"


def resolve_packet(target: object) -> object:
    """An overload packet (as observers with their own ``convert`` insert) as the overload it means."""
    if isinstance(target, torch._ops.OpOverloadPacket):  # pyright: ignore[reportPrivateUsage]
        overloads: list[str] = target.overloads()
        return getattr(cast(Any, target), "default" if "default" in overloads else overloads[0])
    return target


def named_arguments(target: object, args: tuple[object, ...], kwargs: dict[str, object]) -> list[tuple[str, object]]:
    """The given arguments with their names, in schema order; unnamed ("") where there is no schema."""
    if isinstance(target, torch._ops.OpOverload):  # pyright: ignore[reportPrivateUsage]
        names = [str(argument.name) for argument in target._schema.arguments]  # pyright: ignore[reportPrivateUsage]
    elif isinstance(target, torch._ops.HigherOrderOperator):  # pyright: ignore[reportPrivateUsage]
        return [*(("", arg) for arg in args), *kwargs.items()]
    else:
        names = list(inspect.signature(cast(Any, target)).parameters)
    given = dict(zip(names, args, strict=False))
    return [(name, given[name] if name in given else kwargs[name]) for name in names if name in given or name in kwargs]


def convert_argument(value: object, rename: dict[str, str]) -> Argument:
    """An fx argument as a neutral one; `rename` maps fx names to value names. Raises QcompError for other objects."""
    if isinstance(value, FxNode):
        return Ref(rename.get(value.name, value.name))
    if value is None or isinstance(value, bool | int | float | complex | str):
        return value
    if isinstance(value, list | tuple):
        return tuple(convert_argument(part, rename) for part in cast(list[object], value))
    if isinstance(value, torch.dtype):
        return DType(dtype_name(value))
    if isinstance(value, torch.device):
        return Keyword("device", value.type)
    if isinstance(value, torch.layout):
        return Keyword("layout", str(value).removeprefix("torch."))
    if isinstance(value, torch.memory_format):
        return Keyword("memory_format", str(value).removeprefix("torch."))
    raise QcompError(f"an argument of type {type(value).__name__} is not supported", code="unsupported-argument")


def convert_meta(value: object) -> Meta | None:
    """The type of a value out of ``node.meta["val"]``; None when it is not a tensor or number."""
    if isinstance(value, torch.Tensor):
        return TensorMeta(dtype_name(value.dtype), tuple(convert_dim(size) for size in value.shape), _place(value))
    if isinstance(value, _SYMBOLIC):
        kind = type(value).__name__.removeprefix("Sym").lower()
        return ScalarMeta(kind, _expression(value))
    if isinstance(value, bool | int | float):
        return ScalarMeta(type(value).__name__, value)
    return None


def _place(value: torch.Tensor) -> tuple[int, ...] | None:
    """Storage offset and strides; None when they are not all numbers."""
    if value.layout != torch.strided:
        return None
    numbers = (value.storage_offset(), *value.stride())
    known = tuple(number for number in numbers if isinstance(number, int))
    return known if len(known) == len(numbers) else None


def convert_dim(size: object) -> Dim:
    """One size of a tensor: an int or an expression."""
    found = size if isinstance(size, int) else _expression(size)
    if isinstance(found, float):
        raise QcompError(f"size {found} is not an integer", code="symbol")
    return found


def _expression(value: object) -> Expr | int | float | bool:
    """The sympy expression behind a SymInt, read from its constructor text as in a .pt2 file."""
    node = cast(Any, value).node
    if node.is_symbolic():
        from sympy.printing.repr import srepr  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        return parse_expr(str(cast(Any, srepr)(node.expr)))
    return cast(int, node.maybe_as_int() if hasattr(node, "maybe_as_int") else int(cast(Any, value)))


def convert_tree(spec: pytree.TreeSpec) -> Tree:
    """A torch TreeSpec as a `Tree`."""
    if spec.is_leaf():
        return Tree()
    children = tuple(convert_tree(child) for child in spec.children())
    kind: Any = spec.type
    context: Any = spec.context
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in SEQUENCES:
        return make_tree(name, None, children, {})
    if name in MAPPINGS:
        return make_tree(name, list(context[1] if name.endswith("defaultdict") else context), children, {})
    if name == NAMED_TUPLE:
        serialized = _serialized_name(context)
        return make_tree(name, serialized, children, {serialized: context._fields})
    return make_tree(_serialized_name(kind), context, children, {})


def _serialized_name(kind: Any) -> str:
    registered: Any = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
    name = None if registered is None else registered.serialized_type_name
    return name if isinstance(name, str) else f"{kind.__module__}.{kind.__qualname__}"


def submodule(module: torch.nn.Module, target: str) -> object:
    """The attribute of `module` at the dotted path `target`."""
    value: Any = module
    for part in target.split("."):
        value = getattr(value, part)
    return value
