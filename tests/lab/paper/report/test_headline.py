from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from sacm.experiments.named.findings import Coverage
from sacm.experiments.statistics import bootstrap_mean
from sacm.reports.named.headline import coverage_sentence, experiment_headline
from tests.lab.paper.report.cases import any_findings, hand_made, with_ranks

ANY = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def changed(**values):
    found = hand_made()
    return replace(found, overall=(replace(found.overall[0], **values),))


def test_an_interval_with_zero_shows_nothing():
    said = experiment_headline(hand_made())
    assert said[0] == (
        "Of the 16 runs of the grid (size: paper, small), 11 are done, 1 failed and 4 were not "
        "made."
    )
    assert said[1].startswith("This does not show a difference in MSE between sacm and raw (mean")
    assert "better in 3, equal in 1, worse in 1, signed-rank p = 0.500" in said[1]
    assert said[2] == (
        "On the row that both have, the mean gain in MSE is +8.3 % here and +20.0 % in the paper."
    )


def test_a_part_of_the_grid_is_called_one():
    found = hand_made()
    found = replace(found, coverage=replace(found.coverage, declared=144))
    assert experiment_headline(found)[0].startswith(
        "Of the 16 runs chosen from the grid's 144 (size: paper,"
    )


def test_rows_that_are_not_whole_are_counted():
    found = hand_made()
    rows = [replace(row, paper=found.rows[0].paper) for row in found.rows]
    overall = replace(found.overall[0], row_gain=5.0, paper_rows=3)
    found = replace(found, rows=tuple(rows), overall=(overall,))
    assert experiment_headline(found)[2].startswith(
        "On the 3 rows that both have (1 of them incomplete here), the mean gain in MSE is +5.0 %"
    )


def test_better_and_worse_need_both_interval_and_test():
    above, below = (bootstrap_mean([sign * 1.0] * 4 + [sign * 3.0]) for sign in (1, -1))
    assert experiment_headline(changed(interval=above, adjusted_p_value=0.01))[1].startswith(
        "sacm is better than raw in MSE (mean gain +3.0 % over 5 pairs, 95 % interval +1.0"
    )
    assert experiment_headline(changed(interval=below, adjusted_p_value=0.0001))[1].startswith(
        "sacm is worse than raw in MSE (mean"
    )
    assert "p < 0.001" in experiment_headline(changed(interval=below, adjusted_p_value=0.0001))[1]
    assert (
        "better than raw in MSE, but not significantly"
        in experiment_headline(changed(interval=above))[1]
    )


def test_few_pairs_tell_nothing():
    for values, start in (
        ([5.0], "1 pair is too few"),
        ([5.0, 6.0, 7.0, 8.0], "4 pairs are too few"),
    ):
        n, interval = len(values), bootstrap_mean(values)
        said = experiment_headline(changed(n=n, interval=interval, adjusted_p_value=0.01))[1]
        assert said.startswith(f"{start} to tell sacm and raw apart in MSE (mean gain")
        assert "interval" not in said


def test_many_strategies_are_counted():
    said = experiment_headline(with_ranks())
    assert said[1].startswith("Of 2 strategies, 0 are better than raw in MSE, 0 are worse, and 2")
    assert "between sacm and raw" in said[2]


def test_an_adjusted_score_never_stands_alone():
    found = changed(metric="f1_pa")
    plain = replace(found.overall[0], metric="f1", gain=-1.0)
    found = replace(
        found, task="anomaly", metrics=("f1_pa", "f1"), overall=(*found.overall, plain), rows=()
    )
    assert experiment_headline(found)[-1].startswith("Other measures: F1 −1.0 pp (")
    assert ", includes 0, p = 0.500, n = 5)." in experiment_headline(found)[-1]


def test_nothing_run():
    found = replace(hand_made(), coverage=Coverage(16, 0, 0, 16, 16))
    assert coverage_sentence(found) == "None of the 16 runs of the grid has been made."
    empty = replace(found, coverage=Coverage(0, 0, 0, 0, 16))
    assert coverage_sentence(empty) == "The grid is empty."


@ANY
@given(any_findings())
def test_sentences_are_whole(findings):
    assert all(sentence.endswith(".") for sentence in experiment_headline(findings))
