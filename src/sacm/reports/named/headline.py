"""What an experiment says, in sentences that claim no more than its numbers do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sacm.experiments.named.findings import Findings, Overall
from sacm.experiments.named.rows import in_both
from sacm.experiments.statistics import FEWEST_RESAMPLED
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.compare_headline import SIGNIFICANT
from sacm.reports.named import gains
from sacm.tasks import get_task


def experiment_headline(findings: Findings) -> list[str]:
    """How much was run; what changed and whether chance could do it; what the paper says.

    Of many strategies the last is the one in question; the others are counted.
    """
    first = [one for one in findings.overall if one.metric == findings.metrics[0]]
    tested = [one for one in first if _is_tested(one)]
    said = [coverage_sentence(findings)]
    if not tested:
        return said
    if len(tested) > 1 and all(_interval(one) is not None for one in tested):
        said.append(_several(findings, tested))
    chosen = tested[-1]
    said += [_result(findings, chosen), _against_paper(findings, chosen)]
    return [sentence for sentence in (*said, _others(findings, chosen.strategy)) if sentence]


def coverage_sentence(findings: Findings) -> str:
    """How much of the grid was run, and in which size."""
    cover = findings.coverage
    if not cover.total:
        return "The grid is empty."
    made = [g for g in findings.groups if any(run.state != "missing" for run in g.runs)]
    sizes = sorted({group.size for group in made})
    where = f" (size: {', '.join(sizes)})" if sizes else ""
    grid = f"the {number_format.count(cover.total, 'run')} of the grid"
    if cover.total < cover.declared:
        grid = (
            f"the {number_format.count(cover.total, 'run')} chosen from the grid's {cover.declared}"
        )
    if not cover.done and not cover.failed:
        return f"None of {grid} has been made."
    parts = [f"{cover.done} are done" if cover.done != 1 else "1 is done"]
    if cover.failed:
        parts.append(f"{cover.failed} failed")
    if cover.missing:
        parts.append(f"{cover.missing} {'was' if cover.missing == 1 else 'were'} not made")
    listed = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"Of {grid}{where}, {listed}."


def _is_tested(overall: Overall) -> bool:
    return overall.n > 0 and overall.gain is not None and not metric(overall.metric).descriptive


def _result(findings: Findings, overall: Overall) -> str:
    mean = gains.format_gain(overall.gain, overall.metric)
    evidence = [f"mean gain {mean} over {number_format.count(overall.n, 'pair')}"]
    if _interval(overall) is not None:
        ends = number_format.interval(overall.interval)
        evidence.append(f"95 % interval {ends} {gains.unit(overall.metric)}")
    if overall.comparison is not None:
        score = overall.comparison.win_tie_loss
        evidence.append(f"better in {score.wins}")
        evidence += [f"equal in {score.ties}"] if score.ties else []
        evidence.append(f"worse in {score.losses}")
    if overall.adjusted_p_value is not None:
        chance = number_format.p_equals(overall.adjusted_p_value)
        evidence.append(f"signed-rank {chance} after Holm's correction")
    return f"{_verdict(findings, overall)} ({', '.join(evidence)})."


def _verdict(findings: Findings, overall: Overall) -> str:
    """Better or worse only where the interval leaves out 0."""
    strategy, baseline = overall.strategy, findings.baseline
    phrase, side = metric(overall.metric).phrase, _side(overall)
    if overall.n < FEWEST_RESAMPLED:
        few = number_format.count(overall.n, "pair")
        be = "is" if overall.n == 1 else "are"
        return f"{few} {be} too few to tell {strategy} and {baseline} apart in {phrase}"
    if not side:
        return f"This does not show a difference in {phrase} between {strategy} and {baseline}"
    p_value = overall.adjusted_p_value
    if p_value is None or p_value >= SIGNIFICANT:
        return f"{strategy} is {side} than {baseline} in {phrase}, but not significantly"
    return f"{strategy} is {side} than {baseline} in {phrase}"


def _several(findings: Findings, tested: Sequence[Overall]) -> str:
    sides = Counter(_side(one) for one in tested)
    phrase = metric(tested[0].metric).phrase
    return (
        f"Of {len(tested)} strategies, {sides['better']} are better than {findings.baseline} in "
        f"{phrase}, {sides['worse']} are worse, and {sides['']} cannot be told from it, by 95 % "
        "intervals not corrected for their number."
    )


def _interval(overall: Overall) -> tuple[float, float] | None:
    found = overall.interval
    if found is None or found.low is None or found.high is None:
        return None
    return found.low, found.high


def _side(overall: Overall) -> str:
    """`better` or `worse`; empty when 0 lies within the interval, or there is none."""
    low, high = _interval(overall) or (0.0, 0.0)
    return "better" if low > 0 else "worse" if high < 0 else ""


def _short(overall: Overall, *, name: str) -> str:
    mean = gains.format_gain(overall.gain, overall.metric)
    if _interval(overall) is None:
        return f"{name} {mean} (n = {overall.n})"
    doubt = "" if _side(overall) else ", includes 0"
    chance = overall.adjusted_p_value
    tested = "" if chance is None else f", {number_format.p_equals(chance)}"
    ends = number_format.interval(overall.interval)
    return f"{name} {mean} ({ends}{doubt}{tested}, n = {overall.n})"


def _others(findings: Findings, strategy: str) -> str:
    """The task's other measures; a point-adjusted score never stands alone."""
    names = [
        name for name in get_task(findings.task).leading_metrics if name in findings.metrics[1:]
    ]
    lines = [
        _short(one, name=metric(one.metric).phrase)
        for one in findings.overall
        if one.metric in names and one.strategy == strategy and _is_tested(one)
    ]
    return f"Other measures: {'; '.join(lines)}." if lines else ""


def _against_paper(findings: Findings, overall: Overall) -> str:
    kind = (overall.metric, overall.strategy)
    if not overall.paper_rows:
        return ""
    rows = [row for row in findings.rows if (row.metric, row.strategy) == kind and in_both([row])]
    part = sum(row.n < row.expected for row in rows)
    doubt = f" ({part} of them incomplete here)" if part else ""
    over = "the row" if len(rows) == 1 else f"the {len(rows)} rows"
    ours, theirs = (
        gains.format_gain(g, overall.metric) for g in (overall.row_gain, overall.paper_gain)
    )
    return (
        f"On {over} that both have{doubt}, the mean gain in {metric(overall.metric).phrase} is "
        f"{ours} here and {theirs} in the paper."
    )
