"""Strategies by faults as a map: how each does, coloured by how it does against raw."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import metric_gain, pairs
from sacm.experiments.statistics import mean_and_deviation
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named.tables import key_text
from sacm_lab.robust.protocols import ON_CLEAN

_DEEPEST = 50  # percent of colour; more would drown the text
_FULL = 20.0  # percent of gain that has the full colour
_FAULT = "degradation_"

STYLE = """
.heat table{border-collapse:separate;border-spacing:2px}
.heat th{font-size:.8rem;font-weight:500;border:0;white-space:normal}
.heat td{text-align:center;border-radius:.2rem;box-shadow:inset 0 0 0 1px var(--grid)}
.heat td.better{background:color-mix(in srgb,var(--series-1) var(--depth),var(--paper))}
.heat td.worse{background:color-mix(in srgb,var(--series-0) var(--depth),var(--paper))}
.examples svg{max-width:52rem}
"""
LEGEND = (
    "Means over everything that was run. Blue: better than raw, orange: worse; full colour from "
    "20 % on. An empty cell was not run."
)

Column = tuple[str, str, list[Group]]  # heading, metric, groups


def heat_map(findings: Findings) -> str:
    """A table as HTML: a line for each strategy, a column for each fault."""
    columns = _columns(findings)
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head, _, _ in columns)
    body = "".join(
        f'<tr><th scope="row" class="text">{escape(strategy)}</th>'
        + "".join(_cell(findings, groups, name, strategy) for _, name, groups in columns)
        + "</tr>"
        for strategy in findings.strategies
    )
    return (
        '<div class="wide heat"><table aria-label="strategies by faults"><thead><tr>'
        f'<th scope="col" class="text">strategy</th>{heads}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def _columns(findings: Findings) -> list[Column]:
    """Faults at test, or else what broke the training data, on every data set."""
    everywhere = list(findings.groups)
    faults = [name for name in findings.metrics if name.startswith(_FAULT)]
    if faults:
        names = ("clean_mse", "mean_fault_mse", *faults)
        return [(metric(name).label, name, everywhere) for name in names]
    places: dict[str, list[Group]] = {}
    for group in everywhere:
        keys = ("data", "contamination")
        head = " ".join(key_text(group.keys[key]) for key in keys if key in group.keys)
        places.setdefault(head, []).append(group)
    return [(head, findings.metrics[0], groups) for head, groups in places.items()]


def _cell(findings: Findings, groups: Sequence[Group], name: str, strategy: str) -> str:
    raw, own = pairs(groups, findings.baseline, strategy, name)
    if not own:
        return "<td></td>"
    mean = mean_and_deviation(own).mean
    gain = metric_gain(name, mean_and_deviation(raw).mean, mean)
    if gain is None or strategy in (findings.baseline, ON_CLEAN):
        return f"<td>{number_format.number(mean, digits=3)}</td>"
    kind = "better" if gain > 0 else "worse"
    depth = round(_DEEPEST * min(1.0, abs(gain) / _FULL))
    shown = f"{number_format.number(mean, digits=3)}"
    title = f"{strategy}, {metric(name).label}: {number_format.percent(gain)} against raw"
    return f'<td class="{kind}" style="--depth:{depth}%" title="{escape(title)}">{shown}</td>'
