from __future__ import annotations

from pathlib import Path

import pytest

from sacm.experiments.costs import TYPICAL_EPOCHS, Costs, measure_epoch
from sacm.tasks.settings import RunSettings
from sacm.training.files import read_json, write_json
from tests.experiments.tiny import groups_of, ili, run_all

pytestmark = pytest.mark.usefixtures("stand_in")


def settings(folder: Path, **changes: object) -> RunSettings:
    return groups_of(folder, ili(strategies=("raw",), **changes))[0].jobs[0].settings


def test_measured_steps_are_kept_for_the_next_time(tmp_path: Path):
    asked = settings(tmp_path)
    first = Costs(tmp_path).estimate(asked)
    assert first.measured
    ((key, seconds),) = read_json(tmp_path / "costs.json").items()
    assert first.seconds == pytest.approx(2 * seconds)  # it will have two epochs
    write_json(tmp_path / "costs.json", {key: 7.0})
    assert Costs(tmp_path).estimate(asked).seconds == 14.0


def test_without_early_stopping_known_a_typical_number_of_epochs_is_assumed(tmp_path: Path):
    asked = settings(tmp_path, epochs=100)
    estimate = Costs(tmp_path).estimate(asked)
    (seconds,) = read_json(tmp_path / "costs.json").values()
    assert estimate.seconds == pytest.approx(TYPICAL_EPOCHS * seconds)


def test_runs_of_the_same_kind_say_how_long_it_takes(tmp_path: Path):
    run_all(tmp_path, ili(1), ili(2, strategies=("raw",)))
    spent = []
    for number, path in enumerate(sorted(tmp_path.glob("*/metrics.json")), 1):
        record = read_json(path)
        write_json(path, {**record, "train_seconds": 10.0 * number, "test_seconds": 1.0})
        spent.append(10.0 * number + 1.0)
    estimate = Costs(tmp_path).estimate(settings(tmp_path, seed=99))
    assert (estimate.seconds, estimate.measured) == (sorted(spent)[1], False)
    assert Costs(tmp_path).estimate(settings(tmp_path, stride=41)).measured
    assert Costs(tmp_path).estimate(settings(tmp_path, epochs=3)).measured


def test_a_part_of_the_data_says_nothing_about_all_of_them(tmp_path: Path):
    run_all(tmp_path, ili(strategies=("raw",), train_fraction=0.5))
    assert Costs(tmp_path).estimate(settings(tmp_path)).measured


def test_epochs_until_early_stopping_are_learnt_from_other_data(tmp_path: Path):
    run_all(tmp_path, ili(strategies=("raw",), epochs=8, patience=7))
    (path,) = tmp_path.glob("*/metrics.json")
    write_json(path, {**read_json(path), "epochs": 5})
    asked = settings(tmp_path, epochs=100, stride=39)
    estimate = Costs(tmp_path).estimate(asked)
    seconds = read_json(tmp_path / "costs.json")
    (mine,) = [value for key, value in seconds.items() if "stride 39" in key]
    assert estimate.seconds == pytest.approx(5 * mine)


def test_measuring_leaves_nothing_behind(tmp_path: Path, monkeypatch):
    asked = settings(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert measure_epoch(asked) > 0
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read_is_no_hindrance(tmp_path: Path):
    run_all(tmp_path, ili(1))
    raw, sacm = sorted(tmp_path.glob("*/metrics.json"))
    raw.write_text("{")
    (sacm.parent / "config.json").write_text('{"task": "forecasting", "of": "another version"}')
    (tmp_path / "costs.json").write_text("[")
    assert Costs(tmp_path).estimate(settings(tmp_path, seed=3)).measured


def test_a_run_that_cannot_be_measured_is_left_to_fail_by_itself(tmp_path: Path):
    vast = settings(tmp_path, overrides={"width": 2**22})  # 64 TiB a layer
    assert Costs(tmp_path).estimate(vast).seconds == 0
    assert not (tmp_path / "costs.json").exists()
