# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The directory of a zip file, read defensively: bounded in number, every member inside the file, none over another.

The format is PKWARE's APPNOTE.TXT 6.3; sections 4.3.12 (central directory) to 4.3.16 (end record) are what is read.
Members may be stored or deflated; encrypted members and files of several disks are refused. The standard library's
reader builds an object for each of any number of members, and lets them overlap.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

MAX_MEMBERS = 200_000
MAX_DIRECTORY_BYTES = 64 << 20
STORED, DEFLATED = 0, 8

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s22xHH")
_MAX_COMMENT = 0xFFFF
_NARROW = 0xFFFFFFFF


class DamagedZip(Exception):
    """The file is no zip file that can be read; the message says why."""


@dataclass(frozen=True)
class Member:
    """A file in the archive.

    packed, size: bytes as held and when unpacked; offset: of its local header; limit: where the next member begins.
    """

    name: str
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    limit: int = 0


def read_directory(file: BinaryIO) -> list[Member]:
    """The members of the zip file. Raises DamagedZip."""
    size = file.seek(0, os.SEEK_END)
    start, length, count, shift = _end(file, size)
    if count > MAX_MEMBERS or length > MAX_DIRECTORY_BYTES:
        raise DamagedZip(f"{count} members are more than qcomp reads")
    file.seek(start)
    return _apart(list(_central(file.read(length), count, shift)), start)


def _end(file: BinaryIO, size: int) -> tuple[int, int, int, int]:
    """Start, length and entry count of the directory, and the bytes in front of the archive."""
    tail_start = max(0, size - _END.size - _MAX_COMMENT)
    file.seek(tail_start)
    tail = file.read()
    at = tail.rfind(b"PK\5\6", 0, max(0, len(tail) - _END.size + 4))
    while at >= 0:
        _, disk, first, here, count, length, start, comment = _END.unpack_from(tail, at)
        if at + _END.size + comment == len(tail):
            break
        at = tail.rfind(b"PK\5\6", 0, at)
    else:
        raise DamagedZip("it has no end of a zip file")
    end = tail_start + at
    wide = _end64(file, end)
    if wide is not None:
        end, disk, first, here, count, length, start = wide
    elif _NARROW in (length, start) or count == 0xFFFF:
        raise DamagedZip("it has no zip64 end")
    if disk or first or here != count:
        raise DamagedZip("it is a part of several")
    if not 0 <= start <= start + length <= end:
        raise DamagedZip("its directory lies outside")
    return end - length, length, count, end - length - start


def _end64(file: BinaryIO, end: int) -> tuple[int, int, int, int, int, int, int] | None:
    """The same of a zip64 file, whose end record stands before a locator before the usual one; torch writes both."""
    place = end - _END64_LOCATOR.size - _END64.size
    if place < 0:
        return None
    file.seek(place)
    found = file.read(_END64.size + _END64_LOCATOR.size)
    magic, _, _, _, disk, first, here, count, length, start = _END64.unpack_from(found)
    locator, _, _, _ = _END64_LOCATOR.unpack_from(found, _END64.size)
    if magic != b"PK\6\6" or locator != b"PK\6\7":
        return None
    return place, disk, first, here, count, length, start


def _central(data: bytes, count: int, shift: int) -> Iterator[Member]:
    at = 0
    for _ in range(count):
        if at + _CENTRAL.size > len(data):
            raise DamagedZip("its directory is cut off")
        magic, _, _, flags, method, _, _, crc, packed, size, name_length, extra_length, comment, _, _, _, offset = (
            _CENTRAL.unpack_from(data, at)
        )
        text = data[at + _CENTRAL.size : at + _CENTRAL.size + name_length]
        at += _CENTRAL.size + name_length + extra_length
        if magic != b"PK\1\2" or at + comment > len(data):
            raise DamagedZip("its directory is damaged")
        name = _name(text, flags)
        if _NARROW in (packed, size, offset):
            size, packed, offset = _wide(data[at - extra_length : at], size, packed, offset)
        at += comment
        if flags & 1:
            raise DamagedZip(f"its member {name[:80]!r} is encrypted")
        if method not in (STORED, DEFLATED) or (method == STORED and packed != size):
            raise DamagedZip(f"its member {name[:80]!r} is packed in a way that qcomp does not read")
        yield Member(name, method, crc, packed, size, offset + shift)


def _name(text: bytes, flags: int) -> str:
    """Flag 11 says UTF-8; before it was code page 437."""
    try:
        return text.decode("utf-8" if flags & 0x800 else "cp437")
    except UnicodeDecodeError:
        raise DamagedZip("the name of a member is damaged") from None


def _wide(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """64-bit values from extra field 1, present for those that are all ones in the directory."""
    found = [size, packed, offset]
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wanted = [index for index, value in enumerate(found) if value == _NARROW]
            if length < 8 * len(wanted) or at + 4 + 8 * len(wanted) > len(extra):
                break
            for place, index in enumerate(wanted):
                (found[index],) = struct.unpack_from("<Q", extra, at + 4 + 8 * place)
            return found[0], found[1], found[2]
        at += 4 + length
    raise DamagedZip("a 64-bit size in its directory is missing")


def _apart(members: list[Member], end: int) -> list[Member]:
    """The members with their limits. They must not share bytes: else they stand for more data than the file has."""
    ordered = sorted(members, key=lambda member: member.offset)
    limits = [*(member.offset for member in ordered[1:]), end]
    for member, limit in zip(ordered, limits, strict=False):
        if member.offset < 0 or member.offset + _LOCAL.size + member.packed > limit:
            raise DamagedZip(f"its member {member.name[:80]!r} lies over another, or outside")
    return [replace(member, limit=limit) for member, limit in zip(ordered, limits, strict=False)]


def data_offset(file: BinaryIO, member: Member) -> int:
    """Where the data of `member` begins. Raises DamagedZip."""
    file.seek(member.offset)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size:
        raise DamagedZip("it is cut off")
    magic, name_length, extra_length = _LOCAL.unpack(header)
    start = member.offset + _LOCAL.size + name_length + extra_length
    if magic != b"PK\3\4" or start + member.packed > member.limit:
        raise DamagedZip(f"it has no data for {member.name[:80]!r}")
    return start
