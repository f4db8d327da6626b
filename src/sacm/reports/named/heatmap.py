"""Rows of an experiment as a map: one table for each metric and strategy, a cell for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from sacm.experiments.named.findings import FindingRow, Findings
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named import gains
from sacm.reports.named.tables import key_text, shown_rows

_DEEPEST = 50  # percent of colour; more would drown the text
_SYMBOLS = {"failed": "✕", "missing": "·"}
_WORDS = {"failed": "failed", "missing": "not run"}

COLOURS = "Blue and +: better than the baseline; orange and −: worse; the deeper, the more. "
SIGNS = (
    "Stripes with ✕: failed; stripes with a dot: not run. A fraction below a number: only so many "
    "of its pairs are there. Choose a cell to see its runs."
)


@dataclass(frozen=True)
class Axes:
    """Which keys go down and which go across, with their values in order."""

    down: tuple[str, ...]
    across: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, ...], ...]


def heatmaps(findings: Findings) -> str:
    """All maps as HTML; all but the first are hidden until a script shows them."""
    rows = shown_rows(findings)
    numbered = {id(row): place for place, row in enumerate(findings.rows)}
    kinds = list(dict.fromkeys((row.metric, row.strategy) for row in rows))
    # The last strategy is the one in question, the baseline the least.
    kinds.sort(key=lambda kind: kind[1] != findings.strategies[-1])
    kinds.sort(key=lambda kind: kind[1] == findings.baseline)
    axes = _axes(findings, rows)
    drawn = []
    for place, (name, strategy) in enumerate(kinds):
        chosen = {
            _place(axes, row): (numbered[id(row)], row)
            for row in rows
            if (row.metric, row.strategy) == (name, strategy)
        }
        drawn.append(_map(findings, axes, chosen, (name, strategy), hidden=place > 0))
    return "".join(drawn)


def row_state(findings: Findings, row: FindingRow) -> str:
    """`done`, or `failed` or `missing` when no pair of the row has a value."""
    if row.n:
        return "done"
    needed = {row.strategy, findings.baseline}
    runs = [run for place in row.groups for run in findings.groups[place].runs]
    failed = any(run.state == "failed" for run in runs if run.strategy in needed)
    return "failed" if failed else "missing"


def _axes(findings: Findings, rows: Sequence[FindingRow]) -> Axes:
    keys = findings.row_keys
    down = ("backbone",) if "backbone" in keys else keys[:1]
    across = tuple(key for key in keys if key not in down)

    def values(chosen: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        found = (tuple(key_text(row.keys.get(key)) for key in chosen) for row in rows)
        return tuple(dict.fromkeys(found))

    return Axes(down, across, values(down), values(across))


def _place(axes: Axes, row: FindingRow) -> tuple[tuple[str, ...], tuple[str, ...]]:
    down = tuple(key_text(row.keys.get(key)) for key in axes.down)
    return down, tuple(key_text(row.keys.get(key)) for key in axes.across)


ChosenRows = dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[int, FindingRow]]


def _map(
    findings: Findings, axes: Axes, chosen: ChosenRows, kind: tuple[str, str], *, hidden: bool
) -> str:
    name, strategy = kind
    found = [row.gain for _, row in chosen.values() if row.gain is not None]
    # A single extreme row must not leave all others pale.
    deepest = float(np.quantile(np.abs(found), 0.9)) if found else 0.0
    title = f"{metric(name).label}: {strategy}"
    if strategy != findings.baseline:
        title += f" against {findings.baseline}"
    if found and not metric(name).descriptive:
        title += f"; full colour from ±{deepest:.1f} {gains.unit(name)}"
    across = " · ".join(axes.across)
    corner = " \\ ".join(filter(None, [" · ".join(axes.down), across]))
    heads = "".join(f'<th scope="col">{_lines(column)}</th>' for column in axes.columns)
    body = "".join(
        f'<tr><th scope="row">{_lines(line)}</th>'
        + "".join(_cell(findings, chosen.get((line, column)), deepest) for column in axes.columns)
        + "</tr>"
        for line in axes.lines
    )
    shut = " hidden" if hidden else ""
    named = f'data-metric="{escape(name)}" data-strategy="{escape(strategy)}"'
    return (
        f'<div class="map" {named}{shut}><p class="note">{escape(title)}</p><div class="wide">'
        f'<table aria-label="{escape(title)}"><thead><tr><th scope="col">{escape(corner)}</th>'
        f"{heads}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def _lines(texts: tuple[str, ...]) -> str:
    return "<br>".join(map(escape, texts)) or "all"


def _cell(findings: Findings, found: tuple[int, FindingRow] | None, deepest: float) -> str:
    if found is None:
        return '<td class="none"></td>'
    place, row = found
    state = row_state(findings, row)
    text, kind, depth = _shown(row, state, deepest)
    part = f"{row.n}/{row.expected}" if 0 < row.n < row.expected else ""
    small = f"<small>{part}</small>" if part else ""
    where = ", ".join(f"{key} {key_text(value)}" for key, value in row.keys.items())
    unit = f" {gains.unit(row.metric)}" if kind != "plain" else ""
    said = f"{where}: {_WORDS.get(state, text + unit)}, {row.n} of {row.expected}"
    return (
        f'<td class="{kind}" style="--depth:{depth}%"><button type="button" '
        f'data-row="{place}" aria-label="{escape(said)}">{escape(text)}{small}</button></td>'
    )


def _shown(row: FindingRow, state: str, deepest: float) -> tuple[str, str, int]:
    """Text, class and depth of colour."""
    if state in _SYMBOLS:
        return _SYMBOLS[state], state, 0
    if row.gain is None or metric(row.metric).descriptive:
        return (
            number_format.number(None if row.value is None else row.value.mean, digits=3),
            "plain",
            0,
        )
    share = min(1.0, abs(row.gain) / deepest) if deepest else 0.0
    kind = "better" if row.gain > 0 else "worse" if row.gain < 0 else "plain"
    return number_format.percent(row.gain).removesuffix(" %"), kind, round(_DEEPEST * share)
