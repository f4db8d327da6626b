"""What a protocol says, in sentences."""

from __future__ import annotations

from sacm.metrics.catalogue import metric
from sacm.reports.named.headline import coverage_sentence
from sacm.robust.findings import RobustFindings
from sacm.robust.protocols import ORACLE_FLAGS, REFERENCES


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
    best = sorted(tested, key=lambda one: -(one.gain or 0.0))[:3]
    if not best:
        return []
    listed = ", ".join(f"{one.strategy} {one.gain:+.1f} %" for one in best)
    return [f"Gain over raw in the mean error under faults, the three largest: {listed}."]


def robust_headline(found: RobustFindings) -> list[str]:
    """How much was run, and which strategies win back most."""
    said = [coverage_sentence(found.findings)]
    name = found.findings.metrics[0]
    said += _fault_sentences(found)
    whole = [
        one
        for one in found.recovered
        if not one.keys and one.metric == name and one.share is not None
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
