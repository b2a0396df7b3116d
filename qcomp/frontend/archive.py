# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The zip container of a .pt2 file, read defensively: nothing is unpickled, nothing is written, sizes are bounded.

Stored (uncompressed) records are mapped, not copied. A record is checked against its CRC when first read.
"""

from __future__ import annotations

import json
import mmap
import struct
import zipfile
import zlib
from pathlib import Path
from typing import cast

import numpy as np

from qcomp.errors import QcompError

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

_READ_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, KeyError, IndexError,
    OverflowError,
)  # fmt: skip
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_INFLATE_RATIO = 100
_INFLATE_FLOOR = 64 << 20
_MAX_MEMBERS = 1_000_000
_MAX_JSON_BYTES = 256 << 20
_MAX_JSON_ITEMS = 8_000_000
_MAX_JSON_CONTAINERS = 3_000_000

RESAVE = "save it again where its source is trusted: torch.export.save(torch.export.load(old), new), torch 2.9 or newer"


class Archive:
    """An opened archive; `records` names its members without the common root folder.

    Raises QcompError when `path` is not a readable .pt2 archive.
    """

    def __init__(self, path: Path):
        self.path = path
        self._inflated = 0
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise QcompError(f"cannot read {path.name}: {error}", code="unreadable-file") from None
        try:
            self._zip = zipfile.ZipFile(path)
        except _READ_ERRORS as error:
            raise self.error(
                f"is not a .pt2 archive ({error})", hint="expected a file written by torch.export.save"
            ) from None
        self.root, self._members = self._index()

    def error(self, message: str, *, code: str = "malformed-pt2", hint: str | None = None) -> QcompError:
        """An error about this archive."""
        return QcompError(f"{self.path.name} {message}", code=code, hint=hint)

    def _index(self) -> tuple[str, dict[str, zipfile.ZipInfo]]:
        infos = self._zip.infolist()
        if len(infos) > _MAX_MEMBERS:
            raise self.error(f"has {len(infos)} members, which is more than qcomp reads")
        names = [info.filename for info in infos]
        if len(set(names)) != len(names):
            raise self.error("has two members of one name")
        marks = [name for name in names if name == "archive_format" or name.endswith("/archive_format")]
        if not marks:
            raise self._explain(names)
        root = min(marks, key=len).removesuffix("archive_format")
        return root, {info.filename.removeprefix(root): info for info in infos if info.filename.startswith(root)}

    def _explain(self, names: list[str]) -> QcompError:
        if "serialized_exported_program.json" in names or "serialized_state_dict.pt" in names:
            return self.error(
                "is an export of an older torch, whose weights are pickled", code="legacy-format", hint=RESAVE
            )
        if any(name.endswith("data.pkl") for name in names):
            return self.error(
                "is a torch.save checkpoint or TorchScript archive, not an exported program",
                code="legacy-format",
                hint="export the model: torch.export.save(torch.export.export(model, example_inputs), 'model.pt2')",
            )
        return self.error("is a zip file but not a .pt2 archive", hint="expected a file written by torch.export.save")

    @property
    def records(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    def size(self) -> int:
        """Bytes of the whole file."""
        return len(self._map)

    def record(self, name: str) -> Bytes:
        """The bytes of a member: a view of the mapped file when stored, else a copy. Raises QcompError."""
        info = self._members.get(name)
        if info is None:
            raise self.error(f"lacks {name}", code="missing-record")
        if info.flag_bits & 1:
            raise self.error(f"has an encrypted member {name}")
        if info.compress_type == zipfile.ZIP_STORED:
            data = self._stored(info)
        else:
            data = np.frombuffer(self._inflate(info), np.uint8)
        if zlib.crc32(cast(bytes, data)) != info.CRC:
            raise self.error(f"is damaged: {name} does not match its checksum")
        return data

    def _stored(self, info: zipfile.ZipInfo) -> Bytes:
        start = info.header_offset + _LOCAL_HEADER.size
        if not 0 <= info.header_offset <= self.size() - _LOCAL_HEADER.size or info.compress_size != info.file_size:
            raise self.error(f"is damaged: no data for {info.filename}")
        magic, name_length, extra_length = _LOCAL_HEADER.unpack_from(self._map, info.header_offset)
        start += name_length + extra_length
        if magic != b"PK\x03\x04" or start + info.file_size > self.size():
            raise self.error(f"is damaged or cut off: no data for {info.filename}")
        return np.frombuffer(self._map, np.uint8, info.file_size, start)

    def _inflate(self, info: zipfile.ZipInfo) -> bytes:
        """A compressed member, as long as all of them together stay within a sane ratio of the file's size."""
        self._inflated += info.file_size
        if self._inflated > _INFLATE_FLOOR + _INFLATE_RATIO * self.size():
            raise self.error(f"inflates to more than {self._inflated} bytes", code="archive-bomb")
        try:
            with self._zip.open(info) as member:
                data = member.read(info.file_size)
        except (*_READ_ERRORS, NotImplementedError) as error:
            raise self.error(f"is damaged: cannot read {info.filename}: {error}") from None
        if len(data) != info.file_size:
            raise self.error(f"is damaged: {info.filename} is cut off")
        return data

    def text(self, name: str, default: str | None = None) -> str:
        """A short text member; `default` when it is missing."""
        if default is not None and name not in self._members:
            return default
        return bytes(self.record(name)[:256]).decode("utf-8", "replace").strip()

    def json(self, name: str) -> object:
        """A JSON member, parsed; its size and nesting are bounded."""
        data = self.record(name)
        if data.size > _MAX_JSON_BYTES:
            raise self.error(f"has {data.size} bytes of {name}, which is more than qcomp reads", code="archive-bomb")
        raw = data.tobytes()
        containers = raw.count(b"[") + raw.count(b"{")
        if containers > _MAX_JSON_CONTAINERS or raw.count(b",") > _MAX_JSON_ITEMS:
            raise self.error(f"has too many entries in {name}", code="archive-bomb")
        try:
            return cast(object, json.loads(raw))
        except (ValueError, RecursionError) as error:
            raise self.error(f"has a malformed {name}: {str(error)[:120]}") from None
