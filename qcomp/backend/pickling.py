# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts in pickles: the files that `save` writes, and the state. Unpickling imports neither torch nor xDSL.

The library travels with its sources: it is loaded where it fits the machine, and built again where it does not.
Unpickled a second time in a process, while the first one is there, its library is shared. Like `qcomp.load`,
unpickling runs native code.
"""

from __future__ import annotations

import hashlib
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from qcomp.backend.artifact import Artifact, load_from, sources_in
from qcomp.backend.folder import TemporaryFolder
from qcomp.backend.manifest import FILE_NAME, Manifest
from qcomp.errors import QcompError
from qcomp.writing import writing

_unpacked: weakref.WeakValueDictionary[tuple[int, str], Artifact] = weakref.WeakValueDictionary()
"""The last artifact unpickled of each manifest, by process: a forked one makes its own."""


def pack(artifact: Artifact) -> tuple[Callable[..., Artifact], tuple[Any, ...]]:
    """What `object.__reduce__` gives. A closed artifact stays closed: no more than its manifest travels."""
    if artifact.closed:
        return unpack_closed, (artifact.manifest.text(),)
    folder = TemporaryFolder()
    with folder.removed_on_error(), writing(folder.path):
        artifact.write_files(folder.path)
        files = {path.name: path.read_bytes() for path in sorted(folder.path.iterdir())}
    state = artifact.library.state() if artifact.library is not None else b""
    return unpack, (files, state, sys.byteorder)


def unpack(files: Mapping[str, bytes], state: bytes, byteorder: str) -> Artifact:
    """The artifact of `files`, which goes on from `state`. Raises QcompError as `qcomp.load` does."""
    if state and byteorder != sys.byteorder:
        text = f"the state of a {byteorder}-endian machine cannot go on here"
        raise QcompError(text, code="artifact", hint="save the artifact and load it there")
    key = os.getpid(), hashlib.sha256(files[FILE_NAME]).hexdigest()
    found = _unpacked.get(key)
    artifact = found.__copy__() if found is not None and not found.closed else _load(files)
    if artifact.library is not None and state:
        artifact.library.set_state(state)
    _unpacked[key] = artifact
    return artifact


def unpack_closed(manifest: str) -> Artifact:
    """An artifact that was closed before it was pickled."""
    return Artifact(_manifest({FILE_NAME: manifest.encode()}, TemporaryFolder()), None, None)


def _load(files: Mapping[str, bytes]) -> Artifact:
    folder = TemporaryFolder()
    manifest = _manifest(files, folder)
    try:
        artifact = load_from(folder.path, folder)
    except QcompError as problem:
        if problem.code != "no-compiler" or manifest.library is not None:
            raise
        artifact = Artifact(manifest, None, sources_in(folder))  # It could not be called before, either.
    folder.hold(files)  # Workers end without a farewell.
    return artifact


def _manifest(files: Mapping[str, bytes], folder: TemporaryFolder) -> Manifest:
    """Write `files` into `folder` and read their manifest."""
    with folder.removed_on_error():
        with writing(folder.path):
            for name, data in files.items():
                (folder.path / name).write_bytes(data)
        return Manifest.read(folder.path)
