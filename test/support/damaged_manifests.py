# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Load artifacts whose manifest.json is damaged in every field in turn, and call those that load.

Run as a program in a folder of saved artifacts, each with a file of inputs beside it; prints a line of JSON for every
damage. A crash of this process is a finding.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import qcomp
from qcomp.backend.abi import canonical_digest

Steps = tuple[Any, ...]


def places(data: Any, steps: Steps = ()) -> Iterator[Steps]:
    """The path of every value in `data`; of several ops of a report the last."""
    if steps:
        yield steps
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, child in children:
        if steps != ("report", "ops") or key == len(data) - 1:
            yield from places(child, (*steps, key))


def other_values(value: Any) -> list[Any]:
    """Values of the same kind, and of another one."""
    match value:
        case bool():
            return [not value, "x"]
        case int():
            return [value + 1, value - 1, value // 2, 0, 2**60, -(2**70), float(value), str(value), None, True]
        case float():
            return [value + 0.5, None]
        case str():
            return [value + "x", value[1:], "", 7, None]
        case None:
            return ["x", 7]
        case list():
            return [value[1:], [*value, *value[:1]], {}, 7, None, "x"]
        case _:
            return [{}, [], 7, "x"]


def damages(whole: dict[str, Any]) -> Iterator[tuple[Steps, str, dict[str, Any]]]:
    """Every place, what was done to it, and the damaged manifest."""
    for steps in places(whole):
        for change in [None, *other_values(get(whole, steps))]:
            data = json.loads(json.dumps(whole))
            holder = get(data, steps[:-1])
            if change is None and (holder[steps[-1]] is None or not data):
                continue
            if change is None:
                del holder[steps[-1]]
                yield steps, "deleted", data
            else:
                holder[steps[-1]] = change
                if json.dumps(data) != json.dumps(whole):
                    yield steps, f"now {change!r}", data


def get(data: Any, steps: Steps) -> Any:
    for step in steps:
        data = data[step]
    return data


def outcome(folder: Path, inputs: list[Any], expected: list[Any]) -> str:
    """What becomes of the artifact in `folder`."""
    try:
        artifact = qcomp.load(folder)
        str(artifact)
        found = artifact(*inputs)
    except qcomp.QcompError as error:
        return error.message
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    found = found if isinstance(found, tuple) else (found,)
    same = len(found) == len(expected) and all(map(np.array_equal, found, expected))
    return "right" if same else "wrong"


def main(name: str) -> None:
    """Damage `name`: as it is, with the digest put right, and where there is none."""
    os.environ["CC"] = "no-such-compiler"
    folder = Path(name)
    with np.load(f"{name}.npz") as file:
        inputs = [file[key] for key in file.files]
    result = qcomp.load(folder)(*inputs)
    expected = list(result) if isinstance(result, tuple) else [result]
    path = folder / "manifest.json"
    whole = json.loads(path.read_text())
    kinds = ("plain", "resealed") if "digest" in whole else ("old",)
    for kind in kinds:
        for steps, change, data in damages(whole):
            if kind == "resealed":
                data.pop("digest", None)
                data["digest"] = canonical_digest(data)
            path.write_text(json.dumps(data))
            print(json.dumps([kind, steps, change, outcome(folder, inputs, expected)]), flush=True)
    path.write_text(json.dumps(whole))


if __name__ == "__main__":
    for each in sys.argv[1:]:
        main(each)
