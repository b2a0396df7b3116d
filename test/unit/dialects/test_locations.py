# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Locations: made, described, printed and read back whatever their names hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, LocationAttr, ModuleOp, NoneAttr, UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp

import qcomp
from qcomp.dialects.location import describe, location, module_path, source_line
from qcomp.dialects.text import parse, parse_text, print_text

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20) | st.sampled_from(
    [
        "layer1.0.conv1",
        'a "quoted" name',
        "back\\slash",
        "two\nlines",
        "tab\t",
        "ünïcode 漢字",
        "%s",
        "loc(",
        "\x00",
        "*/ //",
    ]
)
LINES = st.integers(0, 10**6)


def locations() -> st.SearchStrategy[LocationAttr]:
    plain = st.builds(location, st.none() | NAMES, NAMES, LINES, LINES) | st.builds(location, NAMES)
    return plain | st.lists(plain, min_size=1, max_size=3).map(lambda parts: FusedLoc(ArrayAttr(parts), NoneAttr()))


def program(loc: LocationAttr) -> ModuleOp:
    done = ReturnOp()
    function = FuncOp("f", ((), ()))
    function.body.block.add_op(done)
    done.location = loc
    return ModuleOp([function])


def loc_of(module: ModuleOp) -> LocationAttr:
    return next(op for op in module.walk() if isinstance(op, ReturnOp)).location


@settings(max_examples=100)
@given(locations())
def test_locations_read_back(loc: LocationAttr):
    for generic in (True, False):
        text = print_text(program(loc), generic=generic)
        assert loc_of(parse_text(text, qcomp.context())) == loc


def test_an_unknown_location_stays_unknown():
    assert isinstance(loc_of(parse_text(print_text(program(UnknownLoc())), qcomp.context())), UnknownLoc)


def test_an_op_without_a_location_stands_where_it_is_written():
    found = loc_of(parse("func.func @f() {\n   func.return\n}\n"))
    assert isinstance(found, FileLineColLoc)
    assert (found.filename.data, found.line.data, found.column.data) == ("<text>", 2, 4)


@pytest.mark.parametrize(
    ("loc", "path", "line", "text"),
    [
        (location("net.conv", "model.py", 12), "net.conv", "model.py:12", "net.conv (model.py:12)"),
        (location("net.conv"), "net.conv", None, "net.conv"),
        (location(None, "model.py", 12, 3), None, "model.py:12", "model.py:12"),
        (location(None), None, None, None),
        (
            FusedLoc(ArrayAttr([location("a", "m.py", 1), location("b", "n.py", 2)]), NoneAttr()),
            "a+b",
            "m.py:1",
            "a+b (m.py:1)",
        ),
        (FusedLoc(ArrayAttr([UnknownLoc(), location(None, "n.py", 2)]), NoneAttr()), None, "n.py:2", "n.py:2"),
    ],
)
def test_what_a_location_says(loc: LocationAttr, path: str | None, line: str | None, text: str | None):
    assert (module_path(loc), source_line(loc), describe(loc)) == (path, line, text)
