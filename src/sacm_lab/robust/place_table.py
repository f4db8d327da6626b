"""Protocols with broken training data place by place: what is lost, and what wins it back."""

from __future__ import annotations

from collections.abc import Sequence

from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.grid_points import Key
from sacm.experiments.named.findings import Group
from sacm.reports import number_format
from sacm.reports.named.tables import key_text
from sacm.reports.number_format import UNDEFINED
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.protocols import GUARD_ON_CLEAN, ON_CLEAN
from sacm_lab.robust.recovered import CLEAR_LOSS, WIDEST, Recovered
from sacm_lab.robust.tables import defined_values, mean_text, places_of

GUARD = "guard"
OF_GUARD = (f"interval of {GUARD}", f"p of {GUARD}")
PLACES_LEGEND = (
    "The protocol's first metric: means over seeds; guard on clean rows as a change of raw there. "
    f"Strategies: how much of what raw lost is won back, where it lost more than {CLEAR_LOSS:.0%} "
    f"and the 95 % interval is not wider than {WIDEST:.0%}; "
    "elsewhere, with a sign, how much better than raw they are. Interval: 95 % of guard's share, "
    "bootstrapped over seeds; p: guard against raw, paired t-test over seeds, Holm-corrected over "
    "all strategies and places of the protocol."
)


def place_table(found: RobustFindings) -> TextTable:
    """One line for each place of a protocol that was also run on clean data."""
    names = list(dict.fromkeys(one.strategy for one in found.recovered if one.n))
    headings = (
        *("data", "network", "broken"),
        *(ON_CLEAN, GUARD_ON_CLEAN, "raw", "lost"),
        *names,
        *OF_GUARD,
    )
    rows = list(_rows(found, names))
    # Where nothing was repaired there is nothing to say about repairs.
    shown = [
        at
        for at, heading in enumerate(headings)
        if heading not in (GUARD_ON_CLEAN, *OF_GUARD)
        or any(row.cells[at] != UNDEFINED for row in rows)
    ]
    return TextTable(
        tuple(headings[at] for at in shown),
        tuple(TableRow(tuple(row.cells[at] for at in shown)) for row in rows),
        text_columns=3,
    )


def guard_sentence(found: RobustFindings) -> str:
    """What guard does on the mean of the places that lose, and where it is worse than raw."""
    metric = found.findings.metrics[0]
    own = [
        one
        for one in found.recovered
        if one.keys and one.metric == metric and one.strategy == GUARD and one.won is not None
    ]
    shares = [one.clear_share for one in own if one.clear_share is not None]
    if not shares:
        return ""
    said = (
        f"{found.findings.name}: guard wins back {sum(shares) / len(shares):.0%} on the mean of "
        f"the {len(shares)} places where raw lost more than {CLEAR_LOSS:.0%}, between "
        f"{min(shares):.0%} and {max(shares):.0%}"
    )
    worse = [-one.won for one in own if one.won is not None and one.won < 0]
    said += (
        f"; it is worse than raw in {len(worse)} of {len(own)}, by {max(worse):.1%} at most."
        if worse
        else "; it is nowhere worse than raw."
    )
    return f"{said} {_clean_sentence(found)}".rstrip()


def _clean_sentence(found: RobustFindings) -> str:
    """What repairing does to clean rows, once for every data set and network."""
    findings = found.findings
    changes = {
        (keys["data"], keys["backbone"]): _change(groups, findings.metrics[0])
        for keys, groups in places_of(findings)
    }
    known = [one for one in changes.values() if one is not None]
    if not known:
        return ""
    mean, least, most = (
        number_format.percent(one) for one in (sum(known) / len(known), min(known), max(known))
    )
    return (
        f"On clean rows it changes the error by {mean} on the mean of {len(known)} pairs of data "
        f"set and network, between {least} and {most}."
    )


def _rows(found: RobustFindings, names: list[str]) -> list[TableRow]:
    findings = found.findings
    metric = findings.metrics[0]
    by_place: dict[tuple[Key, ...], dict[str, Recovered]] = {}
    for one in found.recovered:
        if one.keys and one.metric == metric and one.n:
            at = tuple(one.keys[key] for key in findings.row_keys)
            by_place.setdefault(at, {})[one.strategy] = one
    rows: list[TableRow] = []
    for keys, groups in places_of(findings):
        own = by_place.get(tuple(keys[key] for key in findings.row_keys), {})
        if not own:
            continue
        words = [key_text(keys.get(key, "")) for key in ("data", "backbone", "contamination")]
        lost = next(iter(own.values())).lost
        cells = (
            *words,
            mean_text(groups, ON_CLEAN, metric),
            number_format.percent(_change(groups, metric)),
            mean_text(groups, findings.baseline, metric),
            number_format.percent(None if lost is None else 100 * lost),
            *(_share(own.get(name)) for name in names),
            _interval(own.get(GUARD)),
            _p_value(own.get(GUARD)),
        )
        rows.append(TableRow(cells))
    return rows


def _change(groups: Sequence[Group], metric: str) -> float | None:
    """What repairing does to clean rows, in percent of raw's mean."""
    raw, own = (defined_values(groups, name, metric) for name in (ON_CLEAN, GUARD_ON_CLEAN))
    if not raw or len(own) != len(raw):
        return None
    return 100 * (sum(own) / sum(raw) - 1)


def _share(one: Recovered | None) -> str:
    if one is None or one.lost is None or one.won is None:
        return UNDEFINED
    if one.clear_share is not None:
        return f"{100 * one.clear_share:.0f}"
    return number_format.percent(100 * one.won)


def _interval(one: Recovered | None) -> str:
    if one is None or one.clear_share is None or one.low is None or one.high is None:
        return UNDEFINED
    return f"{100 * one.low:.0f} to {100 * one.high:.0f}"


def _p_value(one: Recovered | None) -> str:
    return number_format.probability(None if one is None else one.adjusted_p_value)
