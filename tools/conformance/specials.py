# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions over all pairs of special values: NaN, infinities, zeros, denormals, the largest, 1 and its neighbours.

For each type and number of operands there is one program of all functions. What the interpreter of the imported program
gives is held to torch, function by function, as `special_cases` says; the loop level and C are held to it in bits.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import qcomp
from tools.conformance.judge import to_array, to_tensor
from tools.conformance.special_cases import FLOATS, INTEGERS, Case, T, cases

DTYPES = {str(dtype)[6:]: dtype for dtype in (*FLOATS, *INTEGERS)}
_WORD = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def values(dtype: torch.dtype) -> T:
    """The special values of a type, and some that are not."""
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        near = {limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 3, 7, limits.max // 2}
        return torch.tensor(sorted(near | ({-1, -2, -3, -7} if limits.min else set())), dtype=dtype)
    limits = torch.finfo(dtype)
    tiny = limits.smallest_normal
    sizes = [0.0, tiny * limits.eps, tiny / 2, tiny, 1.0 - limits.eps / 2, 1.0, 1.0 + limits.eps, limits.max, math.inf]
    sizes += [0.3, 0.5, 1.5, 2.0, 2.5, 3.0, 7.3, 50.0] + ([1e-20, 1e-5, 89.0, 1e10] if limits.bits > 16 else [])
    found = torch.tensor(sizes, dtype=torch.float64)
    return torch.cat([found, -found, torch.tensor([math.nan])]).to(dtype)


def operands(dtype: torch.dtype, arity: int, width: int = 0) -> tuple[T, ...]:
    """All combinations of special values; arity 0: rows of `width` that have two of them among ones."""
    special = values(dtype)
    if arity == 1 and dtype.is_floating_point:
        plain = torch.randn(256, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 5
        return (torch.cat([special, plain.to(dtype)]),)
    special = special[::3] if arity == 3 else special
    grid = torch.meshgrid(*[special] * (arity or 2), indexing="ij")
    found = tuple(part.reshape(-1).clone() for part in grid)
    if arity:
        return found
    rows = torch.ones(len(found[0]), width).to(dtype)
    rows[:, 0], rows[:, -1 if width > 3 else 1] = found
    return (rows,)


class Program(torch.nn.Module):
    """The results of all functions."""

    def __init__(self, every: Sequence[Case]):
        super().__init__()
        self.every = every

    def forward(self, *given: T) -> tuple[T, ...]:
        """One function after the other."""
        return tuple(itertools.chain.from_iterable(results(case, given) for case in self.every))


def results(case: Case, given: Sequence[T]) -> list[T]:
    """The tensors that are compared."""
    found: Any = case.function(*given)
    return [found] if isinstance(found, torch.Tensor) else list(found)[: case.results]


def undivided(case: Case, given: Sequence[T]) -> T | None:
    """Where torch stops the process or raises an error: integers by 0, and the smallest by -1."""
    if not case.divides or given[0].is_floating_point() or given[0].dtype == torch.bool:
        return None
    smallest = torch.iinfo(given[0].dtype).min
    return (given[1] == 0) | ((given[0] == smallest) & (given[1] == -1) & (smallest != 0))


def eager(case: Case, given: Sequence[T]) -> list[list[T]]:
    """What each result may be: torch's, and what it is in float64, where torch's own formula falls short."""
    stopped = undivided(case, given)
    if stopped is not None:
        given = [given[0], torch.where(stopped, torch.ones_like(given[1]), given[1])]
    found = results(case, given)
    wanted = [[value] for value in found] if case.expected is None else [[case.expected(*given)]]
    if given[0].is_floating_point() and given[0].dtype != torch.float64:
        exact = results(case, [value.double() for value in given])
        for value, precise, allowed in zip(found, exact, wanted, strict=True):
            if value.is_floating_point():
                allowed.append(precise.to(value.dtype))
    return wanted


@dataclass(frozen=True)
class Difference:
    """What of a function departs from torch, or between levels."""

    name: str
    what: str


def runnable(dtype: torch.dtype, arity: int, given: Sequence[T], names: Sequence[str] = ()) -> list[Case]:
    """Those functions that torch has for the type, and qcomp too."""
    few = tuple(value[:3] for value in given)
    found = [case for case in cases(dtype, arity) if (not names or case.name in names) and _has(case, few)]
    return found if _imports(found, few) else [case for case in found if _imports([case], few)]


def _has(case: Case, given: Sequence[T]) -> bool:
    """Whether torch computes it."""
    try:
        eager(case, given)
    except Exception:  # torch raises errors of any class
        return False
    return True


def _imports(every: Sequence[Case], given: tuple[T, ...]) -> bool:
    """Whether torch exports them and qcomp computes them; False where it refuses one by name."""
    try:
        program = torch.export.export(Program(every), given, strict=False)
    except Exception:  # torch raises errors of any class
        return False
    try:
        qcomp.interpret(qcomp.from_torch(program), *map(to_array, given))
    except qcomp.QcompError as problem:
        if problem.code not in ("unsupported-op", "unsupported-dtype", "unsupported-type"):
            raise
        return False
    return True


def sweep(
    dtype: torch.dtype, arity: int, every: Sequence[Case], given: tuple[T, ...], targets: Sequence[str]
) -> list[Difference]:
    """How `every` function departs from torch on `given`, and how the levels differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = qcomp.from_torch(torch.export.export(Program(every), given, strict=False))
    arrays = [to_array(value) for value in given]
    reference = qcomp.interpret(module, *arrays)
    found: list[Difference] = []
    owners: list[str] = []
    for case in every:
        for allowed in eager(case, given):
            have = to_tensor(reference[len(owners)], allowed[0].dtype)
            problems = [compare(case, given, want, have) for want in allowed]
            found += [Difference(case.name, problems[0])] if all(problems) else []
            owners.append(case.name)
    for target in targets:
        compiled = qcomp.compile(module.clone(), target=target, opt_level=1).run(arrays)
        for name, want, have in zip(owners, reference, compiled, strict=True):
            if not _same_bits(np.asarray(want), np.asarray(have)):
                found.append(Difference(name, f"C for {target} differs from the interpreter"))
    return found


def _same_bits(want: np.ndarray[Any, Any], have: np.ndarray[Any, Any]) -> bool:
    if want.dtype.kind != "f":
        return bool((want == have).all())
    word = f"u{want.dtype.itemsize}"
    same = want.view(word) == have.view(word)
    return bool((same | (np.isnan(want) & np.isnan(have))).all())


def compare(case: Case, given: Sequence[T], want: T, have: T) -> str:
    """How `have` departs from `want`; empty if it does not."""
    if want.dtype != have.dtype or want.shape != have.shape:
        return f"{have.dtype}{list(have.shape)} for {want.dtype}{list(want.shape)}"
    stopped = undivided(case, given)
    wrong = want != have if not want.dtype.is_floating_point else ~_near(case, given, want, have)
    if case.unlike is not None and wrong.shape[:1] == given[0].shape[:1]:
        wrong &= ~case.unlike(*given).reshape(-1, *[1] * (wrong.dim() - 1))
    if stopped is not None:
        wrong &= ~stopped
    if not wrong.any():
        return ""
    rows = wrong.reshape(len(wrong), -1).any(1).nonzero()[:, 0] if wrong.dim() else torch.zeros(1, dtype=torch.int64)
    first, count = int(rows[0]), f"{len(rows)} of {len(given[0])}"
    shown = ", ".join(_text(value[first]) for value in given)
    return f"{count}, first of {shown}: {_text(have[first])} for {_text(want[first])}"


def _text(value: T) -> str:
    """Every digit."""
    return str(value.tolist())  # pyright: ignore


def _near(case: Case, given: Sequence[T], want: T, have: T) -> T:
    """Which elements are equal within what `case` allows."""
    apart = (_ordinal(want) - _ordinal(have)).abs()
    near = want.isfinite() & have.isfinite() & (apart <= case.ulps)
    if case.floor:
        largest = torch.stack([_largest(value, want) for value in given]).amax(0).clamp(min=1.0)
        allowed = case.floor * torch.finfo(want.dtype).eps * largest
        near |= (want.double() - have.double()).abs() <= allowed
    zeros = (want == 0) & (have == 0)
    if case.signed_zero and not case.floor:
        near &= ~zeros
    return (
        near
        | (want.isnan() & have.isnan())
        | ((want == have) & (~zeros | (want.signbit() == have.signbit())))
        | (zeros if not case.signed_zero or case.floor else torch.zeros_like(zeros))
    )


def _largest(value: T, like: T) -> T:
    """The largest finite size among the operands that belong to each element."""
    finite = value.double().abs().nan_to_num(0.0, 0.0)
    rows = finite.reshape(len(finite), -1).amax(1)
    return rows.reshape(-1, *[1] * (like.dim() - 1)) if like.dim() else rows.amax()


def _ordinal(value: T) -> T:
    """Floats as integers in their order; neighbours are 1 apart. Of float64 halved, so that differences fit."""
    bits = value.contiguous().view(_WORD[value.element_size()]).long()
    lowest = -(2 ** (8 * value.element_size() - 1))
    ordered = torch.where(bits < 0, lowest - bits, bits)
    return ordered // 2 if value.element_size() == 8 else ordered


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs; 1 if anything does."""
    parser = argparse.ArgumentParser("tools/specials", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="functions, by default all")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="element types, with commas between")
    parser.add_argument("--targets", default="generic,native", help="targets to compile for, or none")
    options = parser.parse_args(arguments)
    targets: list[str] = [] if options.targets == "none" else options.targets.split(",")
    count = wrong = 0
    for name, arity, width in itertools.product(options.dtypes.split(","), range(4), (3, 19)):
        if arity and width != 3:
            continue
        given = operands(DTYPES[name], arity, width)
        every = runnable(DTYPES[name], arity, given, options.names)
        found = sweep(DTYPES[name], arity, every, given, targets) if every else []
        count, wrong = count + len(every), wrong + len(found)
        for problem in found:
            print(f"{name} {problem.name}: {problem.what}")
    print(f"{count} functions, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
