# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts from models as C identifiers and comments. A model's names are anybody's: none reaches C as it is."""

from __future__ import annotations

import re

MAX_LENGTH = 63
"""C99 tells identifiers apart by this many characters."""
_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register"
    " restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"
    " alignas alignof asm bool constexpr false nullptr static_assert thread_local true typeof"
    " and and_eq bitand bitor catch class compl concept const_cast decltype delete dynamic_cast explicit export friend"
    " mutable namespace new noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires"
    " static_cast template this throw try typeid typename using virtual xor xor_eq wchar_t".split()
)
"""Of C and C++."""
_TAKEN = frozenset(
    "main arena memcpy memset linux unix i386 arm sparc mips m68k mc68000 vax sun hpux near far"
    " assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic"
    " stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar unistd wchar wctype"
    " immintrin".split()
)
"""What emitted code itself uses, macros of compilers, and headers: NAME.h must not hide one of them."""


def c_identifier(text: str, fallback: str) -> str:
    """`text` as a C identifier that means nothing else; `fallback` alone or in front where nothing better is left."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:MAX_LENGTH]
    if not name:
        return fallback
    # Names without a small letter are for macros, those that end in _t for types.
    reserved = name in _KEYWORDS or name in _TAKEN or name.endswith("_t") or not re.search("[a-z]", name)
    return f"{fallback}_{name}"[:MAX_LENGTH] if reserved or name[0].isdigit() else name


def distinct(name: str, taken: set[str]) -> str:
    """`name`, with a number behind it if it is one of `taken`, which it joins."""
    count = 1
    found = name
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


def comment(text: str) -> str:
    """`text` safe inside a C comment."""
    printable = "".join(char if char.isprintable() and ord(char) < 128 else "?" for char in text)
    plain = printable.replace("\\", "/").replace("??", "? ?")
    return plain.replace("*/", "* /").replace("/*", "/ *")[:200]
