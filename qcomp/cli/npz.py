# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reader of .npz files that holds no more than it is asked for: a header first, then one row or one array.

numpy's reader allocates what a header claims and inflates whole arrays; 233 kB can stand for 240 MB. Here a header must
agree with the size of its member, and the samples of a file are inflated one by one.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from qcomp.dialects.constant import Array
from qcomp.errors import QcompError
from qcomp.frontend.zip_directory import STORED, DamagedZip, Member, data_offset, read_directory
from qcomp.limits import misfit
from qcomp.reading import open_regular, require_memory

_PIECE = 1 << 20
_NPY_MAGIC = b"\x93NUMPY"


@dataclass(frozen=True, kw_only=True)
class Header:
    """An array in the file. start: bytes of its member before the elements; columns: Fortran order."""

    name: str
    member: Member
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columns: bool
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


class NpzFile:
    """An opened .npz file; `headers` by name, in its order. Raises QcompError for other files and bad headers."""

    def __init__(self, path: str):
        self.path = path
        self._file = open_regular(path)
        try:
            members = read_directory(self._file)
        except DamagedZip as problem:
            raise self._foreign(problem) from None
        found = [self._header(member) for member in members]
        self.headers = {header.name: header for header in found}
        if len(found) != len(self.headers):
            raise self.error("holds two arrays of one name")

    def error(self, text: str, hint: str | None = None) -> QcompError:
        """An error about this file."""
        return QcompError(f"{self.path} {text}", code="input", hint=hint)

    def _foreign(self, problem: DamagedZip) -> QcompError:
        self._file.seek(0)
        if self._file.read(len(_NPY_MAGIC)) == _NPY_MAGIC:
            hint = "save it by name: np.savez(FILE, NAME=array)"
            return self.error("holds one array without a name, expected an .npz file", hint)
        return self.error(f"is no .npz file of arrays: {problem}")

    def _header(self, member: Member) -> Header:
        name = member.name.removesuffix(".npy")
        try:
            stream = _Stream(self._file, member)
            version = np.lib.format.read_magic(stream)  # pyright: ignore[reportArgumentType]
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
            shape, columns, dtype = read(stream)  # pyright: ignore[reportArgumentType]
        except Exception:  # numpy's reader of headers tokenizes and evaluates a text: it raises anything.
            raise self.error(f"is no .npz file of arrays: {name[:80]!r} has no header of one") from None
        if dtype.kind not in "biufV" or dtype.hasobject or (dtype.kind == "V" and dtype != np.dtype("V2")):
            raise self.error(f"is no .npz file of arrays of numbers: {name[:80]!r} holds elements of type {dtype}")
        problem = misfit(shape)
        if problem:
            raise self.error(f"cannot be read: the header of {name[:80]!r} claims {problem}")
        found = Header(name=name, member=member, dtype=dtype, shape=shape, columns=columns, start=stream.done)
        if found.nbytes != member.size - found.start:
            raise self.error(
                f"is damaged: the header of {name[:80]!r} claims {found.nbytes} bytes of elements, "
                f"there are {member.size - found.start}"
            )
        return found

    def read(self, name: str) -> Array:
        """The whole array. Raises QcompError where it does not fit into memory."""
        header = self.headers[name]
        require_memory(header.nbytes, f"array {name} of {self.path}, {header.dtype}{list(header.shape)},")
        shape = header.shape[::-1] if header.columns else header.shape
        array = np.empty(shape, header.dtype)
        self._fill(self._elements(header), array)
        return array.T if header.columns else array

    def rows(self, name: str) -> Iterator[Array]:
        """The parts of the array along its first axis, one in memory at a time."""
        header = self.headers[name]
        count = header.shape[0]
        if header.columns and len(header.shape) > 1:  # Its rows are not stored one after the other.
            yield from self.read(name)
            return
        stream = self._elements(header)
        require_memory(header.nbytes // max(count, 1), f"one sample of array {name} of {self.path}")
        for _ in range(count):
            row = np.empty(header.shape[1:], header.dtype)
            self._fill(stream, row)
            yield row

    def _elements(self, header: Header) -> _Stream:
        stream = _Stream(self._file, header.member)
        self._fill(stream, np.empty(header.start, np.uint8))
        return stream

    def _fill(self, stream: _Stream, array: Array) -> None:
        try:
            stream.fill(array)
        except (zlib.error, DamagedZip, OSError) as problem:
            raise self.error(f"is damaged: {problem}") from None


class _Stream:
    """The bytes of a member in order; checked against its checksum at the end. done: how many were read."""

    def __init__(self, file: BinaryIO, member: Member):
        self._file, self._member = file, member
        self._at, self._left = data_offset(file, member), member.packed
        self._inflater = None if member.method == STORED else zlib.decompressobj(-15)
        self._crc = self.done = 0

    def read(self, count: int) -> bytes:
        """At most `count` bytes; as a file does, for numpy's reader of headers."""
        count = max(0, min(count, self._member.size - self.done))
        data = np.empty(count, np.uint8)
        self.fill(data)
        return data.tobytes()

    def fill(self, array: Array) -> None:
        """Read the elements of `array`. Raises DamagedZip where the file ends before, or its checksum is another."""
        flat = array.reshape(-1).view(np.uint8)
        done = 0
        while done < flat.size:
            piece = self._piece(min(_PIECE, flat.size - done))
            if not piece:
                raise DamagedZip("it is cut off")
            flat[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
            self._crc = zlib.crc32(piece, self._crc)
            done += len(piece)
        self.done += done
        if done and self.done == self._member.size and self._crc != self._member.crc:
            raise DamagedZip(f"{self._member.name[:80]!r} does not match its checksum")

    def _piece(self, most: int) -> bytes:
        if self._inflater is None:
            return self._packed(most)
        piece = b""
        while not piece and not self._inflater.eof:
            packed = self._inflater.unconsumed_tail or self._packed(_PIECE)
            piece = self._inflater.decompress(packed, most)
            if not packed and not piece:
                break
        return piece

    def _packed(self, most: int) -> bytes:
        """Streams of several members take turns at the file: each knows its own place."""
        self._file.seek(self._at)
        data = self._file.read(min(most, self._left))
        self._at, self._left = self._at + len(data), self._left - len(data)
        return data
