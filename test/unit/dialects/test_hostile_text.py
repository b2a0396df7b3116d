# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text that means harm, or is damaged, gets one clear error, soon."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from qcomp.dialects import constant
from qcomp.dialects.text import parse, print_text
from qcomp.errors import QcompError
from qcomp.limits import MAX_ALIASED

DEEP = 5000


def nest(opening: str, inside: str, closing: str) -> str:
    return opening * DEEP + inside + closing * DEEP


def body(text: str) -> str:
    return f"func.func @f() {{\n%c = arith.constant 1 : index\n{text}\nfunc.return\n}}"


def aliases(first: str, following: str, use: str) -> str:
    """Forty aliases that stand for 2^40 attributes."""
    lines = [first, *(following.replace("NEW", str(at)).replace("OLD", str(at - 1)) for at in range(1, 40))]
    return "\n".join([*lines, use])


NESTED = {
    "dense": body(f"%a = nn.constant dense<{nest('[', '1', ']')}> : tensor<1xi8>"),
    "arith": body(f"%a = arith.constant dense<{nest('[', '1', ']')}> : tensor<1xi8>"),
    "attribute": f"module attributes {{a = {nest('[', '', ']')}}} {{\n}}",
    "dictionary": f"module attributes {{a = {nest('{b = ', '1', '}')}}} {{\n}}",
    "type": f"func.func private @f({nest('memref<2x', 'i8', '>')})",
    "tuple": f"func.func private @f({nest('tuple<', 'i8', '>')})",
    "region": nest("builtin.module {", "", "}"),
    "loop": body("".join(f"loop.for %i{at} = [0] to [1] {{" for at in range(DEEP)) + "}" * DEEP),
    "affine": body(f"%a = affine.apply affine_map<(d0) -> ({nest('(', 'd0', ')')})>(%c)"),
    "index": body(f"loop.for %i = [{nest('(', '%c', ')')}] to [1] {{\n}}"),
    "location": body(f"func.return loc({nest('fused[', chr(34) + 'x' + chr(34), ']')})"),
    "callsite": body(f"func.return loc({nest('callsite(unknown at ', 'unknown', ')')})"),
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_nesting(name: str):
    with pytest.raises(QcompError, match="nested too deeply") as caught:
        parse(NESTED[name] + "\n")
    assert caught.value.code == "parse" and len(str(caught.value)) < 200


def test_braces_of_a_quantized_type():
    with pytest.raises(QcompError, match="quantization parameters nest deeper than 64"):
        parse(f"func.func private @f(!quant.uniform<i8:f32:{{0:1}}, {nest('{', '0.5', '}')}>)\n")


def test_what_can_be_read_but_not_printed():
    deep = "(" * 330 + "d0" + " + d0)" * 330
    module = parse(body(f"%a = affine.apply affine_map<(d0) -> ({deep})>(%c)") + "\n")
    with pytest.raises(QcompError, match="nests too deeply to be printed"):
        for _ in range(3):
            print_text(module)
            module = parse(body(f"%a = affine.apply affine_map<(d0) -> ({deep} + {deep})>(%c)") + "\n")


BOMBS = {
    "attribute": aliases("#a0 = [1]", "#aNEW = [#aOLD, #aOLD]", "module attributes {a = #a39} {\n}"),
    "dictionary": aliases("#a0 = {x = 1}", "#aNEW = {x = #aOLD, y = #aOLD}", "module attributes {a = #a39} {\n}"),
    "type": aliases("!a0 = i8", "!aNEW = tuple<!aOLD, !aOLD>", "func.func private @f(!a39)"),
    "location": aliases('#l0 = loc("x")', "#lNEW = loc(fused[#lOLD, #lOLD])", "module {\n} loc(#l39)"),
    "flat": f"#a0 = [{', '.join(['1'] * 2000)}]\nmodule attributes {{a = [{', '.join(['#a0'] * 600)}]}} {{\n}}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_aliases_that_grow_without_bounds(name: str):
    with pytest.raises(QcompError, match=f"aliases stand for more than {MAX_ALIASED} attributes"):
        parse(BOMBS[name] + "\n")


def test_ordinary_aliases():
    module = parse("!t = tensor<2xf32>\n#a = [1, 2]\nfunc.func private @f(!t, !t) attributes {x = #a, y = #a}\n")
    assert print_text(module, locations=False).count("tensor<2xf32>") == 2


@pytest.mark.parametrize(
    "text",
    [
        '"' + "a" * 45,
        'module attributes {a = "' + "a" * 10_000,
        'module attributes {a = "' + "\\\\a" * 5000 + "\n",
        "func.func @" + '"' + "x" * 45,
    ],
    ids=["short", "long", "escapes", "symbol"],
)
def test_unterminated_strings(text: str):
    """xDSL 0.74's lexer takes time exponential in the length of the string."""
    start = time.perf_counter()
    with pytest.raises(QcompError, match="End of file reached before closing string literal"):
        parse(text + "\n")
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%a = nn.constant dense<0> : tensor<1000000000000xi8>", "splat constants of 1000000000000 bytes"),
        (
            "%a = nn.constant dense<0> : tensor<99999999999999999999xf32>",
            "splat constants of 399999999999999999996 bytes",
        ),
        ("%a = arith.constant dense<0> : tensor<1000000000000xi8>", "dense attributes of 1000000000000 elements"),
        (f"%a = arith.constant {'9' * 6000} : i32", "limit"),
        (f"%a = nn.constant dense<{'9' * 6000}> : tensor<i32>", "limit"),
        (f"%a = nn.constant dense<{'9' * 600}> : tensor<f32>", "too large"),
        ("%a = affine.apply affine_map<(d0) -> (d0 * d0)>(%c)", "semi-affine"),
        ("%a = affine.apply affine_map<(d0) -> (5 floordiv 0)>(%c)", "division"),
        ("%a = nosuch.op", "Operation nosuch.op is not registered"),
        ("%a = arith.addi %b, %b : index", "value %b is used but not defined"),
    ],
)
def test_numbers_and_names_out_of_range(text: str, message: str):
    start = time.perf_counter()
    with pytest.raises(QcompError, match=message) as caught:
        parse(body(text) + "\n")
    assert caught.value.location is not None and caught.value.location.startswith("<text>:3:")
    assert time.perf_counter() - start < 1


def test_splats_that_add_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constant, "MAX_SPLAT_BYTES", 1000)
    lines = "\n".join(f"%a{at} = nn.constant dense<0> : tensor<100xi16>" for at in range(6))
    with pytest.raises(QcompError, match="splat constants of 1200 bytes, more than the 1000 allowed"):
        parse(body(lines) + "\n")


def examples() -> list[str]:
    """The functions of the dialects' examples, each with one op."""
    folder = Path(__file__).resolve().parents[2] / "filecheck" / "dialects"
    found: list[str] = []
    for path in sorted(folder.glob("*/ops.mlir")):
        text = re.sub(r"^\s*//.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for match in re.finditer(r"(func\.func @\w+\((?:.|\n)*?\) \{)\n((?:.|\n)*?)\n  func\.return", text):
            found += [f"{match[1]}\n{line}\nfunc.return\n}}" for line in match[2].splitlines()]
    return found


WORDS = re.compile(r'[A-Za-z_][\w.$]*|%\w+|-?\d+(?:\.\d+)?|"[^"]*"|\S|\s+')
SURPRISES = [
    "0",
    "-1",
    "18446744073709551616",
    "1.5",
    "?",
    '"',
    "[",
    "}",
    "dense<",
    "!quant.uniform<",
    "loc(",
    "*",
    "f128",
]


def test_damaged_text_is_an_error_or_a_module_that_reads_back():
    rng = random.Random(7)
    texts = examples()
    assert len(texts) > 100
    pool = [word for text in texts for word in WORDS.findall(text)]
    read = 0
    for _ in range(1500):
        words = WORDS.findall(rng.choice(texts))
        for _ in range(rng.choice([1, 1, 2])):
            words[rng.randrange(len(words))] = rng.choice([*SURPRISES, "", rng.choice(pool)])
        try:
            module = parse("".join(words) + "\n")
        except QcompError:
            continue
        read += 1
        text = print_text(module, locations=False)
        assert print_text(parse(text), locations=False) == text
        generic = print_text(module, generic=True, locations=False)
        assert print_text(parse(generic), locations=False) == text
    assert read > 20


@pytest.mark.parametrize(
    "text",
    [
        "%a = arith.constant 200 : i8",
        "%a = arith.constant dense<[1, 200]> : tensor<2xi8>",
        "%a = arith.constant dense<200> : vector<4xi8>",
        "func.func private @g() attributes {v = array<i8: 1, 200>}",
        "func.func private @g() attributes {v = 32768 : i16}",
        "%a = nn.constant dense<200> : tensor<2xi8>",
        "%a = arith.constant 9223372036854775808 : i64",
    ],
)
def test_numbers_beyond_their_type_are_not_bent(text: str):
    """xDSL takes 200 : i8 for -56."""
    with pytest.raises(QcompError, match=r"(200|32768|9223372036854775808) is not a value of i\d+") as caught:
        parse(body(text) + "\n")
    if "nn" not in text and "200" in text:
        assert "200 is not a value of i8 (hexadecimal digits give bits)" in str(caught.value)


def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(constant, "_from_literal", refuse)
    with pytest.raises(QcompError, match="needs more memory than there is"):
        parse(body("%a = nn.constant dense<1> : tensor<2xi8>") + "\n")


def test_numbers_that_fit():
    text = body("%a = arith.constant 127 : i8\n%b = arith.constant -128 : i8\n%d = arith.constant true\n"
                "%f = arith.constant dense<[1, -128]> : vector<2xi8>\n"
                "func.func private @g() attributes {v = 255 : ui8, w = 0xFF : i8}")  # fmt: skip
    assert "127 : i8" in print_text(parse(text + "\n"), locations=False)


ELEMENTS = "dense attributes of 3000000000 elements, more than the 1048576 allowed"
BLOCKS = "".join(f"^b{at}:\n" for at in range(20_000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"func.func private @f(tensor<{'1x' * 100_000}f32>)", "shapes have at most 64 dimensions"),
        ('"func.func"() ({\n' + BLOCKS + "}) : () -> ()", "more than 1000 labelled blocks"),
        (body("%a = arith.constant dense<1> : tensor<3000000000xi8>"), ELEMENTS),
        (body('%a = arith.constant dense<"0x01"> : tensor<3000000000xi8>'), "dense attributes of 3000000000 elements"),
        (body("%a = nn.constant dense<1> : tensor<600000000xi8>"), "splat constants of 600000000 bytes"),
    ],
    ids=["rank", "blocks", "splat", "hex splat", "constant"],
)
def test_what_is_beyond_all_measure(text: str, message: str):
    start = time.process_time()
    with pytest.raises(QcompError, match=message):
        parse(text + "\n")
    assert time.process_time() - start < 3


def test_integers_too_long_to_print():
    deep = "d0 " + "* 999999999999999999999 " * 300
    module = parse(body(f"%a = affine.apply affine_map<(d0) -> ({deep})>(%c)") + "\n")
    with pytest.raises(QcompError, match="cannot be printed"):
        print_text(module)


def test_messages_are_plain():
    for text in ("\0", "module {\n}\n\x1b[31m", "func.func @\x7f() {\n}", '"a\\0a.b"() : () -> ()\n'):
        with pytest.raises(QcompError) as caught:
            parse(text + "\n{")
        assert all(char.isprintable() or char == "\n" for char in str(caught.value))
