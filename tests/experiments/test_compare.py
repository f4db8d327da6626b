"""Comparisons: pairs, tables, sentences and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from sacm.errors import ArgumentError, DataError
from sacm.experiments.compare import (
    Comparison,
    compare_runs,
    comparison_page,
    cost_table,
    headline,
    result_table,
)
from sacm.inference.run_page import run_page
from tests.experiments.cases import write_pairs, write_run
from tests.experiments.trained import DATA, trained
from tests.reports.reading import Page


def test_a_table_by_hand(tmp_path):
    found = compare_runs(write_pairs(tmp_path, "mse", [2.0, 4.0, 6.0], [1.0, 4.0, 3.0]))
    table = result_table(found)
    assert table.caption == "Test results over seeds 1, 2, 3"
    raw, sacm = (dict(zip(table.headings, row, strict=True)) for row in table.rows)
    assert (raw["mean"], raw["gain"], raw["n"]) == ("4.000 ± 2.000", None, 3)
    assert (sacm["mean"], sacm["gain"]) == ("2.667 ± 1.528", "+33.3 %")
    assert (sacm["W/T/L"], sacm["n"]) == ("2/1/0", 3)


def test_costs_and_rates(tmp_path):
    runs = [
        write_run(tmp_path, strategy="raw", seed=s, row={"mse": 1.0}, epochs=4, seconds=6.0)
        for s in (1, 2)
    ]
    runs += [
        write_run(tmp_path, strategy="sacm", seed=s, row={"mse": 1.0}, rates=(0.2 * s, 0.1))
        for s in (1, 2)
    ]
    table = cost_table(compare_runs(runs))
    raw, sacm = (dict(zip(table.headings, row, strict=True)) for row in table.rows)
    assert (raw["seconds"], raw["s / epoch"], raw["rate mean"]) == (
        *("6.00 ± 0.00", "1.50 ± 0.00"),
        None,
    )
    assert sacm["rate mean"] == "0.300 ± 0.141"


@pytest.mark.parametrize(
    ("raw", "sacm", "sentence"),
    [
        (
            [4.0],
            [3.0],
            "sacm: MSE of PatchTST on waves 4.000 (raw) → 3.000, gain +25.0 % "
            "(better in 1 of 1 seed). One seed cannot tell a difference from chance.",
        ),
        (
            [4.0, 4.1],
            [4.0, 4.1],
            "4.050 (raw) → 4.050, gain +0.0 % (better in 0 of 2 seeds, equal in 2). "
            "There is no t-test: all differences are equal.",
        ),
        (
            [4.0, 4.1, 4.2],
            [4.5, 4.7, 4.6],
            "gain −12.2 % (better in 0 of 3 seeds). It is "
            "significantly worse (paired t-test, p = 0.013, n = 3), but 3 seeds are few",
        ),
    ],
)
def test_sentences_claim_no_more_than_the_numbers(tmp_path, raw, sacm, sentence):
    assert sentence in headline(compare_runs(write_pairs(tmp_path, "mse", raw, sacm)))[0]


def test_several_strategies_are_judged_with_corrected_p_values(tmp_path):
    errors = {"raw": [4.0, 4.1, 4.2], "sacm": [4.5, 4.7, 4.6], "fixed(p=0.2)": [4.1, 4.0, 4.3]}
    runs = [
        write_run(tmp_path, strategy=strategy, seed=seed, row={"mse": mse})
        for strategy, own in errors.items()
        for seed, mse in enumerate(own, 1)
    ]
    found = compare_runs(runs)
    gain = found.gain("sacm", "mse")
    assert gain["p_holm"] == pytest.approx(2 * gain["p"])
    cells = {row[1]: row for row in result_table(found).rows}["sacm"]
    assert float(cells[-2]) == pytest.approx(gain["p_holm"], rel=0.05)
    assert "Holm-corrected p = 0.02" in headline(found)[0]


def test_an_undefined_metric_is_said(tmp_path):
    row = {"f1_pa": None, "f1": 0.5}
    runs = [
        write_run(tmp_path, strategy=s, seed=1, row=row, task="anomaly", backbone="TranAD")
        for s in ("raw", "sacm")
    ]
    assert headline(compare_runs(runs))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 48}, "has horizon = 48 where .* has 24: these runs are not pairs"),
        ({"fingerprint": "f" * 16}, "has fingerprint = 'ffff.* these runs are not pairs"),
        ({"seed": 2}, "raw has no run of seed 2"),
    ],
)
def test_runs_that_are_no_pairs(tmp_path, change, message):
    raw = write_run(tmp_path, strategy="raw", seed=1, row={"mse": 1.0})
    options = {"strategy": "sacm", "seed": 1, "row": {"mse": 1.0}, **change}
    with pytest.raises(ArgumentError, match=message):
        compare_runs([raw, write_run(tmp_path, **options)])


def test_runs_without_a_test(tmp_path):
    runs = [write_run(tmp_path, strategy=s, seed=1, row=None) for s in ("raw", "sacm")]
    with pytest.raises(DataError, match="waves has no test windows"):
        compare_runs(runs)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Comparison]:
    folder = tmp_path_factory.mktemp("compared")
    return {task: trained(task, ["raw", "sacm"], folder / task) for task in DATA}


@pytest.mark.slow
@pytest.mark.parametrize("task", DATA)
def test_a_page_has_every_section_and_needs_nothing_but_itself(cases, task):
    text = comparison_page(cases[task])
    page = Page(text)
    assert page.headings == ["Results", "Every pair", "Details"]
    assert all(reference.startswith(("#", "data:")) for reference in page.references)
    assert "http" not in text
    said = "".join(page.text)
    assert all(sentence in said for sentence in headline(cases[task]))
    if task == "anomaly":
        assert "random (sacm)" in said


@pytest.mark.slow
@pytest.mark.parametrize("task", DATA)
def test_the_page_of_a_run(cases, task):
    page = Page(run_page(cases[task].first_run))
    begins = {"forecasting": "Forecast", "anomaly": "Alarms in the test rows"}
    assert page.headings[0] == begins.get(task, "Results")
    assert page.headings[-1] == "Details"
    said = "".join(page.text)
    assert f": {Path(cases[task].first_run.settings.data).stem}" in said
    assert any(verdict in said for verdict in ("Better than every", "model loses", "not beat"))
