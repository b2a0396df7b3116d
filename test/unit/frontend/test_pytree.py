# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested structures: torch's own specification, our text, flattening and unflattening."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import pytest
from torch.utils import _pytree as pytree

from qcomp.errors import QcompError
from qcomp.frontend.fx_values import convert_tree
from qcomp.frontend.pytree import Tree, parse_treespec


class Pair(NamedTuple):
    left: Any
    right: Any


pytree._register_namedtuple(Pair, serialized_type_name="test.Pair")  # pyright: ignore[reportPrivateUsage]

VALUES = [
    1,
    (),
    (1,),
    [1, (2, [3])],
    {"b": 1, "a": {"x": (2, 3)}},
    {1: 4, 2: [5]},
    {},
    None,
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(list, {"a": 1, "b": [2]}),
    (Pair(1, [2]), 3),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_as_torch(value: object) -> None:
    leaves, spec = pytree.tree_flatten(value)
    tree = parse_treespec(pytree.treespec_dumps(spec), {"test.Pair": ["left", "right"]})
    assert tree == convert_tree(spec)
    assert tree.count() == len(leaves)
    assert list(tree.flatten(value)) == leaves
    assert Tree.load(tree.dump()) == tree
    rebuilt = tree.unflatten(leaves)
    expected = ({"left": 1, "right": [2]}, 3) if isinstance(value, tuple) and 3 in value else value
    assert rebuilt == expected


def test_paths_and_literals() -> None:
    tree = Tree("dict", (Tree(), Tree("list", (Tree(), Tree("literal", value=None)))), ("a", "b"))
    assert list(tree.paths()) == [("a",), ("b", 0)]
    assert Tree.load(tree.dump()) == tree
    assert tree.unflatten([5, 6]) == {"a": 5, "b": [6, None]}
    assert tree.flatten({"a": 5, "b": [6, None]}) == [5, 6]


def test_wrong_structure_is_named() -> None:
    tree = Tree("dict", (Tree(), Tree("list", (Tree(), Tree()))), ("a", "b"))
    with pytest.raises(QcompError, match=r"^b should be a list of 2"):
        tree.flatten({"a": 1, "b": [2]})
    with pytest.raises(QcompError, match="input should be a dict"):
        tree.flatten({"a": 1})
    with pytest.raises(QcompError, match="3 leaves, got 2"):
        tree.unflatten([1, 2])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "[1]", "[1, 2]", "[2, {}]", "{", '[1, {"type": 3, "context": null, "children_spec": []}]', "[" * 100000],
)
def test_malformed(text: str) -> None:
    with pytest.raises(QcompError):
        parse_treespec(text)
    with pytest.raises(QcompError):
        Tree.load(text)


def test_too_deep() -> None:
    text = '{"type": null, "context": null, "children_spec": []}'
    for _ in range(100):
        text = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{text}]}}'
    with pytest.raises(QcompError):
        parse_treespec(f"[1, {text}]")
