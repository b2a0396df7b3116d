# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""manifest.json: what a saved artifact is, which files it has, and their digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from qcomp.backend.interface import Interface
from qcomp.dialects.dim import from_plain, to_plain
from qcomp.errors import QcompError
from qcomp.limits import MAX_MANIFEST_BYTES
from qcomp.reading import open_regular, read_bytes

FORMAT_VERSION = 1
FILE_NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """An artifact without its code.

    name: prefix of its files and symbols; target: name of the target; numerics: profile of its integer arithmetic;
    report: see `Artifact.report`; files: SHA-256 by file name; library: file name of the shared library, None when
    only sources were saved; machine: what the library was built for;
    state_bytes: what lives on between calls.
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

    @property
    def sources(self) -> list[str]:
        """The C files that make the library."""
        return [file for file in (f"{self.name}.c", f"{self.name}_weights.c") if file in self.files]

    def describing(self, folder: Path, library: str | None, machine: str | None) -> Manifest:
        """This manifest with the digests of the files in `folder`."""
        files = {path.name: digest(path) for path in sorted(folder.iterdir())}
        return replace(self, files=files, library=library, machine=machine)

    def text(self) -> str:
        """As JSON."""
        own = {"interface": self.interface.to_json(), "arena_bytes": to_plain(self.arena_bytes)}
        data = {"format_version": FORMAT_VERSION, **vars(self), **own}
        return json.dumps(data, indent=1) + "\n"

    @staticmethod
    def read(folder: Path) -> Manifest:
        """The manifest of the artifact in `folder`. Raises QcompError when there is none that this qcomp reads."""
        try:
            text = read_bytes(folder / FILE_NAME, ("MAX_MANIFEST_BYTES", MAX_MANIFEST_BYTES)).decode()
        except UnicodeDecodeError:
            raise QcompError(f"{folder / FILE_NAME} is damaged", code="artifact") from None
        except OSError:
            raise QcompError(f"{folder} is no saved artifact: it has no {FILE_NAME}", code="artifact") from None
        try:
            data = cast(dict[str, Any], json.loads(text))
            version = data.pop("format_version")
            if version > FORMAT_VERSION:
                raise QcompError(
                    f"{folder} has format version {version}, this qcomp reads up to {FORMAT_VERSION}",
                    code="format-version", hint="use a newer qcomp",
                )  # fmt: skip
            interface: Any = Interface.from_json(data["interface"])
            arena: Any = from_plain(data["arena_bytes"])
            manifest = Manifest(**{**data, "interface": interface, "arena_bytes": arena})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise QcompError(f"{folder / FILE_NAME} is damaged", code="artifact") from None
        _check_names(folder, manifest)
        return manifest


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_digest(text: str) -> str:
    """The SHA-256 of a text file."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check_names(folder: Path, manifest: Manifest) -> None:
    """A manifest names files of its own folder only."""
    names = [*manifest.files, *([manifest.library] if manifest.library else [])]
    for name in names:
        if Path(name).name != name or name in ("", ".", "..") or name not in manifest.files:
            raise QcompError(f"{folder / FILE_NAME} is damaged: it names the file {name!r}", code="artifact")
    if not manifest.name.isidentifier():
        raise QcompError(f"{folder / FILE_NAME} is damaged: {manifest.name!r} is no name", code="artifact")
