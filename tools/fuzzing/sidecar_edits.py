# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits of sidecar files and of .npz files: the JSON of the one, the headers of arrays of the other, both lengths."""

from __future__ import annotations

import random
import re
import struct

from tools.fuzzing.edits import BYTE_EDITS, Edit
from tools.fuzzing.json_edits import edit_json
from tools.fuzzing.zip_edits import ZIP_EDITS, on_member

_NUMBERS = (
    "0", "1", "2", "2.0", "-1", "1099511627776", "4294967296", "18446744073709551616", "9" * 40, "True", "'2'", "0x10",
    "1e3", "None",
)  # fmt: skip
_DESCRIPTIONS = (
    "<f4",
    "<f8",
    ">f4",
    "|b1",
    "|O",
    "<U6",
    "<c8",
    "|V2",
    "|V8",
    "<M8[s]",
    "f4,i4",
    "nonsense",
    "<f2",
    "|S9",
)


def edit_header(data: bytes, rng: random.Random) -> bytes:
    """The JSON of a sidecar with one small change; its length is right again, or nearly."""
    if len(data) < 8:
        return data
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        return data
    header = edit_json(data[8 : 8 + length], rng)
    off = rng.choice((0, 0, 0, 0, 1, -1, 1 << 40))
    return struct.pack("<Q", max(0, len(header) + off)) + header + data[8 + length :]


def edit_claim(data: bytes, rng: random.Random) -> bytes:
    """What the header of an array says of type, shape or order is another, at the same length where there is room."""
    end = data.find(b"\n")
    if not data.startswith(b"\x93NUMPY") or end < 10:
        return data
    text = data[10:end].decode("latin-1")
    if rng.random() < 0.3:
        changed = re.sub(r"'descr': '[^']*'", f"'descr': '{rng.choice(_DESCRIPTIONS)}'", text)
    elif rng.random() < 0.1:
        changed = text.replace("False", rng.choice(("True", "2", "'x'", "")))
    else:
        found = list(re.finditer(r"(?<=[(, ])\d+(?=[,)])", text))
        if not found:
            return data
        match = rng.choice(found)
        changed = text[: match.start()] + rng.choice(_NUMBERS) + text[match.end() :]
    changed = changed.rstrip(" ").ljust(len(text))
    return data[:8] + struct.pack("<H", len(changed) + 1) + changed.encode("latin-1") + data[end:]


SIDECAR_EDITS: tuple[Edit, ...] = (*BYTE_EDITS, *[edit_header] * 12)
NPZ_EDITS: tuple[Edit, ...] = (*BYTE_EDITS, *ZIP_EDITS, *[on_member(edit_claim, ".npy", "edit_claim")] * 12)
