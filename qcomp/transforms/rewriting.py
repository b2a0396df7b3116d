# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewriting: plan first, then mutate; every refusal has a reason; locations travel; nothing runs forever.

A `Rule` computes everything that can fail in `plan`, while the IR is untouched; `apply` only builds and replaces.
`apply_rules` drives rules to a fixpoint with xDSL's greedy walker under a cap on the number of rewrites.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from qcomp.dialects.dim import UNDECIDED
from qcomp.dialects.location import describe
from qcomp.dialects.nn import ConstantOp
from qcomp.errors import QcompError
from qcomp.writing import WriteError

OpT = TypeVar("OpT", bound=Operation)
PlanT = TypeVar("PlanT")


@dataclass(frozen=True)
class Refusal:
    """Why a rule that looked applicable was not applied."""

    reason: str


@dataclass(frozen=True)
class RefusalRecord:
    """A line of the refusal log. values: the names of the first results of the ops that it is about."""

    rule: str
    op: str
    location: str | None
    reason: str
    values: set[str] = field(default_factory=set[str], compare=False)

    def __str__(self) -> str:
        return f"{self.rule}: {self.op}{f' at {self.location}' if self.location else ''}: {self.reason}"


_log: ContextVar[list[RefusalRecord] | None] = ContextVar("refusals", default=None)


@contextmanager
def refusal_log() -> Generator[list[RefusalRecord]]:
    """Collects the refusals of all rules that run within it."""
    records: list[RefusalRecord] = []
    token = _log.set(records)
    try:
        yield records
    finally:
        _log.reset(token)


def refuse(rule: str, op: Operation, reason: str) -> None:
    """Log that `rule` was not applied to `op`, once per rule, op and reason."""
    records = _log.get()
    if records is not None:
        record = RefusalRecord(rule, op.name, describe(op.location), reason)
        known = next((other for other in records[-64:] if other == record), record)
        if known is record:
            records.append(record)
        if op.results and (name := op.results[0].name_hint) is not None:
            known.values.add(name)


@dataclass
class RewriteCount:
    """The rewrites done so far, and how many may be done; `last` names the rule and op of the latest."""

    limit: int | None = None
    done: int = 0
    last: str | None = None


_count: ContextVar[RewriteCount | None] = ContextVar("rewrite_count", default=None)


@contextmanager
def counted_rewrites(limit: int | None = None) -> Generator[RewriteCount]:
    """Counts the rewrites of all rules that run within it, and stops them after `limit`."""
    count = RewriteCount(limit)
    token = _count.set(count)
    try:
        yield count
    finally:
        _count.reset(token)


class Rewriter:
    """Inserts, replaces and erases; new ops without a location take that of the op they stand for."""

    def __init__(self, inner: PatternRewriter):
        self._inner = inner

    def insert_before(self, anchor: Operation, *new: Operation, like: Operation | None = None) -> None:
        """Insert `new` before `anchor`, located like `like` (default `anchor`)."""
        _locate(new, like or anchor)
        self._inner.insert(new, InsertPoint.before(anchor))

    def replace(self, op: Operation, *new: Operation, values: Sequence[SSAValue] | None = None) -> None:
        """Replace `op` by `new`; its results by `values` (default: the results of the last new op)."""
        _locate(new, op)
        results = list(values) if values is not None else list(new[-1].results)
        for old, value in zip(op.results, results, strict=True):
            if value.name_hint is None:
                value.name_hint = old.name_hint
        nameless = [value for step in new for value in step.results if value.name_hint is None]
        self._inner.replace(op, new, results)
        for value in nameless:
            # xDSL names all that is new after the old result, which these steps on the way to it are not.
            value.name_hint = None

    def set_operand(self, op: Operation, index: int, value: SSAValue) -> None:
        """Let one operand of `op` read `value`."""
        op.operands[index] = value
        self._inner.notify_op_modified(op)

    def set_property(self, op: Operation, name: str, value: Attribute) -> None:
        """Give a property of `op` another value."""
        op.properties[name] = value
        self._inner.notify_op_modified(op)

    def erase_dead(self, *values: SSAValue) -> None:
        """Erase the pure ops that define `values` if nothing uses them, and then their operands' alike."""
        stack = [value.owner for value in values]
        while stack:
            op = stack.pop()
            if isinstance(op, Operation) and op.parent is not None and is_trivially_dead(op):
                stack += [operand.owner for operand in op.operands]
                self._inner.erase(op)

    def erase(self, op: Operation) -> None:
        """Erase `op`; its results must have no uses."""
        self._inner.erase(op)


def _locate(new: Sequence[Operation], like: Operation) -> None:
    for op in new:
        if isinstance(op.location, UnknownLoc):
            op.location = like.location


class Rule(ABC, Generic[OpT, PlanT]):
    """One rewrite. The docstring shows IR before => after, and the precondition."""

    matches: ClassVar[type[Operation] | tuple[type[Operation], ...]]
    """The op classes it looks at."""
    makes: ClassVar[tuple[type[Operation], ...]] = ()
    """Op classes of which `apply` makes ops on elements of the matched op's type: declined where one is not lowered."""

    @abstractmethod
    def plan(self, op: OpT) -> PlanT | Refusal | None:
        """All that `apply` needs; None when `op` is not meant; a Refusal when a precondition fails."""

    @abstractmethod
    def apply(self, op: OpT, plan: PlanT, rewriter: Rewriter) -> None:
        """Carry out `plan`. Cannot fail."""


class _Pattern(RewritePattern):
    def __init__(self, rule: Rule[Operation, object], budget: list[int]):
        self.rule = rule
        self.budget = budget

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, self.rule.matches):
            return
        plan = self._plan(op)
        if plan is None:
            return
        name = type(self.rule).__name__
        if isinstance(plan, Refusal):
            refuse(name, op, plan.reason)
            return
        count = _count.get()
        if count is not None:
            if count.done == count.limit:
                return
            count.done += 1
            count.last = f"{name} on {op.name}" + (f" at {place}" if (place := describe(op.location)) else "")
        self.budget[0] -= 1
        if self.budget[0] < 0:
            raise QcompError.at(op, f"rule {name} does not come to an end", code="no-fixpoint")
        with located(op):
            self.rule.apply(op, plan, Rewriter(rewriter))

    def _plan(self, op: Operation) -> object:
        """The rule's plan; a Refusal where it asks for a number and the size depends on symbols, or would make an op
        that is not lowered."""
        try:
            with located(op):
                plan = self.rule.plan(op)
        except QcompError as problem:
            if problem.code != UNDECIDED:
                raise
            return Refusal(problem.message)
        if plan is None or isinstance(plan, Refusal):
            return plan
        return _not_lowered(op, self.rule.makes) or plan


def _not_lowered(op: Operation, makes: Sequence[type[Operation]]) -> Refusal | None:
    """Why ops of the classes `makes` are not lowered for the element type of `op`."""
    if not makes:
        return None
    from qcomp.transforms.lower_to_loop.registry import computed_element, refusal

    element = computed_element(op)
    reasons = [] if element is None else [refusal(kind, element) for kind in makes]
    return next((Refusal(reason) for reason in reasons if reason is not None), None)


@contextmanager
def located(op: Operation) -> Generator[None]:
    """Let an error raised inside that names no op be about `op`."""
    try:
        yield
    except QcompError as problem:
        if problem.op is not None or isinstance(problem, WriteError):
            raise
        raise QcompError.at(op, problem.message, code=problem.code, hint=problem.hint) from None


class _Patterns(RewritePattern):
    def __init__(self, patterns: Sequence[_Pattern]):
        self.patterns = patterns

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        for pattern in self.patterns:
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                return


def apply_rules(module: ModuleOp, rules: Sequence[object], *, once: bool = False) -> bool:
    """Apply `rules` to all ops of `module` until none applies (`once`: one walk, no op is visited again).

    Returns whether anything changed. Raises QcompError when more than 100 + 20 rewrites per op are done.
    """
    budget = [100 + 20 * sum(1 for _ in module.walk())]
    patterns = [_Pattern(cast(Rule[Operation, object], rule), budget) for rule in rules]
    return PatternRewriteWalker(_Patterns(patterns), apply_recursively=not once).rewrite_module(module)


def only_user(value: SSAValue) -> Operation | None:
    """The one op that uses `value`, when there is exactly one use."""
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def constant(value: SSAValue | None) -> ConstantOp | None:
    """The constant op that defines `value`, if one does."""
    owner = None if value is None else value.owner
    return owner if isinstance(owner, ConstantOp) else None
