"""What a comparison says, in sentences that claim no more than its numbers do."""

from __future__ import annotations

from sacm.experiments.compare import Comparison, MetricPair
from sacm.experiments.statistics import PairedComparison
from sacm.metrics.catalogue import metric
from sacm.reports.number_format import count, format_difference, number, p_equals, percent
from sacm.tasks import get_task

SIGNIFICANT = 0.05
FEW = 5  # pairs, below which a t-test rests on hardly any spread
_WORSE = "It is significantly worse"


def compare_headline(comparison: Comparison) -> list[str]:
    """A few sentences for each strategy: what changed, by how much, and whether chance could do it.

    A point-adjusted score comes with what random scores reach and with unadjusted measures.
    """
    shown = [
        name for name in get_task(comparison.task).leading_metrics if name in comparison.metrics
    ]
    sentences = []
    for strategy in comparison.strategies[1:]:
        first, *others = [comparison.pair(strategy, name) for name in shown]
        sentences.append(" ".join(_main(comparison, first)))
        rest = [_short(pair) for pair in others]
        if rest:
            sentences.append("Other measures: " + "; ".join(rest) + ".")
    return sentences


def _main(comparison: Comparison, pair: MetricPair) -> list[str]:
    known = metric(pair.metric)
    place = f"{comparison.settings['backbone']} on {comparison.settings['data']}"
    if pair.result is None:
        return [f"The {known.phrase} of {place} is {pair.reason}."]
    result, base = pair.result, comparison.strategies[0]
    found = [
        f"Over {count(pair.n, 'seed')}, {pair.strategy} {_verb(result)} the {known.phrase} of "
        f"{place} {_change(result, base)}{_gain(pair.metric, result)}{_record(result)}.",
        _chance(result),
    ]
    if known.random:
        reached = [s.metrics[known.random].mean for s in comparison.summaries]
        found.append(
            f"Random scores that raise as many alarms reach {number(reached[0])} ({base}) and "
            f"{number(reached[comparison.strategies.index(pair.strategy)])} under the same "
            "adjustment."
        )
    return found


def _short(pair: MetricPair) -> str:
    phrase = metric(pair.metric).phrase
    if pair.result is None:
        return f"{phrase} {pair.reason}"
    result = pair.result
    chance = "" if result.t_test.p_value is None else f", {p_equals(result.t_test.p_value)}"
    gain = percent(result.gain_of_means)
    if metric(pair.metric).share:
        gain = format_difference(result.improvement.mean, share=True, like=result.raw.mean)
    return f"{phrase} {number(result.raw.mean)} → {number(result.treated.mean)} ({gain}{chance})"


def _verb(result: PairedComparison) -> str:
    if result.improvement.mean == 0:
        return "leaves"
    rises = (result.improvement.mean > 0) == result.higher_is_better
    return "raises" if rises else "lowers"


def _change(result: PairedComparison, base: str) -> str:
    if result.improvement.mean == 0:
        return f"at {number(result.raw.mean)}, that of {base}"
    return f"from {number(result.raw.mean)} ({base}) to {number(result.treated.mean)}"


def _gain(name: str, result: PairedComparison) -> str:
    """In percent of the baseline; in percentage points for shares."""
    gain, unit = result.gain_of_means, "%"
    if metric(name).share:
        gain, unit = 100 * result.improvement.mean, "percentage points"
    if gain is None or result.improvement.mean == 0:
        return ""
    if abs(gain) < 0.05:
        return f", less than 0.1 {unit}"
    return f", a {'gain' if gain > 0 else 'loss'} of {abs(gain):.1f} {unit}"


def _record(result: PairedComparison) -> str:
    score = result.win_tie_loss
    better = f"better in {score.wins} of {score.n}"
    return f" ({better}{f', equal in {score.ties}' if score.ties else ''})"


def _chance(result: PairedComparison) -> str:
    test = result.t_test
    if test.n == 1:
        return "One seed cannot tell a difference from chance."
    if test.p_value is None:
        return f"There is no t-test: {test.reason}."
    said = f"paired t-test, {p_equals(test.p_value)}, n = {test.n}"
    if test.p_value >= SIGNIFICANT:
        return f"The difference is not significant ({said})."
    verdict = "The difference is significant" if result.improvement.mean > 0 else _WORSE
    if test.n < FEW:
        return f"{verdict} ({said}), but {test.n} seeds are few to conclude from."
    return f"{verdict} ({said})."
