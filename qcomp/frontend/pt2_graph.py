# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graph part of torch's export schema: nodes, arguments and value types out of JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from qcomp.errors import QcompError
from qcomp.frontend.checked_json import (
    as_bool,
    as_float,
    as_int,
    as_list,
    as_object,
    as_text,
    as_union,
    malformed,
)
from qcomp.frontend.graph import (
    Argument,
    DType,
    Graph,
    Input,
    Keyword,
    Location,
    Meta,
    Node,
    Output,
    Ref,
    ScalarMeta,
    Subgraph,
    TensorMeta,
)
from qcomp.frontend.locations import make_location, serialized_module_path
from qcomp.frontend.symbol_text import parse_expr
from qcomp.frontend.symbols import Dim, Expr

MAX_SUBGRAPH_DEPTH = 16

# The enumerations of torch/_export/serde/schema.py.
_DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}
_LAYOUTS = {
    1: "sparse_coo",
    2: "sparse_csr",
    3: "sparse_csc",
    4: "sparse_bsr",
    5: "sparse_bsc",
    6: "_mkldnn",
    7: "strided",
}
_MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}


def read_dtype(value: object) -> str:
    """torch's name of a serialized scalar type."""
    code = as_int(value, "dtype")
    if code not in _DTYPES:
        raise QcompError(f"unknown element type {code} in the export", code="unsupported-dtype")
    return _DTYPES[code]


def read_dims(values: list[object]) -> tuple[Dim, ...]:
    """Sizes: integers, or expressions over symbols."""
    return tuple(_dim(value) for value in values)


def _dim(value: object) -> Dim:
    found = _scalar(value, "size")
    if isinstance(found, float):
        raise malformed("a size should be an integer")
    return found


def _scalar(value: object, what: str) -> Expr | int | float:
    kind, content = as_union(value, what)
    if kind == "as_expr":
        return parse_expr(as_text(as_object(content, what).get("expr_str"), what))
    if kind == "as_int":
        return as_int(content, what)
    return as_bool(content, what) if kind == "as_bool" else as_float(content, what)


def _place(meta: dict[str, object]) -> tuple[int, ...] | None:
    """Storage offset and strides; None when they are not all numbers."""
    strides = meta.get("strides")
    parts = [meta.get("storage_offset"), *(cast("list[object]", strides) if isinstance(strides, list) else [None])]
    found = [cast("dict[str, object]", part).get("as_int") for part in parts if isinstance(part, dict)]
    numbers = [number for number in found if type(number) is int]
    return tuple(numbers) if len(numbers) == len(parts) else None


def read_values(body: dict[str, object]) -> dict[str, Meta]:
    """The types of all values of a graph."""
    values = dict[str, Meta]()
    for name, entry in as_object(body.get("tensor_values"), "tensor_values").items():
        meta = as_object(entry, name)
        sizes = read_dims(as_list(meta.get("sizes"), "sizes"))
        values[name] = TensorMeta(read_dtype(meta.get("dtype")), sizes, _place(meta))
    for kind in ("int", "float", "bool"):
        for name, entry in as_object(body.get(f"sym_{kind}_values", {}), "symbol values").items():
            values[name] = ScalarMeta(kind, _scalar(entry, name))
    return values


def read_example(body: dict[str, object]) -> dict[str, int]:
    """The sizes of symbols in the example that the program was exported with, as tensors hint at them."""
    found = dict[str, int]()
    for name, entry in as_object(body.get("tensor_values"), "tensor_values").items():
        for size in as_list(as_object(entry, name).get("sizes"), "sizes"):
            kind, content = as_union(size, "size")
            hint = as_object(content, "size").get("hint") if kind == "as_expr" else None
            number = cast("dict[str, object]", hint).get("as_int") if isinstance(hint, dict) else None
            expression = parse_expr(as_text(as_object(content, "size").get("expr_str"), "size")) if hint else None
            if isinstance(expression, Expr) and expression.op == "symbol" and type(number) is int:
                found.setdefault(str(expression), number)
    return found


def read_nodes(body: dict[str, object], depth: int = 0) -> tuple[Node, ...]:
    """The nodes of a graph, in order."""
    return tuple(_node(as_object(entry, "node"), depth) for entry in as_list(body.get("nodes"), "nodes"))


def _node(entry: dict[str, object], depth: int) -> Node:
    outputs = tuple(_output(output) for output in as_list(entry.get("outputs"), "outputs"))
    node = Node(
        name="",
        target=as_text(entry.get("target"), "target").removeprefix("torch.ops."),
        arguments=tuple(_named_argument(argument, depth) for argument in as_list(entry.get("inputs"), "inputs")),
        outputs=outputs,
        location=_location(as_object(entry.get("metadata", {}), "metadata")),
    )
    name = entry.get("name") or (node.results() or ["unnamed"])[0]
    return Node(as_text(name, "node name"), node.target, node.arguments, outputs, node.location)


def _location(metadata: dict[str, object]) -> Location:
    stack, trace = metadata.get("nn_module_stack"), metadata.get("stack_trace")
    path = serialized_module_path(as_text(stack, "nn_module_stack")) if stack else None
    return make_location(path, as_text(trace, "stack_trace") if trace else None)


def _output(value: object) -> Output:
    found = read_argument(value, 0)
    if isinstance(found, tuple):
        return tuple(_single_output(part) for part in found)
    return _single_output(found)


def _single_output(found: Argument) -> Ref | None:
    if found is None or isinstance(found, Ref):
        return found
    raise malformed("an output of a node should be a value")


def _named_argument(value: object, depth: int) -> tuple[str, Argument]:
    entry = as_object(value, "argument")
    return as_text(entry.get("name"), "argument name"), read_argument(entry.get("arg"), depth)


def read_argument(value: object, depth: int) -> Argument:
    """One argument of an op (schema: Argument). `depth` counts the subgraphs around it."""
    kind, content = as_union(value, "argument")
    if kind == "as_none":
        return None
    if kind == "as_graph":
        return _subgraph(as_object(content, "subgraph"), depth)
    if kind == "as_nested_tensors":
        return tuple(_each(part, _tensor) for part in as_list(content, kind))
    if kind in ("as_int_lists", "as_float_lists"):
        convert = _int if kind == "as_int_lists" else _float
        return tuple(_each(part, convert) for part in as_list(content, kind))
    if kind in _SCALARS:
        return _SCALARS[kind](content)
    if kind in _LISTS:
        return _each(content, _LISTS[kind])
    raise QcompError(f"an argument of kind {kind[:40]} is not supported", code="unsupported-argument")


def _each(value: object, convert: Callable[[object], Argument]) -> tuple[Argument, ...]:
    return tuple(convert(part) for part in as_list(value, "list argument"))


def _tensor(value: object) -> Argument:
    return Ref(as_text(as_object(value, "tensor argument").get("name"), "value name"))


def _optional_tensor(value: object) -> Argument:
    kind, content = as_union(value, "optional tensor")
    return _tensor(content) if kind == "as_tensor" else None


def _symbolic(value: object) -> Argument:
    """A size or number that is either computed in the graph or literal."""
    kind, content = as_union(value, "symbolic argument")
    if kind == "as_name":
        return Ref(as_text(content, "value name"))
    if kind == "as_bool":
        return as_bool(content, "argument")
    return as_int(content, "argument") if kind == "as_int" else as_float(content, "argument")


def _int(value: object) -> Argument:
    return as_int(value, "integer argument")


def _float(value: object) -> Argument:
    return as_float(value, "number argument")


def _bool(value: object) -> Argument:
    return as_bool(value, "flag argument")


def _text(value: object) -> Argument:
    return as_text(value, "text argument")


def _complex(value: object) -> Argument:
    parts = as_object(value, "complex argument")
    return complex(as_float(parts.get("real"), "real part"), as_float(parts.get("imag"), "imaginary part"))


def _device(value: object) -> Argument:
    return Keyword("device", as_text(as_object(value, "device").get("type"), "device type"))


def _keyword(kind: str, names: dict[int, str]) -> Callable[[object], Argument]:
    def convert(value: object) -> Argument:
        code = as_int(value, kind)
        return Keyword(kind, names.get(code, f"unknown_{code}"))

    return convert


_SCALARS: dict[str, Callable[[object], Argument]] = {
    "as_tensor": _tensor,
    "as_optional_tensor": _optional_tensor,
    "as_int": _int,
    "as_float": _float,
    "as_bool": _bool,
    "as_string": _text,
    "as_operator": _text,
    "as_complex": _complex,
    "as_sym_int": _symbolic,
    "as_sym_float": _symbolic,
    "as_sym_bool": _symbolic,
    "as_scalar_type": lambda value: DType(read_dtype(value)),
    "as_device": _device,
    "as_layout": _keyword("layout", _LAYOUTS),
    "as_memory_format": _keyword("memory_format", _MEMORY_FORMATS),
}
_LISTS: dict[str, Callable[[object], Argument]] = {
    "as_tensors": _tensor,
    "as_optional_tensors": _optional_tensor,
    "as_ints": _int,
    "as_floats": _float,
    "as_bools": _bool,
    "as_strings": _text,
    "as_sym_ints": _symbolic,
    "as_sym_floats": _symbolic,
    "as_sym_bools": _symbolic,
}


def _subgraph(entry: dict[str, object], depth: int) -> Argument:
    if depth >= MAX_SUBGRAPH_DEPTH:
        raise malformed("subgraphs nested too deep")
    body = as_object(entry.get("graph"), "subgraph")
    inputs = [read_argument(argument, depth + 1) for argument in as_list(body.get("inputs"), "subgraph inputs")]
    outputs = [read_argument(argument, depth + 1) for argument in as_list(body.get("outputs"), "subgraph outputs")]
    graph = Graph(
        inputs=tuple(Input(value.name, value) for value in inputs if isinstance(value, Ref)),
        outputs=tuple(outputs),
        nodes=read_nodes(body, depth + 1),
        values=read_values(body),
    )
    return Subgraph(as_text(entry.get("name"), "subgraph name"), graph)
