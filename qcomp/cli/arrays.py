# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in and out of the command line: what a module takes, .npz files, random data, one line about an array.

bfloat16, which numpy lacks, is in .npz files as uint16, its bits; float32 arrays are rounded to it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    bf16,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from qcomp.backend.calibration import Streamed
from qcomp.backend.interface import Port
from qcomp.cli.npz import NpzFile
from qcomp.dialects.constant import Array
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.element import integer_range, numpy_dtype
from qcomp.dialects.quant import encoding_of, storage_type
from qcomp.dialects.state import STATE
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import narrow, widen
from qcomp.reading import require_memory
from qcomp.writing import write_atomically

BFLOAT16 = "bfloat16"
_UNCHECKED = 1 << 24
"""Arrays of up to this many bytes are read before the program says whether it takes them."""
SHOWN = 16
"""Arrays of up to this many elements are printed in full."""


def input_ports(module: ModuleOp) -> list[Port]:
    """The inputs of function main. Raises QcompError when there is none."""
    main = _main(module)
    ports: list[Port] = []
    for index, kind in enumerate(main.function_type.inputs):
        attributes: Mapping[str, Attribute] = {} if main.arg_attrs is None else main.arg_attrs.data[index].data
        if not {"qcomp.output", "qcomp.arena", STATE}.isdisjoint(attributes):
            continue
        hint = main.body.block.args[index].name_hint if main.body.blocks else None
        ports.append(_port(_given_name(attributes) or hint or f"input{index}", kind))
    return ports


def output_names(module: ModuleOp, count: int) -> list[str]:
    """The names of main's `count` results, output0, output1 ... where the program gives none."""
    results = _main(module).res_attrs
    given = [None] * count if results is None else [_given_name(attributes.data) for attributes in results]
    return [name or f"output{index}" for index, name in enumerate(given[:count])]


def distinct_names(names: Sequence[str]) -> list[str]:
    """`names` if they differ, else output0, output1 ..."""
    return list(names) if len(set(names)) == len(names) else [f"output{index}" for index in range(len(names))]


def _main(module: ModuleOp) -> FuncOp:
    for op in module.walk():
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            return op
    raise QcompError("the module has no function main", code="no-function")


def output_elements(module: ModuleOp, count: int) -> list[str]:
    """ "bfloat16" for each of main's first `count` results whose bits arrays hold, else ""; state comes after them."""
    kinds = _main(module).function_type.outputs.data[:count]
    return [_held_by_bits(cast(TensorType[Attribute], kind).element_type) for kind in kinds]


def _given_name(attributes: Mapping[str, Attribute]) -> str | None:
    name = attributes.get("nn.name")
    return name.data if isinstance(name, StringAttr) else None


def _port(name: str, kind: Attribute) -> Port:
    if isinstance(kind, TensorType):
        stored = storage_type(cast(TensorType[Attribute], kind))
        element, shape = stored.element_type, stored.get_shape()
    elif isinstance(kind, MemRefType):
        memref = cast(MemRefType[Attribute], kind)
        element, shape = memref.element_type, memref.get_shape()
    else:
        raise QcompError(f"input {name} has type {kind}, only tensors can be given", code="input")
    encoding = encoding_of(cast(Attribute, kind))
    low, high = (encoding.qmin, encoding.qmax) if encoding is not None else _range(element)
    return Port(name, numpy_dtype(element).name, tuple(shape), low, high, _held_by_bits(element))


def _held_by_bits(element: Attribute) -> str:
    return BFLOAT16 if isinstance(element, BFloat16Type) else ""


def _range(element: Attribute) -> tuple[int, int]:
    if isinstance(element, IntegerType):
        return integer_range(cast("IntegerType[int, Signedness]", element))
    return 0, 0


def read_inputs(path: str, ports: Sequence[Port]) -> list[Array]:
    """The inputs in an .npz file, by name when all names are there, else in the file's order.

    Shapes of large ones are compared before they are read: a small file can stand for arrays of any size.
    """
    file = NpzFile(path)
    chosen = _chosen(file, ports)
    for name, port in zip(chosen, ports, strict=True):
        header = file.headers[name]
        if header.nbytes > _UNCHECKED and all(map(_is_number, port.shape)) and header.shape != port.shape:
            text = f"input {port.name}: expected shape {list(port.shape)}, got {list(header.shape)}"
            raise QcompError(text, code="input")
    return [_held(file.read(name), port) for name, port in zip(chosen, ports, strict=True)]


def _chosen(file: NpzFile, ports: Sequence[Port]) -> list[str]:
    """The arrays of the file that are for `ports`."""
    if all(port.name in file.headers for port in ports):
        return [port.name for port in ports]
    if len(file.headers) != len(ports):
        wanted = ", ".join(port.name for port in ports)
        found = ", ".join(file.headers)
        raise QcompError(
            f"{file.path} holds {found or 'nothing'}; the program takes {wanted or 'nothing'}", code="input"
        )
    return list(file.headers)


def _held(array: Array, port: Port) -> Array:
    """What was read as the program takes it."""
    if port.element != BFLOAT16:
        return array
    if array.dtype == np.float32:
        return narrow(array, bf16)
    return array.view(np.uint16) if array.dtype == np.dtype("V2") else array


class NpzSamples(Streamed):
    """Samples for calibration: as `read_inputs`, where the first axis of every array counts the samples.

    Each pass over them reads the file again, one sample at a time.
    """

    def __init__(self, path: str, ports: Sequence[Port]):
        self._file = NpzFile(path)
        self._ports = ports
        self._chosen = _chosen(self._file, ports)
        for name, port in zip(self._chosen, ports, strict=True):
            found = self._file.headers[name].shape
            sizes = [size if _is_number(size) else "?" for size in port.shape]
            if len(found) != len(sizes) + 1:
                raise QcompError(
                    f"{path}: the samples of input {port.name} have shape {list(found)}, "
                    f"expected [{', '.join(map(str, ['samples', *sizes]))}]",
                    code="input",
                    hint="the first axis counts samples, each a whole input with its own batch axis",
                )
            dtype = self._file.headers[name].dtype
            if port.element != BFLOAT16 and dtype != np.dtype(port.dtype):
                text = f"{path}: samples of input {port.name}: expected {port.dtype}, got {dtype}"
                raise QcompError(text, code="input", hint=f"convert them to {port.dtype}")
            if not all(wanted in ("?", size) for size, wanted in zip(found[1:], sizes, strict=True)):
                text = f"expected shape [{', '.join(map(str, sizes))}], got {list(found[1:])}"
                raise QcompError(f"{path}: samples of input {port.name}: {text}", code="input")
        counts = {self._file.headers[name].shape[0] for name in self._chosen}
        if len(counts) != 1:
            raise QcompError(f"{path}: the arrays do not hold one number of samples: {sorted(counts)}", code="input")
        self._count = counts.pop()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[Array, ...]]:
        rows = [self._file.rows(name) for name in self._chosen]
        for sample in zip(*rows, strict=True):
            yield tuple(_held(array, port) for array, port in zip(sample, self._ports, strict=True))


def _is_number(size: int) -> bool:
    return not is_symbolic(size) and size >= 0


def write_npz(path: str, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file, whole or not at all."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
    write_atomically(path, file.getvalue())


def random_inputs(
    ports: Sequence[Port], seed: int, fix: str = "give it with --inputs, or compile the program with --dim"
) -> list[Array]:
    """Normal floats; integers and codes over their whole range (indices of 32 and 64 bits from 0 to 9).

    fix: the hint of the error about a symbolic size.
    """
    generator = np.random.default_rng(seed)
    arrays: list[Array] = []
    counts = [math.prod(port.shape) for port in ports if all(map(_is_number, port.shape))]
    require_memory(sum(counts) * 8 + max(counts, default=0) * 8, "making random inputs")
    for port in ports:
        if not all(map(_is_number, port.shape)):
            raise QcompError(f"input {port.name} has a symbolic size", code="input", hint=fix)
        dtype = np.dtype(port.dtype)
        if port.element == BFLOAT16:
            array = narrow(np.asarray(generator.standard_normal(port.shape)).astype(np.float32), bf16)
        elif dtype.kind == "f":
            array = np.asarray(generator.standard_normal(port.shape)).astype(dtype)
        elif dtype.kind == "b":
            array = np.asarray(generator.integers(0, 2, port.shape)).astype(np.bool_)
        else:
            low, high = (0, 9) if dtype.itemsize >= 4 else (port.low, port.high)
            array = np.asarray(generator.integers(low, high + 1, port.shape)).astype(dtype)
        arrays.append(array)
    return arrays


def describe_array(name: str, array: Array, element: str = "") -> str:
    """One line: type, range and mean, the values themselves when they are few. element: "bfloat16" for its bits."""
    head = f"{name}: {element or array.dtype}{list(array.shape)}"
    array = widen(array, bf16) if element == BFLOAT16 else array
    if array.size == 0:
        return head
    if array.size <= SHOWN:
        return f"{head} {np.array2string(array, separator=', ', max_line_width=10**6)}".replace("\n", "")
    if array.dtype.kind == "b":
        return f"{head} {int(array.sum())} true"
    numbers = array.astype(np.float64)
    return f"{head} min {numbers.min():.6g} max {numbers.max():.6g} mean {numbers.mean():.6g}"


def array_data(name: str, array: Array, element: str = "") -> dict[str, object]:
    """Return what `describe_array` prints as plain data: `values` when they are few, else `min`, `max` and `mean`."""
    data: dict[str, object] = {"name": name, "dtype": element or str(array.dtype), "shape": list(array.shape)}
    array = widen(array, bf16) if element == BFLOAT16 else array
    if array.size <= SHOWN:
        return {**data, "values": array.tolist()}
    numbers = array.astype(np.float64)
    return {**data, "min": float(numbers.min()), "max": float(numbers.max()), "mean": float(numbers.mean())}
