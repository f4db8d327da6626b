"""Faults at test place by place: what every strategy gains, and what is left of the worst fault."""

from __future__ import annotations

from collections.abc import Sequence

from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import own_gains, pairs
from sacm.reports.named.gains import format_gain
from sacm.reports.named.tables import key_text
from sacm.reports.number_format import UNDEFINED
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.protocols import PROTECTED
from sacm_lab.robust.tables import defined_values, mean_text, places_of

MEASURE, WORST, CLEAN = "mean_fault_mse", "worst_degradation", "clean_mse"
FAULT_PLACES_LEGEND = (
    "Strategies: gain over raw of the same seed in the mean error under faults, mean over seeds. "
    f"D_w: the worst fault's error over the clean one, raw → {PROTECTED}. Clean: gain of "
    f"{PROTECTED} where there is no fault."
)


def fault_place_table(found: RobustFindings) -> TextTable:
    """One line for each data set and network of a protocol with faults at test."""
    findings = found.findings
    names = [name for name in findings.strategies if name not in (findings.baseline, PROTECTED)]
    headings = ("data", "network", "seeds", PROTECTED, *names, "D_w", "clean")
    rows = []
    for keys, groups in places_of(findings):
        where = (key_text(keys[key]) for key in ("data", "backbone"))
        rows.append(TableRow((*where, *_cells(findings, groups, names))))
    return TextTable(headings, tuple(rows), text_columns=2)


def _cells(findings: Findings, groups: Sequence[Group], names: Sequence[str]) -> tuple[str, ...]:
    raw = findings.baseline
    worst = " → ".join(mean_text(groups, name, WORST) for name in (raw, PROTECTED))
    return (
        str(len(defined_values(groups, raw, MEASURE))),
        *(_gain(groups, raw, name, MEASURE) for name in (PROTECTED, *names)),
        worst,
        _gain(groups, raw, PROTECTED, CLEAN),
    )


def _gain(groups: Sequence[Group], raw: str, strategy: str, name: str) -> str:
    gains = own_gains(name, pairs(groups, raw, strategy, name))
    return format_gain(sum(gains) / len(gains), name) if gains else UNDEFINED
