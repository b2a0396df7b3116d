# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits of zip files: their members and the fields of their directory."""

from __future__ import annotations

import io
import random
import struct
import warnings
import zipfile
from collections.abc import Callable

from tools.fuzzing.edits import BYTE_EDITS, Edit

_NAMES = ("/", "x", "../../etc/passwd", "archive_format", "net/archive_format", "a" * 5000, "net/models/o.json", "\n")
_PIECES = (b"", b"\x80\x02}q\x00.", b"[" * 5000, b"\0" * 4096, b"{}", b"null", b"pt2\n", b"9")
# Offset in a directory entry, its width: flags, method, crc, packed, size, lengths of name, extra and comment, offset.
_FIELDS = ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4))


def members_of(data: bytes) -> dict[str, bytes]:
    """The members of a zip file; none when it cannot be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as source:
            return {info.filename: source.read(info) for info in source.infolist() if info.file_size < 1 << 22}
    except Exception:
        return {}


def zip_of(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file of `members`."""
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def edit_field(data: bytes, rng: random.Random) -> bytes:
    """A field of a directory entry is another number."""
    entries: list[int] = []
    at = data.find(b"PK\1\2")
    while at >= 0:
        entries.append(at)
        at = data.find(b"PK\1\2", at + 4)
    if not entries:
        return data
    changed = bytearray(data)
    offset, width = rng.choice(_FIELDS)
    place = rng.choice(entries) + offset
    other = rng.choice(entries) + offset
    old = int.from_bytes(changed[place : place + width], "little")
    value = rng.choice((0, 1, old + 1, old - 1, old * 2, (1 << 8 * width) - 1, rng.getrandbits(8 * width)))
    changed[place : place + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    if rng.random() < 0.2:  # the same place in the file as another member
        changed[place : place + width] = changed[other : other + width]
    return bytes(changed)


def edit_members(data: bytes, rng: random.Random) -> bytes:
    """Members missing, exchanged, renamed, with other contents; packed again."""
    members = members_of(data)
    if not members:
        return data
    name, other = rng.choice(list(members)), rng.choice(list(members))
    action = rng.randrange(6)
    if action == 0:
        del members[name]
    elif action == 1:
        members[name], members[other] = members[other], members[name]
    elif action == 2:
        members[rng.choice(_NAMES)] = members.pop(name)
    elif action == 3:
        members[name] = rng.choice(_PIECES)
    elif action == 4:
        members[name] = rng.choice(BYTE_EDITS)(members[name], rng)
    else:
        members[name + rng.choice(("x", ".pt", ".json"))] = rng.choice(_PIECES)
    return zip_of(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def truncate_numbers(data: bytes, rng: random.Random) -> bytes:
    """An entry of the end record is off."""
    at = data.rfind(b"PK\5\6")
    if at < 0:
        return data
    changed = bytearray(data)
    place = at + rng.choice((4, 6, 8, 10, 12, 16, 20, -20, -12, -36, -28, -16))
    struct.pack_into("<I", changed, max(0, min(place, len(changed) - 4)), rng.choice((0, 1, 0xFFFF, 0xFFFFFFFF)))
    return bytes(changed)


def on_member(edit: Callable[[bytes, random.Random], bytes], suffix: str, name: str) -> Edit:
    """`edit` of the members whose names end in `suffix`, as an edit of the file; called `name` in reports."""

    def apply(data: bytes, rng: random.Random) -> bytes:
        members = members_of(data)
        chosen = [member for member in members if member.endswith(suffix)]
        if not chosen:
            return data
        member = rng.choice(chosen)
        members[member] = edit(members[member], rng)
        return zip_of(members)

    apply.__name__ = name
    return apply


ZIP_EDITS: tuple[Edit, ...] = (edit_field, edit_members, truncate_numbers)
