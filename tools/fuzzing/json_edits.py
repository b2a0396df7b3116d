# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits of JSON texts that keep them JSON: values, keys, parts moved and repeated, names with harm in them."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

CANARY = "qcomp_fuzz_canary"
"""Name of the file that code in these texts would make."""
_CODE = f"__import__('pathlib').Path('{CANARY}').touch()"
HOSTILE = (
    _CODE, f"Symbol('{_CODE}')", f"eval({_CODE!r})", '*/ int x; /*', 'x"); system("id"); //', "a\\", "??/", "a\nb\r\tc",
    "int", "main", "memcpy", "../../x", "/etc/passwd", "s0", "n" * 10_000, "\u00fc\u202e\U0001f600", "\ud800", "", "\0",
    "%s%n", "linear", "x.y", "\x1b[31m",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 1 << 16, 1 << 31, -(1 << 31), 1 << 40, 1 << 63, 1 << 70, -(1 << 70),
    0.5, -0.0, 1e308, 5e-324, "NaN", "Infinity", float("nan"), float("inf"), "", [], {}, [[]], [{}], [0] * 70,
    {"as_int": -7}, {"as_int": 1 << 40}, {"as_none": True}, {"as_tensor": {"name": "x"}},
    {"as_expr": {"expr_str": "s0"}}, {"as_expr": {"expr_str": "9**9**9**9"}}, {"as_expr": {"expr_str": _CODE}},
    {"as_ints": [1 << 62, 1 << 62]},
    {"as_float": 1e300}, {"as_bool": True}, {"as_sym_int": {"as_name": "s0"}}, {"as_string": "same"},
)  # fmt: skip


def _load(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _places(root: Any, rng: random.Random) -> tuple[Any, Any] | None:
    """A container and a key in it, at a random depth."""
    place: Any = root
    while (_is_object(place) or _is_list(place)) and place:
        key: Any = rng.choice(list(place)) if _is_object(place) else rng.randrange(len(place))
        below: Any = place[key]
        if not (_is_object(below) or _is_list(below)) or not below or rng.random() < 0.08:
            return place, key
        place = below
    return None


def _rename(root: Any, old: str, new: str) -> Any:
    """`root` with a text replaced everywhere, keys included."""
    if isinstance(root, dict):
        return {_rename(key, old, new): _rename(value, old, new) for key, value in root.items()}  # pyright: ignore
    if isinstance(root, list):
        return [_rename(value, old, new) for value in root]  # pyright: ignore[reportUnknownVariableType]
    return new if root == old else root


def _number(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return rng.choice(_VALUES)
    alike = (float(value) if abs(value) < 1e300 else 1e300, str(value), value != 0, [value])  # other kinds of it
    return rng.choice((value + 1, value - 1, -value, value * 2, value * 1000, value / 2, 1 << 40, 1 << 63, *alike))


def edit_json(text: bytes, rng: random.Random) -> bytes:
    """One small change."""
    root = _load(text)
    found = _places(root, rng)
    if found is None:
        return text
    place, key = found
    action = rng.randrange(9)
    if action == 0:
        del place[key]
    elif action in (1, 2):
        place[key] = rng.choice(_VALUES)
    elif action == 3:
        place[key] = _number(place[key], rng)
    elif action == 4 and isinstance(place[key], str):
        root = _rename(root, place[key], rng.choice(HOSTILE))
    elif action == 5 and _is_object(place):
        place[rng.choice((*HOSTILE, "as_tensor", "as_int", "name"))] = place.pop(key)
    elif action == 6 and _is_list(place):
        place[key:key] = copy.deepcopy([place[key]]) * rng.choice((1, 2, 300))
    else:
        other = _places(root, rng)
        if other is not None:
            place[key] = copy.deepcopy(other[0][other[1]])
    return _dump(root)


def nest_json(text: bytes, rng: random.Random) -> bytes:
    """A value stands deep in containers."""
    root = _load(text)
    found = _places(root, rng)
    if found is None:
        return text
    place, key = found
    opening, closing = rng.choice((("[", "]"), ('{"as_tensors":', "}"), ('{"as_graph":', "}")))
    depth = rng.choice((30, 500, 100_000))
    kept = place[key]
    place[key] = "\u2603"
    inside = json.dumps(kept)
    return _dump(root).replace(b'"\\u2603"', (opening * depth + inside + closing * depth).encode("utf-8", "replace"), 1)


def _dump(root: Any) -> bytes:
    try:
        return json.dumps(root).encode()
    except (ValueError, RecursionError):
        return b"{}"


def twice(text: bytes, rng: random.Random) -> bytes:
    """A key stands twice in an object."""
    at = [index for index in range(len(text)) if text[index : index + 1] == b"{"]
    if not at:
        return text
    place = rng.choice(at) + 1
    return text[:place] + b'"name": 1, "name": 2, ' + text[place:]
