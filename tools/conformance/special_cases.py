# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions for `tools/specials`, and what each is held to; docs/numerics.md says the same in words.

Without an entry a result is torch's within `Case.ulps`: NaN, infinities and zeros of either sign included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

T = torch.Tensor
Function = Callable[..., Any]
One = Callable[[Any], Any]
Two = Callable[[Any, Any], Any]
Three = Callable[[Any, Any, Any], Any]
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8, torch.bool)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A function of `arity` tensors; arity 0: of the rows of a matrix."""

    name: str
    arity: int
    function: Function
    ulps: int = 4  # units in the last place; 0 for bits
    floor: float = 0.0  # allowed too: this many roundings of the largest operand, or of 1, where differences cancel
    signed_zero: bool = True  # whether the sign of a zero is compared
    expected: Function | None = None  # in torch's place, where torch itself is odd
    unlike: Function | None = None  # operands -> where qcomp departs from torch, as documented
    divides: bool = False  # whether integers are divided, which stops torch for some
    results: int | None = None  # how many of the results are compared; None: all


EXACT = (
    "abs ceil deg2rad floor frac neg rad2deg reciprocal relu round sign sgn square trunc nan_to_num hardshrink "
    "hardsigmoid hardswish hardtanh leaky_relu softsign relu6 add sub mul div copysign fmax fmin maximum minimum "
    "heaviside isnan isinf isfinite isposinf isneginf signbit logical_not eq ne lt le gt ge logical_and logical_or "
    "logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift amax amin argmax argmin any "
    "all count_nonzero median nanmedian cummax cummin max min prod"
).split()
FROM = {
    torch: {
        1: "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac log log10 "
        "log1p log2 logit neg rad2deg reciprocal relu round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square "
        "tan tanh trunc isnan isinf isfinite isposinf isneginf nan_to_num logical_not bitwise_not",
        2: "add sub mul div pow atan2 hypot copysign fmax fmin maximum minimum logaddexp xlogy heaviside eq "
        "ne lt le gt ge logical_and logical_or logical_xor float_power ldexp bitwise_and bitwise_or "
        "bitwise_xor",
        3: "addcdiv clamp",
    },
    F: {
        1: "celu elu selu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish silu softplus softsign "
        "relu6"
    },
    torch.special: {1: "entr", 2: "xlog1py"},
}


def _named() -> list[Case]:
    found: list[Case] = []
    for home, arities in FROM.items():
        for arity, names in arities.items():
            for name in names.split():
                function = getattr(home, name)
                found.append(Case(name=name, arity=arity, function=function, ulps=0 if name in EXACT else 4))
    return found


def _called(function: Function, values: Sequence[T]) -> T:
    return function(*values)


def _halves_in_float32(function: Two | Three) -> Function:
    """`function`, which rounds 16-bit floats at its result only."""

    def wide(*values: T) -> T:
        half = values[0].dtype in (torch.float16, torch.bfloat16)
        result = _called(function, [value.float() for value in values] if half else values)
        return result.to(values[0].dtype) if half else result

    return wide


def _elementwise(function: Callable[..., float]) -> Function:
    """A function of Python's numbers, rounded to the type of the operands."""

    def mapped(*values: T) -> T:
        numbers: list[list[float]] = [value.double().tolist() for value in values]  # pyright: ignore[reportUnknownMemberType]
        rows = zip(*numbers, strict=True)
        found = torch.tensor([function(*row) for row in rows], dtype=torch.float64)
        return found.to(values[0].dtype)

    return mapped


def _of_floats(function: Callable[..., float], whole: Function) -> Function:
    """The same; of integers `whole`."""
    mapped = _elementwise(function)
    return lambda *values: mapped(*values) if values[0].is_floating_point() else whole(*values)


def _fmod(x: float, y: float) -> float:
    return math.nan if math.isinf(x) or y == 0 else math.fmod(x, y)


def _remainder(x: float, y: float) -> float:
    left = _fmod(x, y)
    return left + y if left and (left < 0) != (y < 0) else left


def _gelu(x: float) -> float:
    return x * 0.5 * math.erfc(-x * math.sqrt(0.5))


def _gelu_tanh(x: float) -> float:
    inner = math.sqrt(8 / math.pi) * x * (1 + 0.044715 * x * x)
    return x / (1 + math.exp(-inner)) if inner > -700 else x * math.exp(max(inner, -1e4))


def saturated(target: torch.dtype) -> Function:
    """Floats to integers: towards 0, what is out of range to the nearest end, NaN to 0."""
    limits = torch.iinfo(target)

    def cast(value: T) -> T:
        whole = value.double().trunc().nan_to_num(0.0, math.inf, -math.inf)
        numbers: list[float] = whole.tolist()  # pyright: ignore
        return torch.tensor([int(min(max(number, limits.min), limits.max)) for number in numbers], dtype=target)

    return cast


def _one(name: str, function: One, **rules: Any) -> Case:
    return Case(name=name, arity=1, function=function, **rules)


def _two(name: str, function: Two, **rules: Any) -> Case:
    return Case(name=name, arity=2, function=function, **rules)


def _power(exponent: float) -> Case:
    def rounded(x: T) -> T:
        """The exponent rounded to float32, where torch rounds it to bfloat16 or not at all."""
        wide = x if x.dtype == torch.float64 else x.float()
        return (wide ** torch.tensor(exponent, dtype=wide.dtype)).to(x.dtype if x.is_floating_point() else wide.dtype)

    expected = rounded if exponent in (1.7, 1 / 3) else None
    return _one(f"pow {exponent:g}", lambda x: x**exponent, expected=expected)


def _clamps() -> list[Case]:
    bounds = [(-0.5, 1.0), (0.0, None), (None, 0.0), (-math.inf, math.inf), (1.0, -1.0)]

    def clamp(low: float | None, high: float | None) -> Case:
        return _one(f"clamp {low} {high}", lambda x: x.clamp(low, high), ulps=0)

    return [clamp(*pair) for pair in bounds]


def _unary() -> Sequence[Case]:
    def base(number: float) -> Case:
        return _one(f"{number:g} to the power", lambda x: number**x)

    exponents = (0, 1, 2, 3, 4, -1, -2, -3, 0.5, -0.5, 1.7, 1 / 3, math.inf, -math.inf, math.nan)
    return (
        *map(_power, exponents), *map(base, (2.0, 0.0, 1.0, -1.0, 0.5, -2.5, 10.0)), *_clamps(),
        _one("gelu", F.gelu, expected=_elementwise(_gelu), floor=1.0),
        _one("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), expected=_elementwise(_gelu_tanh), floor=1.0),
        _one("tanhshrink", F.tanhshrink, floor=1.0),
        _one("softshrink", F.softshrink, ulps=0, signed_zero=False),
        _one("softshrink 0", lambda x: F.softshrink(x, 0.0), ulps=0, signed_zero=False),
        _one("hardshrink 0", lambda x: F.hardshrink(x, 0.0), ulps=0),
        _one("threshold", lambda x: F.threshold(x, 0.5, -2.0), ulps=0),
        _one("leaky_relu 0", lambda x: F.leaky_relu(x, 0.0), ulps=0),
        _one("elu 2", lambda x: F.elu(x, 2.0)), _one("celu 0.5", lambda x: F.celu(x, 0.5)),
        _one("softplus 3", lambda x: F.softplus(x, 3.0, 10.0)),
        _one("round 2", lambda x: torch.round(x, decimals=2), ulps=0),
        _one("round -2", lambda x: torch.round(x, decimals=-2), ulps=0),
        _one("nan_to_num 1 2 3", lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0), ulps=0),
        _one("fmod 3", lambda x: torch.fmod(x, 3.0), ulps=0),
        _one("remainder -3", lambda x: x % -3.0, ulps=1),
        _one("floor_divide 3", lambda x: x // 3.0, ulps=0), _one("divide 0", lambda x: x / 0.0, ulps=0),
        _one("remainder 0", lambda x: x % 0.0, ulps=0),
    )  # fmt: skip


def _binary() -> Sequence[Case]:
    add_twice = _halves_in_float32(lambda x, y: x + 2 * y if x.is_floating_point() else torch.add(x, y, alpha=2))
    lerp = _halves_in_float32(lambda x, y: x + 0.3 * (y - x))
    back = _halves_in_float32(lambda x, y: y - (y - x) * (1 - 0.7))
    return (
        _two("fmod", torch.fmod, expected=_of_floats(_fmod, torch.fmod), ulps=0, divides=True),
        _two("remainder", torch.remainder, expected=_of_floats(_remainder, torch.remainder), ulps=1, divides=True),
        _two("div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), ulps=0, divides=True),
        _two("floor_divide", torch.floor_divide, ulps=0, divides=True),
        _two("where", lambda x, y: torch.where(x > y, x, y), ulps=0),
        _two("clamp min", lambda x, y: torch.clamp(x, min=y), ulps=0),
        _two("clamp max", lambda x, y: torch.clamp(x, max=y), ulps=0),
        _two("add twice", lambda x, y: torch.add(x, y, alpha=2), expected=add_twice, ulps=0),
        _two("lerp 0.3", lambda x, y: torch.lerp(x, y, 0.3), expected=lerp, floor=1.0),
        _two("lerp 0.7", lambda x, y: torch.lerp(x, y, 0.7), expected=back, floor=1.0),
        _two("logaddexp2", torch.logaddexp2, floor=2.0),
        _two("huber", lambda x, y: F.huber_loss(x, y, reduction="none")),
        _two("mse", lambda x, y: F.mse_loss(x, y, reduction="none")),
    )


def _complexes() -> Sequence[Case]:
    def of(name: str, **rules: Any) -> Case:
        def function(x: T, y: T) -> T:
            result: T = getattr(torch, name)(torch.complex(x, y))
            return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result

        return _two(f"complex {name}", function, **rules)

    def tiny(x: T, y: T) -> T:
        limit = torch.finfo(x.dtype).smallest_normal
        return torch.maximum(x.abs(), y.abs()) < limit

    def without_angle(x: T, y: T) -> T:
        return (torch.isinf(y) & (x < 0)) | ((y.abs() < torch.finfo(x.dtype).smallest_normal) & (y != 0))

    def quotient(x: T, y: T) -> T:
        return torch.view_as_real(torch.complex(x, y) / torch.complex(y, x))

    def polar(x: T, y: T) -> T:
        return torch.view_as_real(torch.polar(x, y))

    return (
        of("abs"), of("angle"), of("square", ulps=0), of("exp", ulps=24, unlike=without_angle),
        of("reciprocal", unlike=tiny), _two("complex div", quotient, unlike=tiny), _two("complex polar", polar),
    )  # fmt: skip


def _ternary() -> Sequence[Case]:
    product = _halves_in_float32(lambda x, y, z: x + y * z)
    lerp = _halves_in_float32(lambda x, y, z: torch.where(z.abs() < 0.5, x + z * (y - x), y - (y - x) * (1 - z)))
    where: Three = lambda x, y, z: torch.where(x > 0, y, z)  # noqa: E731
    return (
        Case(name="addcmul", arity=3, function=torch.addcmul, expected=product, ulps=1),
        Case(name="lerp", arity=3, function=torch.lerp, expected=lerp, ulps=1),
        Case(name="where 3", arity=3, function=where, ulps=0),
    )


def _huge(x: T) -> T:
    """Rows of finite numbers whose squares overflow."""
    return (x.double().abs() > math.sqrt(torch.finfo(x.dtype).max) / 8).any(1) & x.isfinite().all(1)


def _infinite(x: T) -> T:
    return _huge(x) | x.isinf().any(1)


def _overflowing(x: T) -> T:
    """Rows of finite numbers whose sums may overflow on the way."""
    if not x.is_floating_point():
        return torch.zeros(len(x), dtype=torch.bool)
    return (x.double().abs() > torch.finfo(x.dtype).max / 4).any(1) & x.isfinite().all(1)


def _norm(order: float, x: T) -> T:
    return torch.linalg.vector_norm(x, order, dim=1)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _along_rows(function: Function, x: T) -> Any:
    return function(x, 1)


def _reductions() -> Sequence[Case]:
    def of(name: str, **rules: Any) -> Case:
        return rows(name, partial(_along_rows, getattr(torch, name)), **rules)

    def rows(name: str, function: One, **rules: Any) -> Case:
        return Case(name=name, arity=0, function=function, **rules)

    sums: dict[str, Any] = {"floor": 32.0, "unlike": _overflowing}
    spread: dict[str, Any] = {"floor": 32.0, "unlike": _huge}
    # A mean that is infinite is NaN in torch's one-pass formula.
    moments: dict[str, Any] = {"floor": 32.0, "unlike": _infinite}
    norms = (0, 1, 2, 3, math.inf, -math.inf)
    return (
        *(of(name, **sums) for name in "sum mean nansum cumsum nanmean".split()),
        *(of(name, ulps=0) for name in "prod cumprod amax amin argmax argmin any all count_nonzero".split()),
        *(of(name, ulps=0) for name in "median nanmedian cummax cummin max min".split()),
        *(of(name, **spread) for name in "var std".split()),
        *(of(name, **moments) for name in "var_mean std_mean".split()),
        *(of(name, floor=4.0) for name in "logsumexp softmax log_softmax logcumsumexp".split()),
        of("sort", ulps=0, signed_zero=False, results=1),
        rows("topk", lambda x: x.topk(2, 1), ulps=0, signed_zero=False, results=1),
        rows("aminmax", lambda x: torch.aminmax(x, dim=1), ulps=0),
        rows("layer_norm", lambda x: F.layer_norm(x, x.shape[1:]), **spread),
        rows("rms_norm", lambda x: F.rms_norm(x, x.shape[1:]), floor=8.0),
        rows("normalize", lambda x: F.normalize(x, dim=1)),
        rows("max_pool", lambda x: F.max_pool1d(x[:, None], 2, 1), ulps=0),
        rows("avg_pool", lambda x: F.avg_pool1d(x[:, None], 2, 1), signed_zero=False),
        rows("cosine_similarity", lambda x: F.cosine_similarity(x, x.flip(1), dim=1), floor=32.0),
        *(rows(f"norm {p:g}", partial(_norm, p)) for p in norms),
    )  # fmt: skip


def _casts(source: torch.dtype) -> list[Case]:
    found: list[Case] = []
    for target in (*FLOATS, *INTEGERS):
        whole = source.is_floating_point and target in INTEGERS and target != torch.bool
        cast = partial(torch.Tensor.to, dtype=target)
        found.append(_one(f"to {str(target)[6:]}", cast, ulps=0, expected=saturated(target) if whole else None))
    return found


def cases(dtype: torch.dtype, arity: int) -> list[Case]:
    """The functions of `arity` tensors of `dtype`; those that torch lacks for it are found out by calling them."""
    every = [*_named(), *_unary(), *_binary(), *_ternary(), *_reductions()]
    if dtype in (torch.float32, torch.float64):
        every += _complexes()
    every += _casts(dtype)
    # A unit of 16 bits is as much as all that is allowed to the formulas in float32.
    most = 1 if dtype in (torch.float16, torch.bfloat16) else 64
    return [replace(case, ulps=min(case.ulps, most)) for case in every if case.arity == arity]
