# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested input and output structures (torch's pytrees), without torch.

torch writes them as JSON, ``[1, {"type": "builtins.tuple", "context": "null", "children_spec": [...]}]``; modules keep
them as the shorter text of `Tree.dump`, so that a caller gets back the structure the Python model returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from qcomp.errors import QcompError

MAX_DEPTH = 64
"""Deepest accepted nesting of a structure."""

Literal = bool | int | float | str | None
Json = Literal | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Tree:
    """A node of a structure.

    kind: ``leaf``, ``literal`` (a leaf with a fixed Python value), ``tuple``, ``list``, ``dict``, or the name of a
    registered type, which unflattens to a dict when it has keys and to a tuple when not.
    """

    kind: str = "leaf"
    children: tuple[Tree, ...] = ()
    keys: tuple[str | int, ...] = ()
    value: Literal = None

    @property
    def leaf(self) -> bool:
        """Whether a tensor (or number) stands here."""
        return self.kind == "leaf"

    def count(self) -> int:
        """The number of leaves."""
        return 1 if self.leaf else sum(child.count() for child in self.children)

    def paths(self, prefix: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
        """The path of every leaf, in order."""
        if self.leaf:
            yield prefix
        labels = self.keys or range(len(self.children))
        for label, child in zip(labels, self.children, strict=True):
            yield from child.paths((*prefix, label))

    def fill(self, leaves: Sequence[Tree]) -> Tree:
        """The same structure with its leaves replaced, in order."""
        rest = iter(leaves)

        def visit(tree: Tree) -> Tree:
            return next(rest) if tree.leaf else replace(tree, children=tuple(visit(child) for child in tree.children))

        return visit(self)

    def unflatten(self, leaves: Sequence[object]) -> object:
        """The Python structure with `leaves` in place. Raises QcompError when their number differs."""
        if len(leaves) != self.count():
            raise QcompError(f"structure has {self.count()} leaves, got {len(leaves)}", code="structure")
        rest = iter(leaves)

        def visit(tree: Tree) -> object:
            if tree.leaf:
                return next(rest)
            if tree.kind == "literal":
                return tree.value
            children = [visit(child) for child in tree.children]
            if tree.keys:
                return dict(zip(tree.keys, children, strict=True))
            if tree.kind == "dict":
                return {}
            return children if tree.kind == "list" else tuple(children)

        return visit(self)

    def flatten(self, value: object, place: str = "") -> list[object]:
        """The leaves of `value`, which must have this structure. Raises QcompError naming the place that differs.

        place: what the message calls `value`.
        """
        leaves: list[object] = []
        self._flatten(value, leaves, place)
        return leaves

    def _flatten(self, value: object, leaves: list[object], place: str) -> None:
        if self.leaf:
            leaves.append(value)
            return
        if self.kind == "literal":
            if value != self.value:
                raise QcompError(f"{place or 'input'} was exported as {self.value!r}, got {value!r}", code="structure")
            return
        parts = _parts(self, value)
        if parts is None:
            raise QcompError(f"{place or 'input'} should be a {self.kind} of {len(self.children)}", code="structure")
        for label, child, part in zip(self.keys or range(len(parts)), self.children, parts, strict=True):
            child._flatten(part, leaves, f"{place}.{label}" if place else str(label))

    def dump(self) -> str:
        """The structure as compact JSON: ``["tuple", [["leaf"], ["dict", [["leaf"]], ["mask"]]]]``."""
        return json.dumps(_encode(self), separators=(",", ":"))

    @staticmethod
    def load(text: str) -> Tree:
        """Read what `dump` wrote. Raises QcompError on anything else."""
        return _decode(_json(text), 0)


def _parts(tree: Tree, value: object) -> list[object] | None:
    if tree.keys:
        if isinstance(value, dict):
            found = cast(dict[object, object], value)
            return [found[key] for key in tree.keys] if set(found) == set(tree.keys) else None
        if not all(isinstance(key, str) and hasattr(value, key) for key in tree.keys):
            return None
        return [getattr(value, str(key)) for key in tree.keys]
    if tree.kind == "dict":
        return [] if value == {} else None
    if isinstance(value, tuple | list) and len(cast(Sequence[object], value)) == len(tree.children):
        return list(cast(Sequence[object], value))
    return None


def _json(text: str) -> Json:
    try:
        return cast(Json, json.loads(text))
    except (ValueError, RecursionError):
        raise _malformed() from None


def _malformed() -> QcompError:
    return QcompError("malformed structure specification", code="malformed-structure")


def _encode(tree: Tree) -> list[object]:
    if tree.leaf:
        return ["leaf"]
    if tree.kind == "literal":
        return ["literal", tree.value]
    children = [_encode(child) for child in tree.children]
    return [tree.kind, children, list(tree.keys)] if tree.keys else [tree.kind, children]


def _decode(value: Json, depth: int) -> Tree:
    match value:
        case ["leaf"]:
            return Tree()
        case ["literal", bool() | int() | float() | str() | None as literal]:
            return Tree("literal", value=literal)
        case [str() as kind, [*children]] if depth < MAX_DEPTH:
            return Tree(kind, tuple(_decode(child, depth + 1) for child in children))
        case [str() as kind, [*children], [*keys]] if depth < MAX_DEPTH and len(children) == len(keys):
            found = tuple(_decode(child, depth + 1) for child in children)
            return Tree(kind, found, tuple(_key(key) for key in keys))
        case _:
            raise _malformed()


def _key(value: Json) -> str | int:
    if isinstance(value, str | int):
        return value
    raise _malformed()


def parse_treespec(text: str, fields: Mapping[str, Sequence[str]] | None = None) -> Tree:
    """The structure of torch's own JSON; `fields` gives the field names of named tuples.

    Raises QcompError when it is not such a text.
    """
    match _json(text):
        case [1, dict() as root]:
            return _from_torch(root, fields or {}, 0)
        case [int() as version, *_] if version != 1:
            raise QcompError(f"structure specification has version {version}, qcomp reads 1", code="newer-schema")
        case _:
            raise _malformed()


SEQUENCES = {"builtins.tuple": "tuple", "builtins.list": "list", "collections.deque": "list"}
MAPPINGS = {"builtins.dict": "dict", "collections.OrderedDict": "dict", "collections.defaultdict": "dict"}
NAMED_TUPLE = "collections.namedtuple"


def _from_torch(value: Json, fields: Mapping[str, Sequence[str]], depth: int) -> Tree:
    if depth > MAX_DEPTH:
        raise _malformed()
    match value:
        case {"type": None, "children_spec": []}:
            return Tree()
        case {"type": str() as kind, "context": context, "children_spec": [*children]}:
            found = tuple(_from_torch(child, fields, depth + 1) for child in children)
            return make_tree(kind, context, found, fields)
        case _:
            raise _malformed()


def make_tree(kind: str, context: object, children: tuple[Tree, ...], fields: Mapping[str, Sequence[str]]) -> Tree:
    """The node for torch's type name `kind` with its serialized `context`."""
    if kind in ("leaf", "literal", "tuple", "list", "dict"):
        raise _malformed()  # as a type's name it would read back as something else
    if kind in SEQUENCES:
        return Tree(SEQUENCES[kind], children)
    if kind == NAMED_TUPLE:
        keys: tuple[str | int, ...] = tuple(fields.get(str(context), ()))
        return Tree(str(context), children, keys if len(keys) == len(children) else ())
    keys = _context_keys(context, len(children))
    if kind in MAPPINGS and (len(keys) != len(children) or len(set(keys)) != len(keys)):
        raise _malformed()
    return Tree(MAPPINGS.get(kind, kind), children, keys)


def _context_keys(context: object, count: int) -> tuple[str | int, ...]:
    """The keys in the context of a dict or dataclass; empty when there are none."""
    try:
        found = cast(object, json.loads(context)) if isinstance(context, str) else context
    except (ValueError, RecursionError):
        return ()
    if isinstance(found, dict):
        found = cast(dict[str, object], found).get("dict_context")
    if not isinstance(found, list):
        return ()
    keys = cast(list[object], found)
    if keys and isinstance(keys[0], list):
        keys = cast(list[object], keys[0])
    if len(keys) == count and all(isinstance(key, str | int) for key in keys):
        return tuple(cast(list[str | int], keys))
    return ()
