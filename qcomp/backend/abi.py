# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check that manifest.json describes the library beside it, before a byte of memory is given to its code.

NAME.h defines NAME_ABI: bytes of arena and state, digests of the interface and of an arena that depends on sizes. It
costs a program that includes it nothing. The library alone has it as a symbol, NAME_abi, from a source of its own that
is not saved. Files of before NAME_ABI are held against the text of NAME.h. All this is against damage, not attackers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qcomp.backend.header import HeaderPort, header_ports, header_symbols, macro
from qcomp.dialects.dim import is_symbolic, substitute, symbol
from qcomp.errors import QcompError
from qcomp.writing import writing

if TYPE_CHECKING:
    from qcomp.backend.interface import Port
    from qcomp.backend.manifest import Manifest


def canonical_digest(data: object) -> str:
    """The SHA-256 of plain data, however its JSON is laid out."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def abi_text(arena_bytes: object, state_bytes: int, interface: Mapping[str, Any]) -> str:
    """The value of NAME_ABI. arena_bytes, interface: as in manifest.json."""
    arena = arena_bytes if isinstance(arena_bytes, int) else canonical_digest(arena_bytes)
    return f"arena_bytes={arena} state_bytes={state_bytes} interface={canonical_digest(interface)}"


def abi_macro(name: str) -> str:
    """What NAME.h calls the text."""
    return f"{name.upper()}_ABI"


def abi_symbol(name: str) -> str:
    """What the library calls the text."""
    return f"{name}_abi"


def write_abi_source(folder: Path, name: str) -> list[str]:
    """Write the source that makes the text of NAME.h in `folder` a symbol; none where there is no such text."""
    header = (folder / f"{name}.h").read_text(encoding="utf-8")
    if f"#define {abi_macro(name)} " not in header:
        return []
    text = f'#include "{name}.h"\n\nextern const char {abi_symbol(name)}[];\n'
    text += f"const char {abi_symbol(name)}[] = {abi_macro(name)};\n"
    with writing(folder):
        (folder / f"{name}_abi.c").write_text(text, encoding="utf-8")
    return [f"{name}_abi.c"]


def check_abi(manifest: Manifest, exported: str | None, library: Path) -> None:
    """Raise QcompError unless `manifest` describes `library`, which exports that text (None: no text).

    Without the text, NAME.h beside it has to be the one that the manifest knows, and to agree.
    """
    if exported is None:
        _check_header(manifest, library.with_name(f"{manifest.name}.h"))
        return
    wanted, found = _facts(manifest.abi()), _facts(exported)
    for key in dict.fromkeys((*wanted, *found)):
        if wanted.get(key) != found.get(key):
            numbers = all(facts.get(key, "").isdigit() for facts in (wanted, found))
            detail = f"{key} is {wanted[key]}, {library.name} needs {found[key]}"
            raise damaged(detail if numbers else f"{key} is not that of {library.name}")


def damaged(detail: str) -> QcompError:
    """The error that manifest.json is damaged."""
    return QcompError(f"manifest.json is damaged: {detail}", code="artifact", hint="save the artifact again")


def _facts(text: str) -> dict[str, str]:
    return {key: value for key, _, value in (part.partition("=") for part in text.split())}


def _check_header(manifest: Manifest, path: Path) -> None:
    """Compare what NAME.h says in text. The arena of symbolic sizes is compared at each call, see `Library`."""
    from qcomp.backend.manifest import digest

    if not path.is_file() or digest(path) != manifest.files.get(path.name):
        raise QcompError(f"{path} is missing or was changed", code="artifact", hint="save the artifact again")
    header = path.read_text(encoding="utf-8", errors="replace")
    name = manifest.name.upper()
    numbers = {"state_bytes": (macro(header, f"{name}_STATE_SIZE"), manifest.state_bytes)}
    if not is_symbolic(manifest.arena_bytes):
        numbers["arena_bytes"] = (macro(header, f"{name}_ARENA_SIZE"), max(manifest.arena_bytes, 1))
    elif f"{manifest.name}_arena_size(" not in header:
        raise damaged(f"arena_bytes is not that of {path.name}")
    for key, (expected, size) in numbers.items():
        if size != expected:
            raise damaged(f"{key} is {size}, {path.name} says {expected}")
    symbols, c_symbols = manifest.interface.symbols, header_symbols(header)
    if [(item.low, item.high) for item in symbols] != [(item.low, item.high) for item in c_symbols]:
        raise damaged(f"its symbols are {'; '.join(map(str, symbols))}, {path.name} says something else")
    names = {ours.name: symbol(theirs.name) for ours, theirs in zip(symbols, c_symbols, strict=True)}
    ports = header_ports(header)
    for role, found in (("input", manifest.interface.inputs), ("output", manifest.interface.outputs)):
        _check_ports(role, found, [port for port in ports if port.role == role], names)


def _check_ports(
    role: str, ports: Sequence[Port], expected: Sequence[HeaderPort], names: Mapping[str, int]
) -> None:  # fmt: skip
    if len(ports) != len(expected):
        raise damaged(f"it names {len(ports)} {role}s, the header {len(expected)}")
    for port, wanted in zip(ports, expected, strict=True):
        sizes = [substitute(size, names) for size in port.shape]
        if _c_type(port.dtype) != wanted.c_type or (wanted.sizes is not None and sizes != wanted.sizes):
            kind = f"{port.dtype}{list(port.shape)}"
            raise damaged(f"{role} {port.name} is {kind}, the header says {wanted.c_type}[{wanted.text}]")


def _c_type(dtype: str) -> str:
    """The C type that holds elements of a numpy type."""
    kind = np.dtype(dtype)
    floats = {"float32": "float", "float64": "double"}
    return floats.get(kind.name, f"int{8 * kind.itemsize}_t")
