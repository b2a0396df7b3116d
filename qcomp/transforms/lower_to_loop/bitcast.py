# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of bitcast: a view where memory holds both types alike, else bits taken apart or put together.

    for o in 0..elements of the wider type:
        narrower: y[o * ratio + k] = low bits of (bits of x[o] >> k * width)
        wider:    y[o] = sum of bits of x[o * ratio + k] << k * width

By shifts and not by pointers: the order of bytes is the same on every target, and no C compiler sees one object
through two types.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, LocationAttr, f32, f64, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import ui8, ui16
from qcomp.dialects.nn.base import element_count, tensor
from qcomp.dialects.nn.bits import stored_bits
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout, static_shape, storage_element
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.held import as_held, as_stored
from qcomp.transforms.lower_to_loop.movement import copy
from qcomp.transforms.lower_to_loop.registry import ALL, lowers


@dataclass(frozen=True)
class BitcastKernel:
    """All that the code depends on."""

    source: Attribute
    target: Attribute
    count: int
    """Elements of the wider type."""

    @property
    def ratio(self) -> int:
        """Narrower elements in a wider one."""
        bits = stored_bits(self.source), stored_bits(self.target)
        return max(bits) // min(bits)


@lowers(nn.BitcastOp, elements=ALL, symbolic=True)
def lower_bitcast(lowering: Lowering, op: nn.BitcastOp) -> None:
    """A view of the operand's bytes as signless integers of their width hold both types; else a kernel."""
    where, source = op.location, lowering.row_major(op.input, op.location)
    sizes, element = static_shape(op.result), storage_element(op.result)
    if source.element == element:
        if lowering.is_result(op.result):
            target = lowering.define(op.result, where, Layout(False))
            copy(lowering, Buffer(source.value, sizes, Layout(False), None, element), target, where)
        else:
            lowering.buffers[op.result] = Buffer(source.value, sizes, Layout(False), None, element)
        return
    target = lowering.define(op.result, where, Layout(False))
    counts = element_count(source.sizes), element_count(sizes)
    wider = counts[0] if stored_bits(source.element) >= stored_bits(element) else counts[1]
    spec = BitcastKernel(tensor(op.input).element_type, tensor(op.result).element_type, wider)
    views = [
        lowering.view(buffer, memref_of(buffer.element, (count,)))
        for buffer, count in zip((source, target), counts, strict=True)
    ]
    kinds = (source.element, element, *counts)
    lowering.call((spec, *map(str, kinds)), "bitcast", lambda name: _build(spec, kinds, name, where), views, where)


def _build(spec: BitcastKernel, kinds: tuple[Attribute, Attribute, int, int], name: str, where: LocationAttr) -> FuncOp:
    source, target, *counts = kinds
    arguments = [("x", memref_of(source, counts[:1])), ("y", memref_of(target, counts[1:]))]
    func, b, (x, y) = kernel(name, arguments, where)
    given, wanted = stored_bits(source), stored_bits(target)
    word = i64 if max(given, wanted) == 64 else i32
    with b.loop(0, spec.count) as nest:
        place = nest.index
        if given >= wanted:
            bits = _bits(b, b.load(x, [place]), source, word)
            for part in range(spec.ratio):
                # The bits that an arithmetic shift brings in are cut off.
                _store(
                    b, _shifted(b, bits, part * wanted, word, arith.ShRSIOp), y, place * spec.ratio + part, target, word
                )
        else:
            parts = [_bits(b, b.load(x, [place * spec.ratio + part]), source, word) for part in range(spec.ratio)]
            total = parts[0]
            for part, bits in enumerate(parts[1:], 1):
                total = b.add(arith.OrIOp(total, _shifted(b, bits, part * given, word, arith.ShLIOp)))
            _store(b, total, y, place, target, word)
    return finish(func)


def _shifted(
    b: Builder, bits: SSAValue, count: int, word: IntegerType, shift: type[arith.ShLIOp | arith.ShRSIOp]
) -> SSAValue:
    return b.add(shift(bits, b.integer(count, (), word))) if count else bits


def _bits(b: Builder, value: SSAValue, element: Attribute, word: IntegerType) -> SSAValue:
    """The bits of a loaded scalar in the low bits of a `word`, zeros above."""
    width = stored_bits(element)
    if element in (f32, f64):
        value = b.add(arith.BitcastOp(value, i64 if width == 64 else i32))
    elif width < 32:
        value = as_held(b, value, ui8 if width == 8 else ui16)
    if word == i64 and width < 64:
        value = b.add(arith.ExtSIOp(value, i64))
        return b.add(arith.AndIOp(value, b.integer(2**width - 1, (), i64)))
    return value


def _store(b: Builder, bits: SSAValue, y: SSAValue, place: Index, element: Attribute, word: IntegerType) -> None:
    """Store the low bits of a `word` as an element."""
    width = stored_bits(element)
    if word == i64 and width < 64:
        bits = b.add(arith.TruncIOp(bits, i32))
    if element in (f32, f64):
        bits = b.add(arith.BitcastOp(bits, element))
    elif width < 32:
        bits = as_stored(b, bits, ui8 if width == 8 else ui16)
    b.store(bits, y, [place])
