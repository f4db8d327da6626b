"""What a protocol says, in sentences."""

from __future__ import annotations

from sacm.experiments.named.findings import Overall
from sacm.experiments.named.pairs import own_gains, pairs
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named.gains import format_gain
from sacm.reports.named.headline import coverage_sentence
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.halves import split_halves
from sacm_lab.robust.protocols import GUARD_ON_CLEAN, ON_CLEAN, ORACLE_FLAGS, REFERENCES
from sacm_lab.robust.recovered import Recovered

_FEWEST_PAIRS = 6
"""The signed-rank test of fewer pairs cannot be below 0.05, however alike they are."""


def _fault_sentences(found: RobustFindings) -> list[str]:
    """Which strategies lower the mean error under faults most."""
    findings, name = found.findings, "mean_fault_mse"
    if name not in findings.metrics or found.recovered:
        return []
    tested = [
        one
        for one in findings.overall
        if one.metric == name and one.gain is not None and one.strategy not in REFERENCES
    ]
    if not tested:
        return []
    most = max(one.n for one in tested)  # means over fewer places are not comparable
    whole = [one for one in tested if one.n == most]
    best = sorted(whole, key=lambda one: -(one.gain or 0.0))[:3]
    listed = ", ".join(f"{one.strategy} {format_gain(one.gain, name)}" for one in best)
    return [f"Gain over raw in the mean error under faults, the three largest: {listed}."]


def robust_headline(found: RobustFindings) -> list[str]:
    """How much was run, and which strategies win back most."""
    said = [coverage_sentence(found.findings)]
    name = found.findings.metrics[0]
    said += _fault_sentences(found)
    whole = [
        one
        for one in found.recovered
        if not one.keys and one.metric == name and one.clear_share is not None
    ]
    ranked = sorted(
        (one for one in whole if one.strategy in found.findings.strategies[1:]),
        key=lambda one: -(one.share or 0.0),
    )
    own = [one for one in ranked if one.strategy not in REFERENCES]
    if own and own[0].share is not None and own[0].lost is not None:
        best = ", ".join(f"{one.strategy} {one.share:.0%}" for one in own[:3])
        said.append(
            f"Broken training data cost raw {own[0].lost:.0%} in {metric(name).phrase} on the "
            f"average; most of it is won back by {best}."
        )
        said += [
            f"Perfect knowledge of what is broken, with the same repair, wins back {one.share:.0%}."
            for one in whole
            if one.strategy == ORACLE_FLAGS
        ]
    return said


def summary_lines(found: RobustFindings) -> list[str]:
    """A protocol in one sentence: where it was run, what helps most, what the next best does."""
    findings = found.findings
    name = findings.metrics[0]
    tried = [
        one
        for one in findings.overall
        if one.metric == name and one.n and one.gain is not None and one.strategy not in REFERENCES
    ]
    if not tried:
        return []
    most = max(one.n for one in tried)  # means over fewer places are not comparable
    ranked = sorted(tried, key=lambda one: (one.n < most, -(one.gain or 0.0)))
    shares = {one.strategy: one for one in found.recovered if not one.keys and one.metric == name}
    best, *others = (_describe(one, shares) for one in ranked[:3])
    said = f"**{findings.name}**, {_places(found)}: {metric(name).phrase} against raw: {best}"
    said += f"; next {', '.join(others)}." if others else "."
    rest = (_elsewhere(found, ranked[0].strategy), _clean_cost(found))
    return [" ".join(filter(None, (said, *rest)))]


def _describe(one: Overall, shares: dict[str, Recovered]) -> str:
    """A strategy with its gain, interval and p-value, and what it wins back."""
    text = f"{one.strategy} {format_gain(one.gain, one.metric)}"
    inside = []
    if one.interval is not None and one.interval.low is not None:
        inside.append(f"[{number_format.interval(one.interval)}]")
    if one.adjusted_p_value is not None and one.n >= _FEWEST_PAIRS:
        p_value = number_format.probability(one.adjusted_p_value)
        inside.append(f"p {p_value}" if p_value.startswith("<") else f"p = {p_value}")
    share = shares.get(one.strategy)
    if share is not None and share.clear_share is not None:
        inside.append(f"wins back {share.clear_share:.0%}")
    return f"{text} ({', '.join(inside)})" if inside else text


def _places(found: RobustFindings) -> str:
    """What was run: data sets, networks, seeds."""
    groups = found.findings.groups
    datasets = ", ".join(dict.fromkeys(str(group.keys["data"]) for group in groups))
    networks = ", ".join(dict.fromkeys(str(group.keys["backbone"]) for group in groups))
    title = found.findings.title
    return f"{title[0].lower()}{title[1:]} ({networks} on {datasets})"


def _elsewhere(found: RobustFindings, strategy: str) -> str:
    """What a strategy does on the data sets that strategies were not chosen on."""
    findings, name = found.findings, found.findings.metrics[0]
    chosen, others = split_halves(findings.name, findings.groups)
    gains = own_gains(name, pairs(others, findings.baseline, strategy, name))
    if not chosen or not gains:
        return ""
    gain = format_gain(sum(gains) / len(gains), name)
    return f"On data sets that nothing was chosen on {strategy}: {gain}."


def _clean_cost(found: RobustFindings) -> str:
    """What repairing does where nothing is broken."""
    findings, name = found.findings, found.findings.metrics[0]
    both = pairs(findings.groups, ON_CLEAN, GUARD_ON_CLEAN, name)
    gains = own_gains(name, both)
    if not gains:
        return ""
    return f"Guard on clean rows: {format_gain(sum(gains) / len(gains), name)}."
