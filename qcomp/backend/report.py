# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of a compiled model: a dict that is typed, prints as a table and shows as one in a notebook."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from qcomp.backend.target import TARGETS, find_target, runs_here

SHOWN_KINDS = 8
"""So many reasons of float ops and so many warnings are printed; the rest is counted."""
SHOWN_NAMES = 5

Quantization = Literal["static", "dynamic", "weights", "none"]
"""What of a program is quantized: activations by scales from calibration, or found at run time; weights alone."""

QUANTIZATIONS: Mapping[str, str] = {
    "static": "quantized, the scales of activations are fixed by calibration",
    "dynamic": "quantized, the scales of activations are found at run time",
    "weights": "weights are quantized, everything computes in floats",
}


class OpRow(TypedDict):
    """One op of a compiled model.

    name: module path; op: its name in the IR; loc: Python file and line; macs: multiply-adds; compute: the type of its
    numbers, "i8" and "i16" for codes; memory: the widest type that lies in memory for it; reason: why an op of a
    quantized model computes in floats, None for other ops.
    """

    name: str
    op: str
    loc: str | None
    macs: int
    compute: str
    memory: str
    reason: str | None


@dataclass(frozen=True)
class FloatOps:
    """Float ops of a quantized model that have one reason. ops: how many there are of each name."""

    reason: str
    ops: Mapping[str, int]
    macs: int

    def __str__(self) -> str:
        names = sorted(self.ops, key=lambda name: -self.ops[name])
        shown = [f"{name} x{self.ops[name]}" if self.ops[name] > 1 else name for name in names[:SHOWN_NAMES]]
        more = ", ..." if len(names) > SHOWN_NAMES else ""
        work = f" ({self.macs:,} MACs)" if self.macs else ""
        return f"{', '.join(shown)}{more}{work}: {self.reason}"


class Report(dict[str, Any]):
    """What became of a model, see `Artifact.report`: a dict whose keys are typed."""

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: Literal["ops"]) -> list[OpRow]: ...
        @overload
        def __getitem__(self, key: Literal["macs_integer_share"]) -> float: ...
        @overload
        def __getitem__(self, key: Literal["target"]) -> str: ...
        @overload
        def __getitem__(self, key: Literal["warnings"]) -> list[str]: ...
        @overload
        def __getitem__(self, key: Literal["quantization"]) -> Quantization: ...
        @overload
        def __getitem__(
            self,
            key: Literal["macs", "macs_integer", "arena_bytes", "arena_bound_bytes", "weight_bytes", "c_bytes"],
        ) -> int: ...
        @overload
        def __getitem__(self, key: str) -> Any: ...
        def __getitem__(self, key: str) -> Any: ...

    def __repr__(self) -> str:
        return f"<qcomp.Report: {headline(self)}>"

    def __str__(self) -> str:
        return "\n".join([headline(self), *aligned(summary_rows(self)), "", *op_table(self)])

    def _repr_html_(self) -> str:
        return html_table(summary_rows(self), headline(self)) + html_ops(self)


def headline(report: Mapping[str, Any]) -> str:
    """Return one line: target, work and the share of it in integers, bytes of weights and arena."""
    share = ""
    if report["macs"] and _quantization(report) in ("static", "dynamic"):
        share = f", {report['macs_integer_share']:.1%} of the quantized ones in integers"
    return (
        f"for {report['target']}: {len(report['ops'])} ops, {report['macs']:,} MACs{share}; "
        f"weights {report['weight_bytes']:,} bytes, arena {report['arena_bytes']:,} bytes"
    )


def summary_rows(report: Report) -> list[tuple[str, list[str]]]:
    """Return the summary as labels and their lines, one screen in all."""
    rows = [("precision", _precision(report))]
    if stay := _float_lines(report):
        rows.append(("in float", stay))
    rows.append(("target", _target(report["target"])))
    sizes = [f"weights {report['weight_bytes']:,} bytes"]
    if "c_bytes" in report:
        sizes.insert(0, f"C {report['c_bytes']:,} bytes")
    rows.append(("sizes", [", ".join(sizes)]))
    bound = f"{report['arena_bound_bytes']:,} bytes are alive at one time at most"
    rows.append(("arena", [f"{report['arena_bytes']:,} bytes; {bound}"]))
    if notes := report["warnings"]:
        rows.append(("warnings", _some(notes, "warnings")))
    return rows


def float_ops(rows: Iterable[OpRow]) -> list[FloatOps]:
    """Return the float ops of a quantized model by reason, those with most work first.

    Ops that only turn floats into codes or back are left out.
    """
    found: dict[str, list[OpRow]] = {}
    for row in rows:
        if row["reason"] and not row["op"].startswith("quant."):
            found.setdefault(row["reason"], []).append(row)
    groups = [
        FloatOps(reason, Counter(row["op"] for row in equal), sum(row["macs"] for row in equal))
        for reason, equal in found.items()
    ]
    return sorted(groups, key=lambda group: (-group.macs, -sum(group.ops.values())))


def aligned(rows: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Return labels and texts in two columns."""
    width = max((len(label) for label, _ in rows), default=0)
    return [
        f"  {label if first else '':{width}}  {line}"
        for label, lines in rows
        for first, line in zip([True] + [False] * len(lines), lines, strict=False)
    ]


def op_table(report: Report) -> list[str]:
    """Return a line for each op under a line of headings."""
    head = ["op", "name", "MACs", "compute", "memory", "source", "reason"]
    table = [head, *(_cells(row) for row in report["ops"])]
    widths = [max(len(line[column]) for line in table) for column in range(len(head))]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]


def html_table(rows: Sequence[tuple[str, list[str]]], caption: str) -> str:
    """Return the summary as an HTML table."""
    lines = [
        f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
        f"<td style='text-align:left'>{'<br>'.join(map(html.escape, texts))}</td></tr>"
        for label, texts in rows
    ]
    return f"<table><caption>{html.escape(caption)}</caption>{''.join(lines)}</table>"


def html_cells(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of texts in HTML."""
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><tr>{titles}</tr>{body}</table>"


def html_ops(report: Report) -> str:
    """Return the ops as an HTML table."""
    head = ["op", "name", "MACs", "compute", "memory", "source", "reason"]
    return html_cells(head, map(_cells, report["ops"]))


def _cells(row: OpRow) -> list[str]:
    return [
        row["op"], row["name"], f"{row['macs']:,}", row["compute"], row["memory"], row["loc"] or "",
        row["reason"] or "",
    ]  # fmt: skip


def _quantization(report: Mapping[str, Any]) -> Quantization:
    """Return what is quantized; artifacts of older versions do not say."""
    return report.get("quantization", "static" if report["macs_integer_share"] else "none")


def _precision(report: Report) -> list[str]:
    working = [row for row in report["ops"] if row["macs"]] or report["ops"]
    kinds = sorted({row["compute"] for row in working})
    computed = f"computes in {', '.join(kinds)}" if kinds else "computes nothing"
    quantization = _quantization(report)
    if quantization == "none":
        lines = [f"nothing is quantized, {computed}"]
        return [*lines, "for int8: --calibrate FILE.npz, in Python qcomp.quantize"] if "f32" in kinds else lines
    lines = [f"{QUANTIZATIONS[quantization]}; {computed}"]
    if quantization != "weights" and report["macs"]:
        whole = report["macs_integer"] / report["macs"]
        share = f"{report['macs_integer_share']:.1%} of the quantized multiply-adds in integers"
        lines.append(f"{share}, {whole:.1%} of all {report['macs']:,}")
    return lines


def _float_lines(report: Report) -> list[str]:
    groups = float_ops(report["ops"])
    if not groups:
        return []
    conversions = sum(bool(row["reason"]) and row["op"].startswith("quant.") for row in report["ops"])
    between = f", {conversions} more between floats and codes" if conversions else ""
    count = sum(sum(group.ops.values()) for group in groups)
    return [f"{count} of {len(report['ops'])} ops, most work first{between}", *_some(list(map(str, groups)), "reasons")]


def _some(texts: Sequence[str], what: str) -> list[str]:
    more = [f"and {len(texts) - SHOWN_KINDS} more {what}"] if len(texts) > SHOWN_KINDS else []
    return [*texts[:SHOWN_KINDS], *more]


def _target(name: str) -> list[str]:
    target = TARGETS.get(name)
    if target is None:
        return [name]
    lines = [f"{name}: {target.description}"]
    best = find_target("native")
    if not runs_here(target):
        lines.append("does not run on this machine")
    elif best is not target:
        lines.append(f"{best.name} runs here too and is several times faster")
    elif best.isa == "c":
        lines.append("the fastest that runs here; CPUs with AVX512-VNNI are several times faster")
    return lines


def as_report(values: Mapping[str, Any]) -> Report:
    """Return `values` as a report, with the sums over its ops."""
    report = Report(values)
    rows = report["ops"]
    report["macs"] = sum(row["macs"] for row in rows)
    report["macs_integer"] = sum(row["macs"] for row in rows if row["compute"].startswith(("i", "ui", "si")))
    return report
