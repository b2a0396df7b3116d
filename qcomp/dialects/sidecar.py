# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sidecar file of a saved module: its large constants in the safetensors format, by digest.

The format is a little-endian u64 header length, a JSON header ``{name: {dtype, shape, data_offsets}}`` and raw bytes.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute

from qcomp.dialects.constant import INLINE_LIMIT, Array, ConstantData, DataAttr
from qcomp.dialects.quant import UniformQuantizedType
from qcomp.errors import QcompError
from qcomp.limits import MAX_SIDECAR_HEADER_BYTES, misfit
from qcomp.reading import open_regular, require_memory
from qcomp.writing import replacing

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "uint16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "U64": "uint64",
}  # fmt: skip
_NAMES = {name: code for code, name in _DTYPES.items() if code != "BF16"}


def large_constants(module: ModuleOp) -> dict[str, ConstantData]:
    """The constants of `module` that its text refers to by digest: values of ops and parameters of types."""
    found: dict[str, ConstantData] = {}
    seen: set[Attribute] = set()
    for op in module.walk():
        attributes: list[Attribute] = [*op.properties.values(), *op.attributes.values()]
        attributes += [value.type for value in op.results]
        attributes += [argument.type for region in op.regions for block in region.blocks for argument in block.args]
        for attribute in attributes:
            for data in _held(attribute, seen):
                if data.array.size > INLINE_LIMIT:
                    found.setdefault(data.digest, data)
    return found


def _held(attribute: Attribute, seen: set[Attribute]) -> Iterator[ConstantData]:
    if isinstance(attribute, DataAttr):
        yield attribute.data
        return
    if attribute in seen:
        return
    seen.add(attribute)
    if isinstance(attribute, UniformQuantizedType):
        encoding = attribute.data
        yield ConstantData(encoding.scales)
        if encoding.zero_points.any():
            yield ConstantData(encoding.zero_points)
    elif isinstance(attribute, TensorType):
        tensor = cast(TensorType[Attribute], attribute)
        yield from _held(tensor.element_type, seen)
    elif isinstance(attribute, ParametrizedAttribute):
        for parameter in attribute.parameters:
            yield from _held(parameter, seen)
    elif isinstance(data := getattr(attribute, "data", None), tuple | list | Mapping):
        items = cast(Mapping[str, object], data).values() if isinstance(data, Mapping) else cast(Iterable[object], data)
        for item in items:
            if isinstance(item, Attribute):
                yield from _held(item, seen)


def write(path: Path, constants: Mapping[str, ConstantData]) -> None:
    """Write `constants` to `path`, whole or not at all."""
    header: dict[str, object] = {"__metadata__": {"format": "qcomp-constants-1"}}
    offset = 0
    for digest, data in constants.items():
        size = data.array.nbytes
        code = "BF16" if data.type.element_type.name == "bf16" else _NAMES[data.array.dtype.name]
        header[digest] = {"dtype": code, "shape": list(data.array.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with replacing(path) as partial, open(partial, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for data in constants.values():
            little = np.ascontiguousarray(data.array.astype(data.array.dtype.newbyteorder("<"), copy=False))
            file.write(little.tobytes())


def read(path: Path) -> dict[str, Array]:
    """The arrays of a sidecar file by digest, in memory: later changes of the file do not reach them.

    Raises QcompError when it is damaged.
    """
    try:
        raw = _content(path)
        (length,) = struct.unpack("<Q", raw[:8].tobytes())
        if length > min(raw.size - 8, MAX_SIDECAR_HEADER_BYTES):
            raise ValueError("header length beyond the file")
        header: object = json.loads(raw[8 : 8 + length].tobytes())
        if not isinstance(header, dict):
            raise ValueError("the header is no object")
        entries = cast(dict[str, Any], header)
        entries.pop("__metadata__", None)
        body = raw[8 + length :]
        _check_apart(entries)
        return {name: _entry(body, entry) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, struct.error, RecursionError, OverflowError) as problem:
        raise QcompError(f"{path} is not a sidecar file: {str(problem)[:200]}", code="sidecar") from None


def _content(path: Path) -> Array:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        require_memory(size, f"reading {path}")
        raw = np.empty(size, np.uint8)
        if file.readinto(raw.data) != size:
            raise ValueError("the file changes while it is read")
    return raw


def _check_apart(entries: Mapping[str, Any]) -> None:
    """Entries must not share bytes: overlapping ones stand for more data than the file has."""
    ordered = sorted(_sizes(entry["data_offsets"]) for entry in entries.values())
    for (_, end), (begin, _) in itertools.pairwise(ordered):
        if begin < end:
            raise ValueError("two entries overlap")


def _sizes(values: object) -> tuple[int, ...]:
    """A list of sizes or offsets. JSON has one kind of number, so 2.0 and true would pass for them."""
    if not isinstance(values, list):
        raise ValueError("an entry has no list of sizes")
    for value in cast(list[object], values):
        if type(value) is not int or value < 0:
            raise ValueError(f"an entry has {value!r} where a size is expected")
    return tuple(cast(list[int], values))


def _entry(body: Array, entry: dict[str, Any]) -> Array:
    dtype = np.dtype(_DTYPES[entry["dtype"]])
    shape = _sizes(entry["shape"])
    begin, end = _sizes(entry["data_offsets"])
    if (problem := misfit(shape)) is not None:
        raise ValueError(f"an entry has {problem}")
    if not 0 <= begin <= end <= body.size or end - begin != dtype.itemsize * math.prod(shape):
        raise ValueError("an entry lies outside the file")
    flat = body[begin:end]
    if flat.ctypes.data % dtype.itemsize:
        flat = flat.copy()
    if dtype.kind == "b" and flat.size and flat.max() > 1:
        raise ValueError("a truth value is neither 0 nor 1")
    return flat.view(dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
