# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""manifest.json: what a saved artifact is, which files it has, and their digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from qcomp.backend.abi import abi_text, canonical_digest
from qcomp.backend.folder import was_interrupted
from qcomp.backend.interface import Interface
from qcomp.backend.report import Quantization
from qcomp.dialects.dim import is_symbolic, symbols_of
from qcomp.dialects.dim_json import from_plain, to_plain
from qcomp.errors import QcompError
from qcomp.limits import MAX_MANIFEST_BYTES
from qcomp.reading import open_regular, read_bytes

FORMAT_VERSION = 2
"""Since 2 the field `digest` holds the digest of all others, every later version keeps it so; weights need not be C.
"""
FILE_NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """An artifact without its code.

    name: prefix of its files and symbols; target: name of the target; numerics: profile of its integer arithmetic;
    report: see `Artifact.report`; files: SHA-256 by file name; library: file name of the shared library, None when
    only sources were saved; machine: what the library was built for;
    state_bytes: what lives on between calls; plain: interface and arena_bytes as the file has them that was read, for
    their digests.
    """

    name: str
    target: str
    numerics: str
    opt_level: int
    interface: Interface
    arena_bytes: int
    report: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    library: str | None = None
    machine: str | None = None
    state_bytes: int = 0
    plain: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    @property
    def sources(self) -> list[str]:
        """The files that are compiled to the library."""
        ends = (".c", "_weights.c", "_weights.S")
        return [file for end in ends if (file := f"{self.name}{end}") in self.files]

    def describing(self, folder: Path, library: str | None, machine: str | None) -> Manifest:
        """This manifest with the digests of the files in `folder`."""
        files = {path.name: digest(path) for path in sorted(folder.iterdir())}
        return replace(self, files=files, library=library, machine=machine)

    def abi(self) -> str:
        """What the library has to export, see `qcomp.backend.abi`."""
        own = self._own()
        return abi_text(own["arena_bytes"], self.state_bytes, own["interface"])

    def text(self) -> str:
        """As JSON."""
        data = {"format_version": FORMAT_VERSION, **vars(self), **self._own()}
        del data["plain"]
        return json.dumps({**data, "digest": canonical_digest(data)}, indent=1) + "\n"

    def _own(self) -> Mapping[str, Any]:
        return self.plain or {"interface": self.interface.to_json(), "arena_bytes": to_plain(self.arena_bytes)}

    @staticmethod
    def read(folder: Path) -> Manifest:
        """The manifest of the artifact in `folder`. Raises QcompError when there is none that this qcomp reads."""
        try:
            text = read_bytes(folder / FILE_NAME, ("MAX_MANIFEST_BYTES", MAX_MANIFEST_BYTES)).decode()
        except UnicodeDecodeError:
            raise _damaged(folder) from None
        except OSError:
            raise _no_artifact(folder) from None
        try:
            data = cast(dict[str, Any], json.loads(text))
            return _from_json(folder, data)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
            raise _damaged(folder) from None


def _from_json(folder: Path, data: dict[str, Any]) -> Manifest:
    """Raises QcompError, or what Python raises for data of the wrong kinds."""
    version = data["format_version"]
    if type(version) is not int or version < 1 or (version > 1 and "digest" not in data):
        raise _damaged(folder)
    found = data.pop("digest", None)
    if found is not None and found != canonical_digest(data):
        raise _damaged(folder, "its digest is another")
    if version > FORMAT_VERSION:
        raise QcompError(
            f"{folder} has format version {version}, this qcomp reads up to {FORMAT_VERSION}",
            code="format-version", hint="use a newer qcomp",
        )  # fmt: skip
    del data["format_version"]
    plain = {name: data[name] for name in ("interface", "arena_bytes")}
    try:
        arena: Any = from_plain(plain["arena_bytes"])
        interface: Any = Interface.from_json(plain["interface"])
    except QcompError as problem:
        raise _damaged(folder, problem.message) from None
    names = {item.name for item in fields(Manifest)} - {"plain"}
    if data.keys() - names or (version > 1 and names - data.keys()):
        raise _damaged(folder)
    manifest = Manifest(**{**data, "interface": interface, "arena_bytes": arena}, plain=plain)
    _check_kinds(folder, manifest)
    _check_names(folder, manifest)
    return manifest


def _damaged(folder: Path, detail: str = "") -> QcompError:
    text = f"{folder / FILE_NAME} is damaged" + (f": {detail}" if detail else "")
    return QcompError(text, code="artifact", hint="save the artifact again")


def _no_artifact(folder: Path) -> QcompError:
    if was_interrupted(folder):
        text, hint = "an artifact was being saved there and that did not end", "save it again"
        return QcompError(f"{folder} is no saved artifact: {text}", code="artifact", hint=hint)
    hint = None if folder.is_dir() else "there is no such folder"
    if folder.is_file():
        hint = "an artifact is a folder, which `qcomp compile -o` makes of a program"
    return QcompError(f"{folder} is no saved artifact: it has no {FILE_NAME}", code="artifact", hint=hint)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_digest(text: str) -> str:
    """The SHA-256 of a text file."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check_kinds(folder: Path, manifest: Manifest) -> None:
    """Files of before the digest say no more than this about most fields."""
    fields: Any = vars(manifest)
    files, report = fields["files"], fields["report"]
    texts = [fields[name] for name in ("name", "target", "numerics")] + [*files, *files.values()]
    texts += [fields[name] for name in ("library", "machine") if fields[name] is not None]
    numbers = [fields["state_bytes"]] + ([] if is_symbolic(manifest.arena_bytes) else [manifest.arena_bytes])
    good = (
        all(isinstance(text, str) for text in texts)
        and all(type(number) is int and number >= 0 for number in numbers)
        and type(fields["opt_level"]) is int
        and fields["opt_level"] in range(4)
        and isinstance(files, dict)
        and isinstance(report, dict)
    )
    if not good:
        raise _damaged(folder)
    sizes = [manifest.arena_bytes, *_check_report(cast("dict[str, Any]", report))]
    if set(symbols_of(sizes)) - {symbol.name for symbol in manifest.interface.symbols}:
        raise _damaged(folder, "it names sizes that are no symbols")


def _check_report(report: Mapping[str, Any]) -> list[int]:
    """Return the sizes in a report. Raises TypeError, ValueError or KeyError for one that cannot be shown."""
    sizes = [from_plain(report[name]) for name in ("arena_bytes", "arena_bound_bytes")]
    texts: list[object] = [report["target"], *report["warnings"]]
    for row in report["ops"]:
        sizes.append(from_plain(row["macs"]))
        texts += [row["name"], row["op"], row["compute"], row.get("memory", "")]
        texts += [row[name] for name in ("loc", "reason") if row.get(name) is not None]
    numbers: list[object] = [report["macs_integer_share"], report["weight_bytes"], report.get("c_bytes", 0)]
    if not all(isinstance(text, str) for text in texts) or any(type(number) not in (int, float) for number in numbers):
        raise TypeError("a report has texts and numbers")
    if report.get("quantization", "none") not in get_args(Quantization):
        raise ValueError("a program is not quantized so")
    return sizes


def _check_names(folder: Path, manifest: Manifest) -> None:
    """A manifest names files of its own folder only."""
    names = [*manifest.files, *([manifest.library] if manifest.library else [])]
    for name in names:
        if Path(name).name != name or name in ("", ".", "..") or name not in manifest.files:
            raise _damaged(folder, f"it names the file {name!r}")
    if not manifest.name.isidentifier():
        raise _damaged(folder, f"{manifest.name!r} is no name")
