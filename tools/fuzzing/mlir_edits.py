# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits of IR text: characters, words, lines, and brackets."""

from __future__ import annotations

import random
import re

from tools.fuzzing.edits import BYTE_EDITS, Edit

WORDS = re.compile(r'[A-Za-z_#!@][\w.$]*|%[\w.]+|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|"(?:[^"\\\n]|\\.)*"|->|\s+|.', re.DOTALL)
_SURPRISES = (
    "", "0", "-1", "1", "7", "255", "-129", "4294967296", "18446744073709551616", "9" * 400, "1.5", "-0.0", "1e999",
    "nan", "0x7FC00000", "?", '"', "[", "]", "{", "}", "(", ")", "<", ">", ",", ":", "dense<", "dense<1>",
    "!quant.uniform<", "i8:f32, 0.1:3", "loc(", "x", "f128", "f64", "f16", "bf16", "i1", "i4", "i64", "ui8", "index",
    "tensor<0x3xf32>", "tensor<?xf32>", "tensor<*xf32>", "tensor<99999999999x9999999xf32>", "memref<2xi8>",
    "0x3FF8000000000000", "-0x3F800000", "1.0e39", "1.0e-320", "3.0e38", "2.0",
    "tensor<65536x65536xf32>", 'dense<"0x0000803F">', 'dense<"0xFF">', "#nn.symbol<b, 0, 99999999999999999999>",
    "vector<4xf32>", "array<i64: 0>", "array<i64: -5, 900000000000>", "affine_map<(d0) -> (d0)>", "%x", "%0", "@main",
    '"*/ int x; /*"', '"\\5c\\0a??/"', "func.return",
    "func.call @main()", "true", "unit", "#nn.data<dense<1> : tensor<i8>>",
)  # fmt: skip
_KINDS = (re.compile(r"\b\d+(?=x)"), re.compile(r"\b(?:f32|i8|i32|f64|i64|i1|bf16|f16|ui8|index)\b"),
          re.compile(r"\b(?:nn|loop|arith|quant|math)\.\w+"))  # fmt: skip
_REPLACEMENTS: dict[str, tuple[str, ...]] = {
    _KINDS[0].pattern: (
        "0", "1", "2", "3", "7", "16", "33", "?", "1000000", "65536", "4294967296", "1099511627776",
        "18446744073709551616",
    ),
    _KINDS[1].pattern: ("f32", "f64", "i8", "i32", "i64", "i1", "f16", "bf16", "ui8", "ui32", "i4"),
    _KINDS[2].pattern: ("nn.relu", "nn.sigmoid", "nn.add", "nn.softmax", "nn.reshape", "arith.muli"),
}
_BRACKETS = (("[", "]"), ("(", ")"), ("{", "}"), ("<", ">"), ("tuple<", ">"), ("fused[", "]"))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def edit_words(data: bytes, rng: random.Random) -> bytes:
    """Words replaced by surprises or by other words of the text, exchanged, repeated."""
    words = WORDS.findall(_text(data))
    for _ in range(rng.choice((1, 1, 2))):
        if not words:
            return data
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        action = rng.randrange(4)
        if action == 0:
            words[at] = rng.choice(_SURPRISES)
        elif action == 1:
            words[at] = words[other]
        elif action == 2:
            words[at], words[other] = words[other], words[at]
        else:
            words[at] *= rng.choice((2, 3, 500))
    return "".join(words).encode()


def edit_numbers(data: bytes, rng: random.Random) -> bytes:
    """A number is another: sizes, scales, attributes."""
    text = _text(data)
    found = list(re.finditer(r"(?<![\w%@.])-?\d+", text))
    if not found:
        return data
    match = rng.choice(found)
    value = int(match[0][:20])
    new = rng.choice((value + 1, value - 1, -value, 0, value * 2, 1 << 31, 1 << 32, 1 << 62, 1 << 63, 10**12, 10**20))
    spelled = rng.choice((str(new), str(new), str(new), hex(new), f"{new}.0", f"{new}.0e39"))
    return (text[: match.start()] + spelled + text[match.end() :]).encode()


def edit_everywhere(data: bytes, rng: random.Random) -> bytes:
    """A dimension, an element type or an op's name is another in all of its places: what it means often stays valid."""
    text = _text(data)
    kind = rng.choice(_KINDS)
    found = sorted(set(kind.findall(text)))
    if not found:
        return data
    old = rng.choice(found)
    new = rng.choice((*found, *_REPLACEMENTS[kind.pattern]))
    return re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", lambda _: new, text).encode()


def edit_value(data: bytes, rng: random.Random) -> bytes:
    """A number of an attribute or constant is another of the same size."""
    text = _text(data)
    found = list(re.finditer(r"(?<=[:\[,(=<] )-?\d+\.?\d*(?![x\w])", text))
    if not found:
        return data
    match = rng.choice(found)
    new = rng.choice(("0", "1", "2", "3", "-1", "5", "127", "0.5", "1.0", "-3.0", "1e30", "1.0e39", "1.0e-320",
                      "0x7F", "0x3FF0000000000000", match[0] + "0"))  # fmt: skip
    return (text[: match.start()] + new + text[match.end() :]).encode()


def edit_lines(data: bytes, rng: random.Random) -> bytes:
    """Lines missing, repeated, exchanged."""
    lines = _text(data).splitlines(keepends=True)
    if not lines:
        return data
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(4)
    if action == 0:
        del lines[at]
    elif action == 1:
        lines.insert(other, lines[at])
    elif action == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines[at] *= rng.choice((2, 40))
    return "".join(lines).encode()


def nest_brackets(data: bytes, rng: random.Random) -> bytes:
    """A word stands deep in brackets."""
    words = WORDS.findall(_text(data))
    if not words:
        return data
    opening, closing = rng.choice(_BRACKETS)
    at, depth = rng.randrange(len(words)), rng.choice((3, 60, 3000))
    words[at] = opening * depth + words[at] + closing * rng.choice((depth, 0))
    return "".join(words).encode()


MLIR_EDITS: tuple[Edit, ...] = (
    *BYTE_EDITS, *[edit_words] * 3, *[edit_numbers] * 3,
    *[edit_lines] * 3, *[edit_everywhere] * 10, *[edit_value] * 8, nest_brackets
)  # fmt: skip


def reduce_text(data: bytes, still_fails: object, tries: int = 300) -> bytes:
    """`data` with as few lines, then words, as the fault needs."""
    fails = still_fails if callable(still_fails) else bool
    for splitter in (re.compile(r"[^\n]*\n|[^\n]+"), WORDS):
        parts = splitter.findall(_text(data))
        size = max(1, len(parts) // 2)
        while size and tries > 0:
            at = 0
            while at < len(parts) and tries > 0:
                fewer = parts[:at] + parts[at + size :]
                tries -= 1
                if fails("".join(fewer).encode()):
                    parts = fewer
                else:
                    at += size
            size //= 2
        data = "".join(parts).encode()
    return data
