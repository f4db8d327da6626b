"""Which strategy when: what helped most in every situation of the protocols, if anything did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sacm.data.corrupt import Contamination
from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import pairs, value_of
from sacm.experiments.statistics import (
    ConfidenceInterval,
    bootstrap_mean,
    compare_pairs,
    holm,
    relative_gain,
)
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.number_format import UNDEFINED
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.halves import split_halves
from sacm_lab.robust.protocols import REFERENCES

_CERTAIN = 0.05
_ALSO = 4  # strategies that are named beside the best
Value = Callable[[Group, str], float | None]  # of a strategy in a group


@dataclass(frozen=True)
class Situation:
    """What a user may meet, and where the protocols measure it.

    Attributes:
        words: What it is called.
        protocol: Which protocol measures it.
        kind: The fault at test, or what broke the training data; empty for all.
    """

    words: str
    protocol: str
    kind: str = ""


CLEAN = "clean"
SITUATIONS = (
    Situation("training rows broken in places", "T", "mix"),
    Situation("training rows with wild noise on single steps", "T", "tsf_gaussian"),
    Situation("stuck sensors at prediction", "F", "stuck_sensor"),
    Situation("gaps at prediction, filled with the last value", "F", "missing_data"),
    Situation("spikes at prediction", "F", "spike"),
    Situation("noise at prediction", "F", "noise"),
    Situation("drifted sensors at prediction", "F", "drift"),
    Situation("sensors that lose gain, at prediction", "F", "attenuation"),
    Situation("both: broken training rows, faults at prediction", "TF"),
    Situation("wrong labels", "N"),
    Situation("anomalies in a detector's training rows", "C"),
    Situation("nothing is broken", "F", CLEAN),
)


class Advice(NamedTuple):
    """One strategy in one situation, against raw of the same data, network and seed.

    `confirmed`: its gain on the data sets that strategies were not chosen on; None where the
    protocol has no such halves, or was run on one of them.
    """

    strategy: str
    n: int
    gain: float
    interval: ConfidenceInterval | None
    p_value: float | None
    cost: float | None
    confirmed: float | None = None

    @property
    def certain(self) -> bool:
        """Whether it helps beyond doubt, and not only where it was chosen."""
        if self.p_value is None or self.p_value >= _CERTAIN or self.gain <= 0:
            return False
        return self.confirmed is None or self.confirmed > 0


def advise(situation: Situation, found: Sequence[RobustFindings]) -> list[Advice]:
    """Every strategy that was tried in a situation, the best first.

    Those that were tried in fewer places than others come last: their means are of other places.
    """
    tried: list[Advice] = []
    for findings in (one.findings for one in found if one.findings.name == situation.protocol):
        groups = [group for group in findings.groups if _belongs(group, situation)]
        named = (name for name in findings.strategies[1:] if name not in REFERENCES)
        compared = (_compare(findings, groups, name, situation) for name in named)
        tried += [one for one in compared if one is not None]
    adjusted = holm([one.p_value for one in tried]).p_values
    tried = [one._replace(p_value=p) for one, p in zip(tried, adjusted, strict=True)]
    most = max((one.n for one in tried), default=0)
    return sorted(tried, key=lambda one: (one.n < most, -one.gain))


def advice_table(found: Sequence[RobustFindings]) -> TextTable:
    """One line a situation that was measured."""
    lines = []
    for situation in SITUATIONS:
        tried = advise(situation, found)
        if tried:
            lines.append(TableRow((situation.words, *_cells(situation, tried))))
    headings = (
        "when",
        "use",
        "gain",
        "95 % interval",
        "p (W, Holm)",
        "n",
        "cost",
        "others, the best first",
    )
    return TextTable(headings, tuple(lines), text_columns=2)


ADVICE_LEGEND = (
    "Use: the strategy with the largest mean gain over raw of those that were tried in all places "
    "of the line, whose signed-rank test, corrected by Holm over the strategies of the line, is "
    "below 0.05, and that are also better than raw on the data sets that strategies were not "
    "chosen on; if there is none, nothing that was tried helps. Gain: in the error (percent) or in "
    "accuracy or VUS-PR (points), mean over n pairs of the same data, network and seed. Cost: "
    "seconds of training as a multiple of raw's."
)


def _belongs(group: Group, situation: Situation) -> bool:
    text = str(group.keys.get("contamination") or "")
    if situation.protocol != "T" or not situation.kind:
        return True
    return bool(text) and Contamination.parse(text).kind == situation.kind


def _measure(findings: Findings, situation: Situation) -> tuple[Value, bool, bool]:
    """What counts in a situation, whether more is better, and whether it is a share."""
    if situation.protocol != "F":
        name = findings.metrics[0]
        kind = metric(name)
        return lambda group, who: value_of(group, who, name), kind.higher_is_better, kind.share

    def under_fault(group: Group, strategy: str) -> float | None:
        """The error itself: the degradation is relative to the strategy's own clean error."""
        clean = value_of(group, strategy, "clean_mse")
        if situation.kind == CLEAN or clean is None:
            return clean
        times = value_of(group, strategy, f"degradation_{situation.kind}")
        return None if times is None else clean * times

    return under_fault, False, False


def _compare(
    findings: Findings, groups: Sequence[Group], strategy: str, situation: Situation
) -> Advice | None:
    value, higher, share = _measure(findings, situation)
    both = [(group, value(group, findings.baseline), value(group, strategy)) for group in groups]
    whole = [(one, raw, own) for one, raw, own in both if raw is not None and own is not None]
    if not whole:
        return None
    where, raw, own = (list(side) for side in zip(*whole, strict=True))
    gains = [
        100 * (after - before)
        if share
        else relative_gain(before, after, higher_is_better=higher) or 0.0
        for _, before, after in whole
    ]
    confirming = {group.keys["data"] for group in split_halves(findings.name, where)[1]}
    elsewhere = [
        gain for group, gain in zip(where, gains, strict=True) if group.keys["data"] in confirming
    ]
    test = compare_pairs(raw, own, higher_is_better=higher, relative=not share)
    spent = pairs(groups, findings.baseline, strategy, "train_seconds")
    return Advice(
        strategy,
        len(whole),
        sum(gains) / len(gains),
        bootstrap_mean(gains),
        test.wilcoxon.p_value,
        sum(spent[1]) / sum(spent[0]) if sum(spent[0]) > 0 else None,
        sum(elsewhere) / len(elsewhere) if elsewhere else None,
    )


def _cells(situation: Situation, tried: Sequence[Advice]) -> tuple[str, ...]:
    most = tried[0].n
    best = next((one for one in tried if one.n == most and one.certain), None)
    unit = " pp" if situation.protocol in ("N", "C") else " %"
    rest = [one for one in tried if one is not best][:_ALSO]
    others = ", ".join(
        f"{one.strategy} {one.gain:+.1f}" + (f" (n {one.n})" if one.n < most else "")
        for one in rest
    )
    if best is None:
        # So few pairs cannot reach the limit, however alike they are.
        few = len(tried) * 2.0 ** (1 - most) >= _CERTAIN
        said = "too few pairs to tell" if few else "nothing that was tried helps"
        return (said, *(UNDEFINED,) * 3, str(most), UNDEFINED, others)
    return (
        best.strategy,
        f"{best.gain:+.1f}{unit}",
        number_format.interval(best.interval),
        number_format.probability(best.p_value),
        str(best.n),
        UNDEFINED if best.cost is None else f"{best.cost:.1f}",
        others,
    )
