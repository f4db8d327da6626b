"""From a declaration and a frame to the rows and the report of an experiment."""

from __future__ import annotations

import csv
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sacm.errors import ArgumentError
from sacm_lab.commands import find_files, owner_of, write_between
from sacm_lab.experiment import RACE, Experiment, Part, count_declared, select_rows
from sacm_lab.paper.catalogue import EXPERIMENTS
from sacm_lab.paper.commands import make_report
from sacm_lab.paper.published import read_published
from sacm_lab.results import read_results, write_results
from tests.lab.frames import make_frame

PUBLISHED = [name for name in EXPERIMENTS.names() if read_published(name)]
TINY = Experiment(
    name="tiny",
    title="Tiny",
    where="nowhere",
    task="forecasting",
    datasets=("ILI",),
    backbones=("iTransformer",),
    strategies=("raw", "sacm", "fixed(p=0.1)", "fixed(p=0.2)"),
    derived=("best_fixed", RACE),
    horizons=(24,),
    seeds=(1, 2),
    metrics=("mse",),
    rows=("data", "horizon", "backbone"),
)


def test_every_experiment_is_declared_well() -> None:
    assert len(PUBLISHED) == 15
    for experiment in EXPERIMENTS.values():
        assert experiment.baseline in experiment.shown_strategies
        assert set(experiment.rows) <= set(experiment.cell)
        assert count_declared(experiment) > 0
    assert count_declared(EXPERIMENTS.get("replication_ili")) == 5 * 4 * 5 * 11
    names = [name for name in EXPERIMENTS.names() if name.startswith("replication_")]
    assert all(RACE in EXPERIMENTS.get(name).derived for name in names)
    assert len(names) == 6


def printed_value(name: str) -> Any:
    """What the paper prints, as if it were the result of every run of its row."""

    def value(keys: dict[str, Any], metric: str) -> float | None:
        fitting = (p.value for p in read_published(name) if p.fits(keys, metric, keys["strategy"]))
        return next(fitting, None)

    return value


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_papers_own_numbers_give_the_papers_own_gains(name: str) -> None:
    """Golden tables: runs that reached what is printed stand beside the same number and gain."""
    experiment = EXPERIMENTS.get(name)
    frame = make_frame(experiment, printed_value(name))
    rows = select_rows(experiment, frame, Part())
    table = make_report(experiment, rows, frame).tables[0]
    records = table.records()
    assert records
    runs = [row for row in records if row["strategy"] != "best_fixed"]  # no run of its own
    beside = [row for row in runs if row["paper"] is not None]
    assert beside
    for row in beside:
        assert float(row["value"].partition(" ")[0]) == pytest.approx(row["paper"], rel=1e-3)
        if row["paper gain"] is not None and name != "paired_seeds":  # printed from unrounded
            assert row["gain"] == row["paper gain"]


def lines(file: str) -> list[dict[str, str]]:
    text = resources.files("sacm_lab.paper.published").joinpath(f"{file}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize(
    ("experiment", "file", "each"),
    [
        ("synth12", "synth12_forecasting", 2),
        ("real_forecasting", "real_forecasting", 2),
        ("classification", "classification", 2),
        ("anomaly", "anomaly", 2),
        ("strategies", "dropout_strategies", 2),
        ("efficiency", "efficiency", 6),
        ("selective", "selective_learning", 3),
        ("paired_seeds", "paired_seeds", 2),
    ],
)
def test_every_printed_number_is_read_once(experiment: str, file: str, each: int) -> None:
    numbers = read_published(experiment)
    assert len(numbers) == each * len(lines(file))
    places = [(tuple(one.keys.items()), one.metric, one.strategy) for one in numbers]
    assert len(set(places)) == len(places)
    if experiment in ("classification", "anomaly"):
        assert max(one.value for one in numbers) <= 1  # printed in percent


def test_rows_have_the_settings_that_are_declared() -> None:
    experiment = EXPERIMENTS.get("replication_synth12")
    frame = make_frame(experiment, lambda keys, metric: 1.0)
    other = frame.assign(run="other" + frame["run"], stride=1)
    rows = select_rows(experiment, pd.concat([frame, other], ignore_index=True), Part())
    runs = rows[rows["strategy"] != RACE]["run"]
    assert set(runs) == set(frame["run"])
    part = Part(settings={"stride": 1}, datasets=("synth-12@0.5",), seeds=(42,))
    rows = select_rows(experiment, pd.concat([frame, other], ignore_index=True), part)
    assert set(rows["data"]) == {"Synth-12@0.5"}
    assert all(name.startswith("other") for name in rows["run"])
    assert set(rows["seed"]) == {42}


def test_a_file_is_taken_as_it_is() -> None:
    frame = make_frame(TINY, lambda keys, metric: 1.0).assign(stride=4, epoch_limit=3, seed=99)
    frame = frame.drop_duplicates("strategy")
    assert select_rows(TINY, frame, Part()).empty
    assert len(select_rows(TINY, frame, Part(), settings=False)) == 6  # with two derived rows


def test_targets_and_checks_stand_under_the_name_of_the_metric() -> None:
    experiment = EXPERIMENTS.get("zero_shot")
    frame = make_frame(experiment, lambda keys, metric: len(keys["target"] + keys["data"]) + 0.5)
    assert "mse@ETTm2" in frame
    rows = select_rows(experiment, frame.assign(mse=999.0), Part(datasets=("ETTh1",)))
    assert set(zip(rows["target"], rows["mse"], strict=True)) == {("ETTh2", 10.5), ("ETTm2", 10.5)}


def test_files_belong_to_the_longest_name(tmp_path: Path) -> None:
    names = ["replication_ili", "replication_ili_large"]
    for stem in ("replication_ili", "replication_ili_large", "replication_ili_more"):
        write_results(make_frame(TINY, lambda keys, metric: 1.0), tmp_path / f"{stem}.csv")
    assert owner_of(tmp_path / "replication_ili_large.csv", names) == names[1]
    found = [path.stem for path in find_files([tmp_path], names[0], names)]
    assert found == ["replication_ili", "replication_ili_more"]
    with pytest.raises(ArgumentError, match=r"there is no nothing.csv in it"):
        find_files([tmp_path], "nothing", names)
    assert len(read_results([tmp_path])) == 8


def test_a_part_of_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n")
    write_between(path, "x", "new")
    assert path.read_text() == "a\n<!-- x:begin -->\nnew\n<!-- x:end -->\nb\n"
    with pytest.raises(ArgumentError, match="has no lines <!-- y:begin -->"):
        write_between(path, "y", "new")
