# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors of a .pt2 archive: whole storages as raw records, and a table of views into them."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import cast

import numpy as np

from qcomp.errors import QcompError
from qcomp.frontend.archive import RESAVE, Archive, Bytes
from qcomp.frontend.checked_json import as_int, as_list, as_object, as_text, malformed
from qcomp.frontend.pt2_graph import read_dims, read_dtype
from qcomp.frontend.tensor_data import HOLDERS, Array, TensorData

_STRIDED = 7
_EXPANSION = 4
_EXPANSION_FLOOR = 256 << 20


class Payloads:
    """The weights and constants of one model in an archive, by dotted name."""

    def __init__(self, archive: Archive, model: str):
        self.archive = archive
        self._tables = {folder: self._table(f"data/{folder}/{model}", folder) for folder in ("weights", "constants")}
        self._storages: dict[str, Bytes] = {}
        self._readers = Counter(
            f"data/{folder}/{cast(dict[str, object], entry).get('path_name')}"
            for folder, table in self._tables.items()
            for entry in table.values()
            if isinstance(entry, dict)
        )
        self._logical_bytes = 0

    def _table(self, prefix: str, folder: str) -> dict[str, object]:
        if f"{prefix}.pt" in self.archive.records:
            raise self.archive.error(f"holds pickled {folder}, which qcomp never loads", code="pickled", hint=RESAVE)
        config = as_object(self.archive.json(f"{prefix}_{folder}_config.json"), f"{folder} table")
        return as_object(config.get("config"), f"{folder} table")

    def tensor(self, name: str, *, stored_in_weights: bool) -> TensorData:
        """The tensor called `name`; its bytes are read when first asked for. Raises QcompError when it is not there."""
        folders = ("weights", "constants") if stored_in_weights else ("constants", "weights")
        folder = next((folder for folder in folders if name in self._tables[folder]), None)
        if folder is None:
            raise self.archive.error(f"lacks the data of {name[:200]!r}", code="missing-record")
        entry = as_object(self._tables[folder][name], name)
        if entry.get("use_pickle") or entry.get("tensor_meta") is None:
            raise self.archive.error(
                f"holds {name[:200]!r} as a pickled object, which qcomp never loads",
                code="pickled",
                hint="a tensor subclass: run_decompositions({}) or dequantize it before torch.export.save",
            )
        record = f"data/{folder}/{as_text(entry.get('path_name'), 'record name')}"
        return self._view(name, record, as_object(entry["tensor_meta"], "tensor_meta"))

    def _view(self, name: str, record: str, meta: dict[str, object]) -> TensorData:
        dtype = read_dtype(meta.get("dtype"))
        shape, strides = (_static(meta, key) for key in ("sizes", "strides"))
        (offset,) = _static({"storage_offset": [meta.get("storage_offset", {"as_int": 0})]}, "storage_offset")
        if len(shape) != len(strides) or min((*shape, *strides, offset), default=0) < 0:
            raise malformed(f"size, stride or offset of {name[:200]!r}")
        if meta.get("layout") != _STRIDED:
            raise QcompError(f"{name[:200]!r} is a sparse tensor, which is not supported", code="unsupported-layout")
        identity = (record, dtype, shape, strides, offset)
        return TensorData(dtype, shape, lambda: self._read(name, record, dtype, shape, strides, offset), identity)

    def _read(
        self, name: str, record: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Array:
        holder = HOLDERS[dtype]
        if 0 in shape:
            return np.zeros(shape, holder)
        storage = self._storage(record)
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if (last + 1) * holder.itemsize > storage.size:
            raise self.archive.error(
                f"is inconsistent: {name[:200]!r} needs {(last + 1) * holder.itemsize} bytes of {storage.size}"
            )
        self._count(prod(shape) * holder.itemsize, name)
        if dtype == "bool" and storage.max(initial=0) > 1:
            storage = np.minimum(storage, 1)  # numpy's truth values are 0 and 1, and nothing else
        elements = storage[: storage.size // holder.itemsize * holder.itemsize].view(holder)
        view = np.lib.stride_tricks.as_strided(
            elements[offset:], shape, tuple(stride * holder.itemsize for stride in strides), writeable=False
        )
        # A copy of a strided tensor lets go of the storage: only one of the two stays in memory.
        return view if view.flags.c_contiguous else np.array(view, order="C")

    def _storage(self, record: str) -> Bytes:
        """The bytes of a record; kept for others when several tensors lie in it."""
        found = self._storages.get(record)
        if found is None:
            found = self.archive.record(record)
            if self._readers[record] > 1:
                self._storages[record] = found
        return found

    def _count(self, logical_bytes: int, name: str) -> None:
        """Expanded views (stride 0) may claim far more elements than the file holds: keep the sum within reason."""
        self._logical_bytes += logical_bytes
        if self._logical_bytes > _EXPANSION_FLOOR + _EXPANSION * self.archive.size():
            raise self.archive.error(f"expands to too much data at {name[:200]!r}", code="archive-bomb")


def _static(meta: dict[str, object], key: str) -> tuple[int, ...]:
    return tuple(as_int(dim, key) for dim in read_dims(as_list(meta.get(key), key)))
