# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The zip container of a .pt2 file, read defensively: nothing is unpickled, nothing is written, sizes are bounded.

Records are read into memory when asked for and checked against their CRC, never mapped: a file that shrinks under a
map kills the process, and one that is written to would change weights that were imported.
"""

from __future__ import annotations

import json
import weakref
import zlib
from pathlib import Path
from typing import cast

import numpy as np

from qcomp.errors import QcompError
from qcomp.frontend.zip_directory import STORED, DamagedZip, Member, data_offset, read_directory
from qcomp.reading import open_regular, require_memory

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

_INFLATE_RATIO = 20
_INFLATE_FLOOR = 256 << 20
_PIECE = 1 << 20
_MAX_JSON_BYTES = 96 << 20
_MAX_JSON_ITEMS = 4_000_000
_MAX_JSON_CONTAINERS = 1_500_000

_WRITER = "expected a file written by torch.export.save"
RESAVE = "save it again where its source is trusted: torch.export.save(torch.export.load(old), new), torch 2.9 or newer"


class Archive:
    """An opened archive; `records` names its members without the common root folder.

    Raises QcompError when `path` is not a readable .pt2 archive.
    """

    def __init__(self, path: Path):
        self.path = path
        self._inflated = 0
        try:
            self._file = open_regular(path)
            weakref.finalize(self, self._file.close)  # Weights are read when needed: closed with the last reader.
            self._size = self._file.seek(0, 2)
            members = read_directory(self._file)
        except DamagedZip as problem:
            raise self.error(f"is not a .pt2 archive, or it is damaged: {problem}", hint=_WRITER) from None
        except (OSError, ValueError) as error:
            raise QcompError(f"cannot read {path.name[:200]}: {error}", code="unreadable-file") from None
        self._members = self._index(members)

    def error(self, message: str, *, code: str = "malformed-pt2", hint: str | None = None) -> QcompError:
        """An error about this archive."""
        return QcompError(f"{self.path.name} {message}", code=code, hint=hint)

    def _index(self, members: list[Member]) -> dict[str, Member]:
        names = [member.name for member in members]
        if len(set(names)) != len(names):
            raise self.error("has two members of one name")
        marks = [name for name in names if name == "archive_format" or name.endswith("/archive_format")]
        if not marks:
            raise self._explain(names)
        root = min(marks, key=len).removesuffix("archive_format")
        return {member.name.removeprefix(root): member for member in members if member.name.startswith(root)}

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
        return self.error("is a zip file but not a .pt2 archive", hint=_WRITER)

    @property
    def records(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    def size(self) -> int:
        """Bytes of the whole file."""
        return self._size

    def record(self, name: str) -> Bytes:
        """The bytes of a member, in memory of their own. Raises QcompError."""
        member = self._members.get(name)
        if member is None:
            raise self.error(f"lacks {name[:200]}", code="missing-record")
        try:
            data = self._stored(member) if member.method == STORED else self._inflate(member)
        except (DamagedZip, zlib.error, OSError, ValueError) as problem:
            raise self.error(f"is damaged: cannot read {name[:200]}: {problem}") from None
        if zlib.crc32(cast(bytes, data)) != member.crc:
            raise self.error(f"is damaged: {name[:200]} does not match its checksum")
        return data

    def _stored(self, member: Member) -> Bytes:
        self._file.seek(data_offset(self._file, member))
        require_memory(member.size, f"{member.name[:200]} of {self.path.name}")
        data = np.empty(member.size, np.uint8)
        if self._file.readinto(data.data) != member.size:
            raise DamagedZip("it is cut off")
        return data

    def _inflate(self, member: Member) -> Bytes:
        """A compressed member, as long as all of them together stay within a sane ratio of the file's size."""
        self._inflated += member.size
        if self._inflated > _INFLATE_FLOOR + _INFLATE_RATIO * self._size:
            raise self.error(f"inflates to more than {self._inflated} bytes", code="archive-bomb")
        self._file.seek(data_offset(self._file, member))
        require_memory(member.size, f"{member.name[:200]} of {self.path.name}")
        data, inflater = np.empty(member.size, np.uint8), zlib.decompressobj(-15)
        done, left = 0, member.packed
        while not inflater.eof and (left or inflater.unconsumed_tail) and done < member.size:
            packed = inflater.unconsumed_tail or self._file.read(min(left, _PIECE))
            left -= 0 if inflater.unconsumed_tail else len(packed)
            piece = inflater.decompress(packed, min(_PIECE, member.size - done))
            data[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
            done += len(piece)
            if not packed:
                break
        if done != member.size:
            raise DamagedZip("it is cut off")
        return data

    def text(self, name: str, default: str | None = None) -> str:
        """A short text member; `default` when it is missing."""
        if default is not None and name not in self._members:
            return default
        return bytes(self.record(name)[:256]).decode("utf-8", "replace").strip()

    def json(self, name: str) -> object:
        """A JSON member, parsed; its size, nesting and number of parts are bounded, keys are distinct."""
        data = self.record(name)
        if data.size > _MAX_JSON_BYTES:
            raise self.error(f"has {data.size} bytes of {name}, which is more than qcomp reads", code="archive-bomb")
        raw = data.tobytes()
        del data
        containers = raw.count(b"[") + raw.count(b"{")
        if containers > _MAX_JSON_CONTAINERS or raw.count(b",") > _MAX_JSON_ITEMS:
            raise self.error(f"has too many entries in {name}", code="archive-bomb")
        try:
            text = raw.decode()
            del raw
            return cast(object, json.loads(text, object_pairs_hook=_distinct))
        except (ValueError, RecursionError) as error:
            raise self.error(f"has a malformed {name}: {str(error)[:120]}") from None


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object. Two readers need not agree which of two equal keys counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found
